// Package golden compares what a test makes with a file in the testdata of its
// package. With -update the file is written anew, to be looked at in the
// difference before it is accepted. Only tests import it.
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the files in testdata anew")

// Update tells if the files are to be written anew.
func Update() bool { return *update }

// Compare fails the test if got is not what testdata/name has, and shows both.
func Compare(t testing.TB, name string, got []byte) {
	t.Helper()
	want, same := Read(t, name, got)
	if !same {
		t.Errorf("%s differs; look at it, and if it is right, run this package's tests with -update\ngot:\n%s\nwant:\n%s", filepath.Join("testdata", name), got, want)
	}
}

// Read returns what testdata/name has, and tells if it is got. With -update got
// is written first.
func Read(t testing.TB, name string, got []byte) (want []byte, same bool) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return want, bytes.Equal(got, want)
}
