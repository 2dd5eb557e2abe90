package harness

import (
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// BuildOptions say how to build a program of this module.
type BuildOptions struct {
	// Package is a path from the module's root; "" is ./cmd/cdcpub.
	Package string
	// Tags are build tags.
	Tags string
	// Overlay is a file that replaces source files for this build: see
	// `go help build`, -overlay. Mutants are made with it.
	Overlay string
	// Race builds with the race detector. Never judge memory with it.
	Race bool
}

// Build builds a program into a directory of the test. Shared.Binary does it
// once for all tests of a package.
func Build(t testing.TB, o BuildOptions) string {
	t.Helper()
	path, err := build(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func build(dir string, o BuildOptions) (string, error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	if err := listSources(root); err != nil {
		return "", err
	}
	if o.Package == "" {
		o.Package = "./cmd/cdcpub"
	}
	path := filepath.Join(dir, filepath.Base(o.Package))
	args := []string{"build", "-o", path}
	if o.Race {
		args = append(args, "-race")
	}
	if o.Tags != "" {
		args = append(args, "-tags", o.Tags)
	}
	if o.Overlay != "" {
		args = append(args, "-overlay", o.Overlay)
	}
	command := exec.Command("go", append(args, o.Package)...)
	command.Dir = root
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(command.Args, " "), err, out)
	}
	return path, nil
}

// listSources has `go test` know what the program is made of. It prints the last
// result again while nothing has changed of what the test is compiled of or has
// opened, directories included.
func listSources(root string) error {
	for _, dir := range []string{"checkpoint", "cmd", "internal", "router", "slotmon", "wal"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(_ string, _ fs.DirEntry, err error) error { return err })
		if err != nil {
			return err
		}
	}
	return nil
}
