package slotmon

import (
	"context"
	"encoding/binary"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func command(script string) VolumeSource {
	return VolumeSource{FreeCommand: []string{"/bin/sh", "-c", script}}
}

func TestTheCommandComesFirstAndItsFailureIsNotReplaced(t *testing.T) {
	used := int64(10)
	source := command("echo 12345")
	source.SizeBytes = 1 << 30
	v := source.Look(t.Context(), t.TempDir(), "", &used)
	if v.FreeBytes == nil || *v.FreeBytes != 12345 || v.Source != "command" || v.Unknown != "" {
		t.Errorf("got %+v", v)
	}
	source.FreeCommand[2] = "exit 3"
	if v = source.Look(t.Context(), t.TempDir(), "", &used); v.FreeBytes != nil || v.Unknown != "the command /bin/sh failed (exit status 3)" {
		t.Errorf("got %+v", v)
	}
}

func TestAFailingCommandIsNamedWithoutItsSecrets(t *testing.T) {
	long := strings.Repeat("é", 150)
	for script, want := range map[string]string{
		"echo token=secret; exit 1":                        "failed (exit status 1)",
		"echo no such volume >&2; echo secret >&2; exit 2": "failed (exit status 2): no such volume",
		"printf '\\033[31mred\\n' >&2; exit 2":             "failed (exit status 2): [31mred",
		"echo x" + long + " >&2; exit 2":                   "failed (exit status 2): x" + long[:198],
		"kill -9 $$":                                       "failed (signal: killed)",
		"echo secret":                                      "did not print the free bytes as one decimal integer and nothing else",
		"true":                                             "did not print the free bytes as one decimal integer and nothing else",
		"yes 1 | head -c 9000":                             "did not print the free bytes as one decimal integer and nothing else",
		"sleep 100 & echo 5":                               "left a process behind that keeps its output open",
	} {
		v := command(script).Look(t.Context(), "", "", nil)
		if v.FreeBytes != nil || v.Unknown != "the command /bin/sh "+want {
			t.Errorf("%s: %+v", script, v)
		}
	}
	v := VolumeSource{FreeCommand: []string{"/no/such/program", "secret"}}.Look(t.Context(), "", "", nil)
	if v.FreeBytes != nil || !strings.HasPrefix(v.Unknown, "the command /no/such/program cannot be run: ") || strings.Contains(v.Unknown, "secret") {
		t.Errorf("got %+v", v)
	}
}

func TestAHangingCommandIsEndedWithWhatItStarted(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	source := command("sleep 1000 & echo $! > " + pidFile + "; wait")
	source.Timeout = 300 * time.Millisecond
	if v := source.Look(t.Context(), "", "", nil); v.Unknown != "the command /bin/sh gave no answer in 300ms" {
		t.Errorf("got %+v", v)
	}
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); running(t, pid); {
		if time.Now().After(deadline) {
			t.Fatalf("process %d still runs", pid)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if v := command("sleep 1000").Look(ctx, "", "", nil); v.Unknown != "the command /bin/sh was cut short: context deadline exceeded" {
		t.Errorf("got %+v", v)
	}
}

// running tells if the process runs; one that nobody has waited for yet does
// not.
func running(t *testing.T, pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if os.IsNotExist(err) {
		return false
	} else if err != nil {
		t.Fatal(err)
	}
	return !strings.Contains(string(stat), ") Z ")
}

func FuzzFree(f *testing.F) {
	for _, seed := range []string{"123\n", " 5 ", "-1", "+1", "1 2", "0x10", "1_000", "1e3", "9223372036854775808", ""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, output []byte) {
		free, err := parseFree(output)
		if err != nil {
			return
		}
		digits := strings.TrimLeft(strings.Trim(string(output), " \t\r\n"), "0")
		if digits == "" {
			digits = "0"
		}
		if free < 0 || strconv.FormatInt(free, 10) != digits {
			t.Fatalf("%q is %d", output, free)
		}
	})
}

func TestAConfiguredSizeLosesWhatPgWALHas(t *testing.T) {
	source := VolumeSource{SizeBytes: 1000}
	for used, free := range map[int64]int64{0: 1000, 400: 600, 1000: 0, 1200: 0} {
		v := source.Look(t.Context(), "", "", &used)
		if v.FreeBytes == nil || *v.FreeBytes != free || *v.SizeBytes != 1000 || strings.Contains(v.Source, "exceeds") != (used > 1000) {
			t.Errorf("%d used: %+v", used, v)
		}
	}
	if v := source.Look(t.Context(), "", "", nil); v.FreeBytes != nil || !strings.Contains(v.Unknown, "pg_monitor") {
		t.Errorf("size of pg_wal unknown: %+v", v)
	}
}

func TestWithoutASourceTheVolumeIsUnknown(t *testing.T) {
	v := VolumeSource{}.Look(t.Context(), "", "the server is not on this machine (10.0.0.5:5432)", nil)
	if v.FreeBytes != nil || !strings.HasPrefix(v.Unknown, "the server is not on this machine (10.0.0.5:5432); configure slot_monitor.volume.") {
		t.Errorf("got %+v", v)
	}
	if v := (VolumeSource{}).Look(t.Context(), "/no/such/directory", "", nil); v.FreeBytes != nil || !strings.Contains(v.Unknown, "/no/such/directory") {
		t.Errorf("got %+v", v)
	}
}

// dataDirectory makes what a running server leaves on a disk.
func dataDirectory(t *testing.T, id uint64, pidFile func(dir string) string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "global"), 0o700); err != nil {
		t.Fatal(err)
	}
	control := binary.NativeEndian.AppendUint64(nil, id)
	if err := os.WriteFile(filepath.Join(dir, "global", "pg_control"), append(control, "rest"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "postmaster.pid"), []byte(pidFile(dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestOnlyTheServersOwnDirectoryProvesItIsHere(t *testing.T) {
	const started, id = 1_700_000_000, 7_600_000_000_000_000_000
	lines := func(pid int, port string) func(string) string {
		return func(dir string) string {
			return strings.Join([]string{strconv.Itoa(pid), dir, strconv.Itoa(started), port, "/tmp", "localhost", "1 2", "ready"}, "\n")
		}
	}
	ours := dataDirectory(t, id, lines(os.Getpid(), "5432"))
	truth := claim{directory: ours, port: 5432, started: time.Unix(started, 500), systemID: strconv.FormatUint(id, 10), grant: "GRANT it"}
	const nobody = 1<<22 + 1 // above the largest pid there can be
	for _, c := range []struct {
		what   string
		change func(*claim)
		want   string
	}{
		{"the same server", func(*claim) {}, ""},
		{"a slow start", func(c *claim) { c.started = c.started.Add(30 * time.Second) }, ""},
		{"a directory that is unseen", func(c *claim) { c.directory = "" }, "GRANT it"},
		{"a system identifier that is unseen", func(c *claim) { c.systemID = "" }, "system identifier"},
		{"no such directory", func(c *claim) { c.directory = "/var/lib/no" }, "no such file"},
		{"another cluster at the same path", func(c *claim) { c.systemID = "123" }, "system identifier 7600000000000000000, the server's is 123"},
		{"a copy with another port", func(c *claim) { c.port = 5433 }, "port 5432"},
		{"a copy that was started later", func(c *claim) { c.started = c.started.Add(-time.Hour) }, "was started at"},
		{"a copy that was started before", func(c *claim) { c.started = c.started.Add(time.Hour) }, "was started at"},
		{"a copy of a running server's files", func(c *claim) { c.directory = dataDirectory(t, id, lines(nobody, "5432")) }, "does not run on this machine"},
		{"a moved copy", func(c *claim) {
			c.directory = dataDirectory(t, id, func(string) string { return lines(os.Getpid(), "5432")("/other") })
		}, "of a server in /other"},
		{"an incomplete pid file", func(c *claim) { c.directory = dataDirectory(t, id, func(string) string { return "1\n" }) }, "incomplete"},
		{"a strange pid file", func(c *claim) { c.directory = dataDirectory(t, id, lines(-1, "5432")) }, "not one of a server"},
	} {
		t.Run(c.what, func(t *testing.T) {
			claimed := truth
			c.change(&claimed)
			pgWAL, why := locate(socket(t, "unix"), claimed)
			if c.want == "" && (why != "" || pgWAL != filepath.Join(ours, "pg_wal")) ||
				c.want != "" && (pgWAL != "" || !strings.Contains(why, c.want)) {
				t.Errorf("got %q, %q", pgWAL, why)
			}
		})
	}
	t.Run("another machine", func(t *testing.T) {
		pgWAL, why := locate(far{}, truth)
		if pgWAL != "" || why != "the server is not on this machine (192.0.2.7:5432)" {
			t.Errorf("got %q, %q", pgWAL, why)
		}
	})
	t.Run("loopback", func(t *testing.T) {
		if pgWAL, why := locate(socket(t, "tcp"), truth); pgWAL == "" {
			t.Error(why)
		}
	})
}

// socket is a connection to a listener of the test.
func socket(t *testing.T, network string) net.Conn {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	conn, err := net.Dial(network, listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// far is a connection to another machine.
type far struct{ net.Conn }

func (far) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 5432} }
func (far) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 40000} }

func FuzzPIDFile(f *testing.F) {
	f.Add([]byte("12\n/data\n1700000000\n5432\n"))
	f.Add([]byte("-12\n\n\n\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		here, err := parsePIDFile(content)
		if err == nil && here.pid <= 0 {
			t.Fatalf("%q gives %+v", content, here)
		}
	})
}

func TestAFileSystemWithoutAnEndIsAsLargeAsCanBeSaid(t *testing.T) {
	for _, c := range []struct {
		blocks uint64
		size   int64
		want   int64
	}{{3, 4096, 12288}, {0, 4096, 0}, {math.MaxUint64, 4096, math.MaxInt64}, {1 << 62, 2, math.MaxInt64}, {math.MaxInt64, 1, math.MaxInt64}} {
		if got := blocks(c.blocks, c.size); got != c.want {
			t.Errorf("%d of %d: %d", c.blocks, c.size, got)
		}
	}
}
