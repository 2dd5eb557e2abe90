package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// CacheDir is where downloads are kept: cdcpub under the user's cache
// directory. Root's is often closed to the user that the server then runs as;
// in that case it is the system's cache directory.
func CacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if os.Geteuid() == 0 && (err != nil || !openToOthers(dir)) {
		dir, err = "/var/cache", nil
		if runtime.GOOS == "darwin" {
			dir = "/Library/Caches"
		}
	}
	if err != nil {
		return "", fmt.Errorf("no cache directory: set HOME or XDG_CACHE_HOME: %w", err)
	}
	return filepath.Join(dir, "cdcpub"), nil
}

// openToOthers says whether every user may pass through dir. What does not
// exist yet does not count: it will be made with mode 0755.
func openToOthers(dir string) bool {
	for {
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return false
		case info.Mode().Perm()&0o001 == 0:
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// Once fills the directory dir exactly once for all processes of the machine.
// fill gets an empty directory beside dir, which becomes dir when it returns
// nil: what exists under that name is always complete. A lock file keeps other
// processes waiting meanwhile; the kernel drops it when its holder dies.
func Once(ctx context.Context, dir string, fill func(empty string) error) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	lock, err := acquire(ctx, dir+".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := os.Stat(dir); err == nil {
		return nil // somebody else was faster
	}
	partial := dir + ".partial"
	if err := os.RemoveAll(partial); err != nil { // left by one that died
		return err
	}
	if err := os.Mkdir(partial, 0o755); err != nil {
		return err
	}
	if err := fill(partial); err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	return os.Rename(partial, dir)
}

// acquire takes an exclusive lock on a file. Closing the file releases it.
func acquire(ctx context.Context, path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	retry := time.NewTicker(50 * time.Millisecond)
	defer retry.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("wait for the lock on %s: %w", path, ctx.Err())
		case <-retry.C:
		}
	}
}
