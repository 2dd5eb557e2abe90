package slotmon

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// claim is what a server says of itself.
type claim struct {
	directory string // data_directory; empty: unseen
	port      int
	started   time.Time
	systemID  string // empty: unseen
	grant     string // what would let the role see the directory
}

// locate returns the server's pg_wal on this machine. If it cannot be proven to
// be there it returns why not. A connection to the loopback address proves
// nothing, for it may be forwarded to a container or through a tunnel, and the
// same path may exist there and here. So the data directory on this machine has
// to be the very one: of the same cluster (system identifier), and of the same
// postmaster (path, port, time of its start, and alive here).
func locate(conn net.Conn, c claim) (pgWAL, why string) {
	if !near(conn) {
		return "", fmt.Sprintf("the server is not on this machine (%s)", conn.RemoteAddr())
	}
	if c.directory == "" {
		return "", "the role may not see data_directory: " + c.grant
	}
	if c.systemID == "" {
		return "", "the role may not see the system identifier"
	}
	if err := c.check(); err != nil {
		return "", fmt.Sprintf("the data directory %s cannot be proven to be this server's: %v", c.directory, err)
	}
	return filepath.Join(c.directory, "pg_wal"), ""
}

// near tells if both ends of the connection could be on one machine: a Unix
// socket, loopback, or one address at both ends.
func near(conn net.Conn) bool {
	switch remote := conn.RemoteAddr().(type) {
	case *net.UnixAddr:
		return true
	case *net.TCPAddr:
		local, ok := conn.LocalAddr().(*net.TCPAddr)
		return remote.IP.IsLoopback() || ok && local.IP.Equal(remote.IP)
	}
	return false
}

// check compares the claim with the files in the directory.
func (c *claim) check() error {
	id, err := systemIDIn(c.directory)
	if err != nil {
		return err
	}
	if id != c.systemID {
		return fmt.Errorf("it is of a cluster with system identifier %s, the server's is %s", id, c.systemID)
	}
	content, err := os.ReadFile(filepath.Join(c.directory, "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return errors.New("no server runs in it here")
	} else if err != nil {
		return err
	}
	here, err := parsePIDFile(content)
	if err != nil {
		return err
	}
	return c.matches(here)
}

// startSkew bounds the time between the start of a postmaster, which its pid
// file has, and the moment when it begins to serve, which it tells. In between
// it gets its shared memory and loads libraries.
const startSkew = time.Minute

func (c *claim) matches(here pidFile) error {
	late := c.started.Sub(here.started)
	switch {
	case here.directory != c.directory:
		return fmt.Errorf("its postmaster.pid is of a server in %s", here.directory)
	case here.port != c.port:
		return fmt.Errorf("the server in it has port %d, this one %d", here.port, c.port)
	case late < -time.Second || late > startSkew:
		return fmt.Errorf("the server in it was started at %s, this one at %s", here.started.UTC().Format(time.DateTime), c.started.UTC().Format(time.DateTime))
	case !alive(here.pid):
		return fmt.Errorf("its server, process %d, does not run on this machine", here.pid)
	}
	return nil
}

// systemIDIn reads the first field of pg_control, the system identifier, which
// is in the byte order of the machine.
func systemIDIn(directory string) (string, error) {
	file, err := os.Open(filepath.Join(directory, "global", "pg_control"))
	if err != nil {
		return "", err
	}
	defer file.Close()
	var id [8]byte
	if _, err := io.ReadFull(file, id[:]); err != nil {
		return "", fmt.Errorf("pg_control: %w", err)
	}
	return strconv.FormatUint(binary.NativeEndian.Uint64(id[:]), 10), nil
}

// pidFile is postmaster.pid; see "Database File Layout" in the PostgreSQL
// documentation.
type pidFile struct {
	pid       int
	directory string
	started   time.Time
	port      int
}

// parsePIDFile reads the first four lines.
func parsePIDFile(content []byte) (pidFile, error) {
	lines := strings.Split(string(content), "\n")
	if len(lines) < 4 {
		return pidFile{}, errors.New("its postmaster.pid is incomplete")
	}
	pid, pidErr := strconv.Atoi(lines[0])
	started, startedErr := strconv.ParseInt(lines[2], 10, 64)
	port, portErr := strconv.Atoi(lines[3])
	if err := errors.Join(pidErr, startedErr, portErr); err != nil || pid <= 0 {
		return pidFile{}, errors.New("its postmaster.pid is not one of a server")
	}
	return pidFile{pid, lines[1], time.Unix(started, 0), port}, nil
}
