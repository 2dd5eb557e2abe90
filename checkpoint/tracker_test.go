package checkpoint

import (
	"math/rand/v2"
	"testing"

	"github.com/jackc/pglogrepl"
	"pgregory.net/rapid"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func send(t *testing.T, tr *Tracker) uint64 {
	t.Helper()
	seq, err := tr.Sent(1)
	must(t, err)
	return seq
}

func confirms(t *testing.T, tr *Tracker, want pglogrepl.LSN) {
	t.Helper()
	if got := tr.Confirmed(); got != want {
		t.Fatalf("confirmed %s, want %s", got, want)
	}
}

var limits = Limits{Records: 100, Bytes: 1000}

func TestConfirmsEndLSNOnlyAfterCommitAndAllAcks(t *testing.T) {
	tr := New(100, limits)
	must(t, tr.Begin())
	a, b := send(t, tr), send(t, tr)
	must(t, tr.Acked(b))
	must(t, tr.Acked(a))
	confirms(t, tr, 100) // the transaction is still open
	must(t, tr.Commit(200))
	confirms(t, tr, 200)
}

func TestConfirmsContiguousPrefixOfTransactions(t *testing.T) {
	tr := New(100, limits)
	var seqs []uint64
	for i := range 3 {
		must(t, tr.Begin())
		seqs = append(seqs, send(t, tr))
		must(t, tr.Commit(pglogrepl.LSN(200+100*i)))
	}
	must(t, tr.Acked(seqs[2]))
	must(t, tr.Acked(seqs[1]))
	confirms(t, tr, 100)
	must(t, tr.Acked(seqs[0]))
	confirms(t, tr, 400)
}

func TestKeepaliveWaitsForWhatIsInFlight(t *testing.T) {
	tr := New(100, limits)
	must(t, tr.Begin())
	seq := send(t, tr)
	tr.Keepalive(500) // within the transaction: ignored
	must(t, tr.Commit(200))
	tr.Keepalive(300)
	tr.Keepalive(350)
	confirms(t, tr, 100)
	must(t, tr.Acked(seq))
	confirms(t, tr, 350)
	tr.Keepalive(340)
	confirms(t, tr, 350)
}

func TestKeepaliveConfirmsAtOnceWhenIdle(t *testing.T) {
	tr := New(100, limits)
	tr.Keepalive(300)
	confirms(t, tr, 300)
}

func TestEmptyTransactionIsConfirmed(t *testing.T) {
	tr := New(100, limits)
	must(t, tr.Begin())
	must(t, tr.Commit(200))
	confirms(t, tr, 200)
}

func TestDoubleAndUnknownAcksAreErrors(t *testing.T) {
	tr := New(100, limits)
	must(t, tr.Begin())
	a, b := send(t, tr), send(t, tr)
	must(t, tr.Acked(b))
	for _, seq := range []uint64{b, 2, 1 << 63} {
		if tr.Acked(seq) == nil {
			t.Errorf("acknowledging %d was accepted", seq)
		}
	}
	must(t, tr.Acked(a))
	if tr.Acked(a) == nil {
		t.Error("acknowledging a record behind the window was accepted")
	}
}

func TestImpossibleOrderIsAnError(t *testing.T) {
	tr := New(100, limits)
	if tr.Commit(200) == nil {
		t.Error("a commit without a transaction was accepted")
	}
	if _, err := tr.Sent(1); err == nil {
		t.Error("a record without a transaction was accepted")
	}
	must(t, tr.Begin())
	if tr.Begin() == nil {
		t.Error("a transaction within a transaction was accepted")
	}
	if tr.Commit(100) == nil {
		t.Error("an end LSN that does not increase was accepted")
	}
}

func TestWindowIsLimitedInRecordsAndBytes(t *testing.T) {
	tr := New(0, Limits{Records: 3, Bytes: 10})
	must(t, tr.Begin())
	if tr.Full(1000) {
		t.Error("a record larger than the window does not pass alone")
	}
	seq, _ := tr.Sent(1000)
	if !tr.Full(1) {
		t.Error("something passes beside a record larger than the window")
	}
	must(t, tr.Acked(seq))
	for range 3 {
		if tr.Full(3) {
			t.Fatal("full too early")
		}
		_, _ = tr.Sent(3)
	}
	if !tr.Full(1) {
		t.Error("a fourth record fits into a window of three")
	}
	// An acknowledged record behind an unacknowledged one still counts.
	must(t, tr.Acked(seq+2))
	if !tr.Full(1) || tr.Outstanding() != 3 || tr.Bytes() != 9 {
		t.Errorf("outstanding %d records, %d bytes", tr.Outstanding(), tr.Bytes())
	}
	must(t, tr.Acked(seq+1))
	if tr.Full(1) || tr.Outstanding() != 1 || tr.Bytes() != 3 {
		t.Errorf("outstanding %d records, %d bytes", tr.Outstanding(), tr.Bytes())
	}
}

// history is what the model knows: every position with the records that must
// be acknowledged first.
type history struct {
	positions []mark
	acked     map[uint64]bool
}

func (h *history) confirmable(start pglogrepl.LSN) pglogrepl.LSN {
	confirmed := start
	for _, p := range h.positions {
		for seq := range p.before {
			if !h.acked[seq] {
				return confirmed
			}
		}
		confirmed = max(confirmed, p.lsn)
	}
	return confirmed
}

// The Tracker agrees with a model that looks at everything again each time.
func TestAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tr := New(10, Limits{Records: 8, Bytes: 1 << 20})
		h := history{acked: map[uint64]bool{}}
		var lsn pglogrepl.LSN = 10
		var next uint64
		var unacked []uint64
		r.Repeat(map[string]func(*rapid.T){
			"begin": func(r *rapid.T) {
				if open := tr.Open(); (tr.Begin() == nil) == open {
					r.Fatalf("Begin with open = %t", open)
				}
			},
			"send": func(r *rapid.T) {
				if !tr.Open() || tr.Full(1) {
					return
				}
				seq, err := tr.Sent(1)
				if err != nil || seq != next {
					r.Fatalf("seq %d, want %d: %v", seq, next, err)
				}
				unacked = append(unacked, seq)
				next++
			},
			"commit": func(r *rapid.T) {
				if !tr.Open() {
					return
				}
				lsn += pglogrepl.LSN(rapid.IntRange(1, 5).Draw(r, "step"))
				if err := tr.Commit(lsn); err != nil {
					r.Fatal(err)
				}
				h.positions = append(h.positions, mark{next, lsn})
			},
			"keepalive": func(r *rapid.T) {
				if !tr.Open() {
					lsn += pglogrepl.LSN(rapid.IntRange(0, 3).Draw(r, "step"))
					h.positions = append(h.positions, mark{next, lsn})
				}
				tr.Keepalive(lsn)
			},
			"ack": func(r *rapid.T) {
				if len(unacked) == 0 {
					return
				}
				i := rapid.IntRange(0, len(unacked)-1).Draw(r, "i")
				if err := tr.Acked(unacked[i]); err != nil {
					r.Fatal(err)
				}
				h.acked[unacked[i]] = true
				unacked = append(unacked[:i], unacked[i+1:]...)
			},
			"": func(r *rapid.T) {
				if got, want := tr.Confirmed(), h.confirmable(10); got != want {
					r.Fatalf("confirmed %s, want %s", got, want)
				}
			},
		})
	})
}

func BenchmarkTracker(b *testing.B) {
	tr := New(0, Limits{Records: 1 << 14, Bytes: 1 << 30})
	_ = tr.Begin()
	pending := make([]uint64, 0, 1024)
	random := rand.New(rand.NewPCG(1, 2))
	b.ReportAllocs()
	for b.Loop() {
		seq, _ := tr.Sent(300)
		if pending = append(pending, seq); len(pending) == cap(pending) {
			random.Shuffle(len(pending), func(i, j int) { pending[i], pending[j] = pending[j], pending[i] })
			for _, seq := range pending {
				_ = tr.Acked(seq)
			}
			pending = pending[:0]
		}
	}
}
