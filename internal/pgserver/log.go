package pgserver

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// LogFile is the file with everything that the server and initdb printed.
func (s *Server) LogFile() string { return filepath.Join(s.dir, "postgres.log") }

// LogTail returns at most n lines from the end of the log.
func (s *Server) LogTail(n int) string { return Tail(s.LogFile(), n) }

// Tail returns at most n lines, and at most 64 KiB, from the end of a file. An
// unreadable file gives the reason as text: it is meant for messages.
func Tail(path string, n int) string {
	const most = 64 << 10
	file, err := os.Open(path)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	text, err := io.ReadAll(io.NewSectionReader(file, max(0, size-most), most))
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
