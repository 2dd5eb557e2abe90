package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// download returns the wanted version from the cache, filling it if needed.
func download(ctx context.Context, want version, progress func(string)) (Installation, error) {
	release, known := downloads[want.major]
	if want.minor >= 0 {
		release, known = want.String()+".0", true
	}
	if !known {
		return Installation{}, fmt.Errorf("no download is known for PostgreSQL %s: install it, or ask for %d to %d", want, Oldest, newestDownload)
	}
	cache, err := CacheDir()
	if err != nil {
		return Installation{}, err
	}
	dir := filepath.Join(cache, "postgresql", fmt.Sprintf("%s-%s-%s", release, runtime.GOOS, runtime.GOARCH))
	err = Once(ctx, dir, func(empty string) error {
		if progress != nil {
			progress(fmt.Sprintf("downloading PostgreSQL %s (once, about 15 MB, into %s)", release, dir))
		}
		return fetch(release, empty)
	})
	if err != nil {
		return Installation{}, fmt.Errorf("PostgreSQL %s is not installed, and the download failed: %w", release, err)
	}
	bin := filepath.Join(dir, "bin")
	v, err := installed(ctx, bin)
	if err != nil {
		return Installation{}, fmt.Errorf("the downloaded PostgreSQL %s does not run (remove %s to fetch it again): %w", release, dir, err)
	}
	return Installation{Bin: bin, Major: v.major, Version: v.String()}, nil
}

// fetch downloads and unpacks a release into dir, an existing directory.
//
// The library can only start a server, under our own user, which is refused
// for root and would leave the server unguarded. So its Start is led to give
// up right after unpacking: the data directory looks initialised, which skips
// initdb, and port 0 is none that a server would take. The library makes the
// runtime directory only after it has unpacked everything: its existence tells
// this intended failure from all others.
func fetch(release, dir string) error {
	v, err := parseVersion(release)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp(dir, "download-")
	if err != nil {
		return err
	}
	data, run := filepath.Join(work, "data"), filepath.Join(work, "run")
	err = os.Mkdir(data, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(data, "PG_VERSION"), fmt.Appendf(nil, "%d\n", v.major), 0o600)
	}
	if err != nil {
		return err
	}
	server := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(embeddedpostgres.PostgresVersion(release)).
		CachePath(filepath.Join(work, "archive")).
		BinariesPath(dir).
		RuntimePath(run).
		DataPath(data).
		Port(0).
		Logger(io.Discard))
	startErr := server.Start()
	if startErr == nil {
		return errors.Join(errors.New("a server started where none should"), server.Stop())
	}
	if _, err := os.Stat(run); err != nil {
		return startErr
	}
	return os.RemoveAll(work)
}
