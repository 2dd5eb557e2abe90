package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// Installation is a directory with PostgreSQL server programs.
type Installation struct {
	// Bin is the directory that holds postgres and initdb.
	Bin string
	// Major is the major version, 18 for example; Version is the full one,
	// "18.3" for example.
	Major   int
	Version string
}

func (i Installation) program(name string) string { return filepath.Join(i.Bin, name) }

// Find returns server programs of the wanted version: "" for the newest on
// this machine, "18" for a major version, "18.3" for one release. What is not
// installed is downloaded once (about 15 MB) into CacheDir. progress, which may
// be nil, gets one line before a download begins.
func Find(ctx context.Context, wanted string, progress func(line string)) (Installation, error) {
	var want version
	if wanted != "" {
		var err error
		if want, err = parseVersion(wanted); err != nil {
			return Installation{}, err
		}
		if want.major < Oldest {
			return Installation{}, fmt.Errorf("PostgreSQL %s is too old: %d is the oldest that is supported", wanted, Oldest)
		}
	}
	best, found := Installation{}, version{}
	for _, bin := range candidates() {
		v, err := installed(ctx, bin)
		if err != nil || v.major < Oldest || wanted != "" && !v.matches(want) {
			continue
		}
		if found.less(v) {
			best, found = Installation{Bin: bin, Major: v.major, Version: v.String()}, v
		}
	}
	if best.Bin != "" {
		return best, nil
	}
	if wanted == "" {
		want = version{major: newestDownload, minor: -1}
	}
	return download(ctx, want, progress)
}

// candidates are the directories in which servers are usually installed.
func candidates() []string {
	var dirs []string
	for _, program := range []string{"postgres", "pg_ctl"} {
		if path, err := exec.LookPath(program); err == nil {
			if path, err = filepath.EvalSymlinks(path); err == nil {
				dirs = append(dirs, filepath.Dir(path))
			}
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",                          // Debian
		"/usr/pgsql-*/bin",                                   // PGDG on Red Hat
		"/usr/libexec/postgresql*",                           // Alpine
		"/opt/homebrew/opt/postgresql@*/bin",                 // Homebrew on Apple silicon
		"/usr/local/opt/postgresql@*/bin",                    // Homebrew on Intel
		"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",    // Homebrew on Linux
		"/Library/PostgreSQL/*/bin",                          // EDB on macOS
		"/opt/PostgreSQL/*/bin",                              // EDB on Linux
		"/Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
	} {
		matches, _ := filepath.Glob(pattern) // the patterns are constant and valid
		dirs = append(dirs, matches...)
	}
	return dirs
}

// installed returns the version of the server programs in bin.
func installed(ctx context.Context, bin string) (version, error) {
	for _, program := range []string{"postgres", "initdb"} {
		info, err := os.Stat(filepath.Join(bin, program))
		if err != nil {
			return version{}, err
		}
		if info.IsDir() || info.Mode().Perm()&0o111 == 0 {
			return version{}, fmt.Errorf("%s in %s: %w", program, bin, fs.ErrPermission)
		}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version").Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return version{}, fmt.Errorf("%s/postgres --version: %w: %s", bin, err, exit.Stderr)
		}
		return version{}, fmt.Errorf("%s/postgres --version: %w", bin, err)
	}
	return parseBanner(string(out))
}
