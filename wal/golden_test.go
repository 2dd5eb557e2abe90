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

// Goldens are the bytes that real servers sent for one history, each through
// several publications. Lines are "[publication]" or "LSN hex-of-message".

// golden is what one publication sent.
type golden struct {
	publication string
	messages    []goldenMessage
}

type goldenMessage struct {
	start pglogrepl.LSN
	data  []byte
}

var goldenMajors = []string{"14", "15", "18"}

func goldenFile(major string) string { return filepath.Join("testdata", "pgoutput-"+major+".golden") }

func readGoldens(t testing.TB, major string) []golden {
	t.Helper()
	file, err := os.Open(goldenFile(major))
	if err != nil {
		t.Fatalf("%v; capture it with: go test ./wal -run TestGoldens -update", err)
	}
	defer file.Close()
	var all []golden
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "["); ok {
			all = append(all, golden{publication: strings.TrimSuffix(name, "]")})
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
		t.Fatalf("%s: %v, %d publications", file.Name(), lines.Err(), len(all))
	}
	return all
}

func writeGoldens(t *testing.T, major string, all []golden) {
	t.Helper()
	var out bytes.Buffer
	for _, g := range all {
		fmt.Fprintf(&out, "[%s]\n", g.publication)
		for _, m := range g.messages {
			fmt.Fprintf(&out, "%s %x\n", m.start, m.data)
		}
	}
	if err := os.WriteFile(goldenFile(major), out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The expected text shows what was decoded, to be read by people.
func TestGoldens(t *testing.T) {
	for _, major := range goldenMajors {
		t.Run(major, func(t *testing.T) {
			if *update {
				writeGoldens(t, major, capture(t, major))
			}
			got := decodeGoldens(t, major)
			expected := filepath.Join("testdata", "pgoutput-"+major+".txt")
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

func decodeGoldens(t *testing.T, major string) string {
	t.Helper()
	var out strings.Builder
	for _, g := range readGoldens(t, major) {
		fmt.Fprintf(&out, "publication %s\n", g.publication)
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
			t.Errorf("publication %s ends within a transaction", g.publication)
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
