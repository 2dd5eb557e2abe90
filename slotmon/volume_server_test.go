package slotmon_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cdcpub/cdcpub/slotmon"
)

func ownVolume(t *testing.T, c *cluster) {
	pgWAL := filepath.Join(c.server.Dir(), "data", "pg_wal")
	var fs unix.Statfs_t
	if err := unix.Statfs(pgWAL, &fs); err != nil {
		t.Fatal(err)
	}
	v := c.read(t, slotmon.Question{}).Server.Volume
	if v.FreeBytes == nil || v.SizeBytes == nil || v.Source != "statfs "+pgWAL || v.Unknown != "" {
		t.Fatalf("got %+v", v)
	}
	if size := int64(fs.Blocks) * int64(fs.Bsize); *v.SizeBytes != size || *v.FreeBytes <= 0 || *v.FreeBytes >= size {
		t.Errorf("free %d, size %d, want size %d", *v.FreeBytes, *v.SizeBytes, size)
	}

	// A server whose directory is not the one that is here is what a port that
	// is forwarded to a container looks like.
	restore := otherStart(t, filepath.Join(c.server.Dir(), "data", "postmaster.pid"))
	v = c.read(t, slotmon.Question{}).Server.Volume
	restore()
	if v.FreeBytes != nil || !strings.Contains(v.Unknown, "was started at") {
		t.Errorf("got %+v", v)
	}

	v = c.read(t, slotmon.Question{Volume: slotmon.VolumeSource{SizeBytes: 1 << 40}}).Server.Volume
	if v.FreeBytes == nil || *v.FreeBytes <= 0 || *v.FreeBytes > 1<<40-16<<20 || *v.SizeBytes != 1<<40 {
		t.Errorf("of a configured size: %+v", v)
	}
}

// otherStart makes the pid file one of a server that was started at another
// time. It changes one digit in place: a server that does not find its own
// process id in the file shuts down.
func otherStart(t *testing.T, pidFile string) (restore func()) {
	t.Helper()
	file, err := os.OpenFile(pidFile, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	content, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfterN(content, []byte("\n"), 4)
	offset := int64(len(lines[0]) + len(lines[1]))
	set := func(digit []byte) {
		if _, err := file.WriteAt(digit, offset); err != nil {
			t.Fatal(err)
		}
	}
	set([]byte("3"))
	return func() { set(lines[2][:1]) }
}
