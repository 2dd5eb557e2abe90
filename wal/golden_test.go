package wal

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pglogrepl"
)

var update = flag.Bool("update", false, "capture the goldens again from real servers, which are downloaded if need be")

// Goldens are the bytes that real servers sent for one history, each in several
// views. Lines are "[view]" or "LSN hex-of-message". Beside them is what
// test_decoding, PostgreSQL's own decoder, said of the same history: lines of
// "LSN xid quoted-text". All of it is recorded anew by
//
//	go test ./wal -run TestGoldens -update

// golden is what one view sent.
type golden struct {
	view     goldenView
	messages []goldenMessage
}

type goldenMessage struct {
	start pglogrepl.LSN
	data  []byte
}

var goldenMajors = []int{14, 15, 16, 17, 18}

// goldenFile is a file of a major version: golden, witness or txt.
func goldenFile(major int, kind string) string {
	return filepath.Join("testdata", fmt.Sprintf("pgoutput-%d.%s", major, kind))
}

func readGoldens(t testing.TB, major int) []golden {
	t.Helper()
	file, err := os.Open(goldenFile(major, "golden"))
	if err != nil {
		t.Fatalf("%v; capture it with: go test ./wal -run TestGoldens -update", err)
	}
	defer file.Close()
	var all []golden
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "["); ok {
			all = append(all, golden{view: goldenViewOf(strings.TrimSuffix(name, "]"))})
			continue
		}
		lsn, digits, _ := strings.Cut(lines.Text(), " ")
		start, err := pglogrepl.ParseLSN(lsn)
		if err != nil {
			t.Fatal(err)
		}
		data, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		last := &all[len(all)-1]
		last.messages = append(last.messages, goldenMessage{start, data})
	}
	if lines.Err() != nil || len(all) == 0 {
		t.Fatalf("%s: %v, %d views", file.Name(), lines.Err(), len(all))
	}
	return all
}

func record(t *testing.T, major int) {
	t.Helper()
	all, witnessed := capture(t, major)
	var out bytes.Buffer
	for _, g := range all {
		fmt.Fprintf(&out, "[%s]\n", g.view.name)
		for _, m := range g.messages {
			fmt.Fprintf(&out, "%s %x\n", m.start, m.data)
		}
	}
	if err := os.WriteFile(goldenFile(major, "golden"), out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(goldenFile(major, "witness"), []byte(strings.Join(witnessed, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The expected text shows what was decoded, to be read by people.
func TestGoldens(t *testing.T) {
	for _, major := range goldenMajors {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			if *update {
				record(t, major)
			}
			got := decodeGoldens(t, major)
			expected := goldenFile(major, "txt")
			if *update {
				if err := os.WriteFile(expected, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(expected)
			if err != nil {
				t.Fatal(err)
			}
			gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
			for i := range max(len(gotLines), len(wantLines)) {
				if i >= len(gotLines) || i >= len(wantLines) || gotLines[i] != wantLines[i] {
					t.Fatalf("differs from %s at line %d; got\n%s", expected, i+1, strings.Join(gotLines[i:min(i+3, len(gotLines))], "\n"))
				}
			}
		})
	}
}

func decodeGoldens(t *testing.T, major int) string {
	t.Helper()
	var out strings.Builder
	for _, g := range readGoldens(t, major) {
		if g.view.refused != 0 {
			continue
		}
		fmt.Fprintf(&out, "view %s\n", g.view.name)
		d, b := NewDecoder(classes{}), &Batch{}
		for _, m := range g.messages {
			if err := d.Decode(m.start, m.data, b); err != nil {
				t.Fatal(err)
			}
			if len(b.Events) == 0 {
				fmt.Fprintf(&out, "  (%c)\n", m.data[0])
			}
			for _, e := range b.Events {
				out.WriteString(describe(e))
			}
			b.Release()
		}
		if d.InTransaction() {
			t.Errorf("view %s ends within a transaction", g.view.name)
		}
	}
	return out.String()
}

func describe(e Event) string {
	if e.Kind != Insert {
		return render(e) + "\n"
	}
	var out strings.Builder
	fmt.Fprintf(&out, "  I %s %s (oid %d)\n", e.LSN, e.Row.Relation, e.Row.Relation.ID)
	for i, c := range e.Row.Relation.Columns {
		value := renderValue(e.Row.Values[i])
		if len(value) > 200 {
			value = fmt.Sprintf("%d bytes, sha256 %x", len(e.Row.Values[i]), sha256.Sum256(e.Row.Values[i]))
		}
		fmt.Fprintf(&out, "      %s (type %d) = %s\n", c.Name, c.TypeOID, value)
	}
	return out.String()
}
