package slotctl

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pglogrepl"
)

// Builders of pgoutput messages.

func beginAt(commit pglogrepl.LSN) []byte {
	out := binary.BigEndian.AppendUint64([]byte{'B'}, uint64(commit))
	return append(out, make([]byte, 12)...)
}

func commitMessage() []byte { return append([]byte{'C'}, make([]byte, 25)...) }

func table(id uint32, schema, name string) []byte {
	out := binary.BigEndian.AppendUint32([]byte{'R'}, id)
	return append(append(append(append(out, schema...), 0), name...), 0, 'd', 0, 0)
}

func change(kind byte, id uint32) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, id), 'N', 0, 0)
}

func truncate(ids ...uint32) []byte {
	out := append(binary.BigEndian.AppendUint32([]byte{'T'}, uint32(len(ids))), 0)
	for _, id := range ids {
		out = binary.BigEndian.AppendUint32(out, id)
	}
	return out
}

func TestCounterCountsRowsOfTransactionsThatCommitBeforeTheTarget(t *testing.T) {
	c := newCounter(1000, 100)
	for i, message := range [][]byte{
		beginAt(100), table(1, "public", "outbox"), change('I', 1), change('I', 1), commitMessage(),
		beginAt(200), commitMessage(), // empty, as before PostgreSQL 15
		beginAt(300), table(2, "app", "other"), change('U', 2), change('D', 2), truncate(1, 2), commitMessage(),
		beginAt(999), {'O', 0}, {'Y', 0}, {'M', 0}, change('I', 1), commitMessage(), // its record starts one byte before
	} {
		if next, err := c.message(message); err != nil || next != goOn {
			t.Fatalf("message %d: %v, %v", i, next, err)
		}
	}
	if next, err := c.message(beginAt(1000)); err != nil || next != through {
		t.Errorf("a transaction at the target: %v, %v", next, err)
	}
	got := c.count()
	if got.Rows != 7 || got.Transactions != 3 || len(got.Tables) != 2 || got.Tables[0] != (TableCount{"public.outbox", 4}) || got.Tables[1] != (TableCount{"app.other", 3}) {
		t.Errorf("counted %+v", got)
	}
	if !got.Exact() {
		t.Errorf("is not exact: %s", got.Incomplete)
	}
}

func TestCounterStopsAtTheFirstRowBeyondTheLimit(t *testing.T) {
	c := newCounter(1000, 2)
	for _, message := range [][]byte{beginAt(1), table(1, "", "outbox"), change('I', 1), change('I', 1)} {
		if next, err := c.message(message); err != nil || next != goOn {
			t.Fatal(next, err)
		}
	}
	if next, err := c.message(change('I', 1)); err != nil || next != capped {
		t.Errorf("the third row of two: %v, %v", next, err)
	}
	if got := c.count(); got.Rows != 2 || got.Tables[0].Table != "pg_catalog.outbox" {
		t.Errorf("counted %+v", got)
	}
}

func TestCounterRefusesWhatItCannotCount(t *testing.T) {
	described := [][]byte{beginAt(1), table(1, "public", "outbox")}
	for name, c := range map[string]struct {
		before [][]byte
		last   []byte
		want   string
	}{
		"an empty message":             {nil, nil, "empty"},
		"an unknown type":              {nil, []byte{'z'}, "type 'z': the type is unknown"},
		"a short begin":                {nil, []byte{'B', 1}, "too early"},
		"a short relation":             {nil, []byte{'R', 0, 0}, "too early"},
		"a relation without an end":    {nil, []byte{'R', 0, 0, 0, 1, 'a', 0, 'b'}, "too early"},
		"a short row":                  {described, []byte{'I', 0}, "too early"},
		"a short truncate":             {described, []byte{'T', 0, 0, 0, 1, 0}, "too early"},
		"a truncate of too many":       {described, []byte{'T', 255, 255, 255, 255, 0}, "too early"},
		"a row of no described table":  {described, change('I', 2), "not described"},
		"a row outside a transaction":  {[][]byte{table(1, "public", "outbox")}, change('I', 1), "outside a transaction"},
		"an end without a beginning":   {nil, commitMessage(), "ends no transaction"},
		"a prepared transaction's row": {nil, []byte{'b'}, "two_phase"},
	} {
		t.Run(name, func(t *testing.T) {
			counter := newCounter(1000, 100)
			for _, message := range c.before {
				if _, err := counter.message(message); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := counter.message(c.last); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if _, err := newCounter(1, 1).message([]byte{'P'}); !errors.Is(err, errTwoPhase) {
		t.Errorf("%v", err)
	}
}

// Whatever arrives, the counter neither panics nor counts more than its limit.
func FuzzCounter(f *testing.F) {
	for _, seed := range [][]byte{beginAt(1), commitMessage(), table(1, "public", "outbox"), change('I', 1), truncate(1, 1), {}, {'b'}} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		c := newCounter(1000, 3)
		for _, message := range [][]byte{beginAt(1), table(1, "public", "outbox"), first, second, first, second} {
			next, err := c.message(message)
			if err != nil && next != goOn {
				t.Errorf("an error, and %v", next)
			}
			if err != nil || next != goOn {
				break
			}
		}
		var sum int64
		got := c.count()
		for _, table := range got.Tables {
			sum += table.Rows
		}
		if got.Rows > 3 || got.Transactions > got.Rows || sum != got.Rows {
			t.Errorf("counted %+v", got)
		}
	})
}
