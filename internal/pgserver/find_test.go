package pgserver

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]version{
		"18":     {18, -1},
		"18.3":   {18, 3},
		"18.3.0": {18, 3},
	} {
		if got, err := parseVersion(text); err != nil || got != want {
			t.Errorf("parseVersion(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "18.", "18.x", "0", "-1", "18.-1", "1.2.3.4"} {
		if got, err := parseVersion(text); err == nil {
			t.Errorf("parseVersion(%q) = %v, want an error", text, got)
		}
	}
}

func TestParseBanner(t *testing.T) {
	for text, want := range map[string]version{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n": {15, 18},
		"postgres (PostgreSQL) 18.3\n":                           {18, 3},
		"postgres (PostgreSQL) 19beta1":                          {19, -1},
	} {
		if got, err := parseBanner(text); err != nil || got != want {
			t.Errorf("parseBanner(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "postgres (PostgreSQL) ", "mysqld 8"} {
		if got, err := parseBanner(text); err == nil {
			t.Errorf("parseBanner(%q) = %v, want an error", text, got)
		}
	}
}

func TestFindRefusesWhatIsTooOld(t *testing.T) {
	if _, err := Find(t.Context(), "13", nil); err == nil || !strings.Contains(err.Error(), "too old") {
		t.Errorf("Find(13) = %v, want that it is too old", err)
	}
}

func TestFindDownloadsWhatIsNotInstalledAndItServes(t *testing.T) {
	var wait sync.WaitGroup
	found := make([]Installation, 3)
	errs := make([]error, len(found))
	for i := range found {
		wait.Go(func() {
			found[i], errs[i] = Find(t.Context(), "18", func(line string) { t.Log(line) })
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if found[0].Major != 18 || found[1] != found[0] || found[2] != found[0] {
		t.Errorf("found %v, want the same 18 three times", found)
	}
	s, err := Start(t.Context(), Options{Installation: found[0]})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestOnceFillsOnceForAllWhoAskAtTheSameTime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache", "thing")
	var fills atomic.Int32
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			err := Once(t.Context(), dir, func(empty string) error {
				fills.Add(1)
				return os.WriteFile(filepath.Join(empty, "file"), []byte("x"), 0o644)
			})
			if err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(dir, "file")); err != nil {
				t.Errorf("Once returned before the directory was complete: %v", err)
			}
		})
	}
	wait.Wait()
	if n := fills.Load(); n != 1 {
		t.Errorf("filled %d times, want once", n)
	}
}

func TestOnceLeavesNothingWhenFillingFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "thing")
	failure := errors.New("no network")
	fail := func(empty string) error {
		return errors.Join(os.WriteFile(filepath.Join(empty, "half"), nil, 0o644), failure)
	}
	if err := Once(t.Context(), dir, fail); !errors.Is(err, failure) {
		t.Errorf("Once = %v, want the failure", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a half filled directory is there: %v", err)
	}
	if err := Once(t.Context(), dir, func(string) error { return nil }); err != nil {
		t.Errorf("a second try after a failure: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "half")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the second try found the first one's leavings: %v", err)
	}
}

func TestOnceGivesUpWaitingWithItsContext(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "thing")
	err := Once(t.Context(), dir, func(string) error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := Once(ctx, dir, func(string) error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("the second Once = %v, want Canceled", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestBothWaysToListChildrenFindThem(t *testing.T) {
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		child.Process.Kill()
		child.Wait()
	}()
	for name, list := range map[string]func(int) ([]int, error){"default": childrenOf, "ps": childrenFromPS} {
		children, err := list(os.Getpid())
		if err != nil || !slices.Contains(children, child.Process.Pid) {
			t.Errorf("%s: %v, %v, want %d in it", name, children, err, child.Process.Pid)
		}
	}
}
