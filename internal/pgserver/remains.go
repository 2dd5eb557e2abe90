package pgserver

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// childrenOf lists the processes whose parent is pid: from /proc where there is
// one, since small Linux images lack ps, and from ps elsewhere.
func childrenOf(pid int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return childrenFromPS(pid)
	}
	var children []int
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		// "pid (name) state ppid ...": the name may have blanks and brackets.
		var child, parent int
		var state string
		end := bytes.LastIndexByte(stat, ')')
		if end < 0 {
			continue
		}
		if _, err := fmt.Sscan(string(stat[end+1:]), &state, &parent); err != nil || parent != pid {
			continue
		}
		if _, err := fmt.Sscan(string(stat), &child); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		children = append(children, child)
	}
	return children, nil
}

func childrenFromPS(pid int) ([]int, error) {
	out, err := exec.Command("ps", "-A", "-o", "pid=", "-o", "ppid=").Output()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var children []int
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var child, parent int
		if _, err := fmt.Sscan(lines.Text(), &child, &parent); err == nil && parent == pid {
			children = append(children, child)
		}
	}
	return children, nil
}

// removeSharedMemory removes the small System V segment that a killed server
// leaves. The next start on its data would have done so. A system has room for
// a few thousand of them at most (macOS: 32), and nothing else ever removes
// them. Line 7 of the pid file is the segment's key and id.
func (s *Server) removeSharedMemory() {
	content, err := os.ReadFile(filepath.Join(s.dataDir(), "postmaster.pid"))
	if err != nil {
		return // a server that ended well removes the file
	}
	const line = 6
	lines := strings.Split(string(content), "\n")
	if len(lines) <= line {
		return
	}
	if fields := strings.Fields(lines[line]); len(fields) == 2 {
		// Without ipcrm the segment stays, which harms nobody today.
		_ = exec.Command("ipcrm", "-m", fields[1]).Run()
	}
}
