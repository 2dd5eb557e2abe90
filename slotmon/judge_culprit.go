package slotmon

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cdcpub/cdcpub/internal/human"
)

// culprit is who or what holds the WAL, and what to do about it.
type culprit struct {
	sentence, cure string
	// last is what remains if the cure is not wanted: it gives rows up.
	last string
}

// findCulprit returns the first that holds.
func (j *judge) findCulprit() culprit {
	if j.slot == nil {
		return j.publisherCulprit()
	}
	if j.slot.Lost() {
		return culprit{sentence: "the slot is lost: " + j.lostReason()}
	}
	for _, suspect := range []func() culprit{j.publisherCulprit, j.unansweredCulprit, j.nobodyCulprit, j.silentHolderCulprit, j.transactionCulprit} {
		if c := suspect(); c.sentence != "" {
			return c
		}
	}
	return culprit{}
}

// cause is the culprit, else what the reader does.
func (j *judge) cause() string {
	t := &j.subject.Trend
	if j.culprit.sentence != "" || !j.slot.Active || t.ConfirmedRate == nil || t.WALRate == nil {
		return j.culprit.sentence
	}
	return fmt.Sprintf("%s is connected and confirms %s, while WAL is written at %s", j.holder(), human.BytesPerSecond(*t.ConfirmedRate), human.BytesPerSecond(*t.WALRate))
}

// cure is the culprit's, with what buys time behind it and what gives rows up
// last.
func (j *judge) cure(moreTime ...string) string {
	cure := j.culprit.cure
	if cure == "" {
		cure = fmt.Sprintf("see whether its reader catches up: `cdcpub slot status %s` in a minute", j.subject.Name)
	}
	for _, step := range append(moreTime, j.culprit.last) {
		if step != "" {
			cure += "; " + step
		}
	}
	return cure
}

// publisher is nil unless the one that holds this slot has answered.
func (j *judge) publisher() *Publisher {
	p := j.subject.Publisher
	if p == nil || p.Unanswered != "" || p.Slot != "" && p.Slot != j.subject.Name {
		return nil
	}
	return p
}

func (j *judge) publisherCulprit() culprit {
	p := j.publisher()
	switch {
	case p == nil || p.State == "standby" || p.Stall == "" && p.State != "blocked":
		return culprit{}
	case p.Stall == "":
		return culprit{sentence: publisherName(p) + " is blocked and waits for a human", cure: "see its log and /status for the cause, and remove it"}
	}
	sentence := fmt.Sprintf("%s publishes nothing: %s", publisherName(p), p.Stall)
	if !p.StallSince.IsZero() {
		sentence += ", since " + human.Moment(p.StallSince)
	}
	return culprit{sentence: sentence, cure: "remove the cause that the publisher names; it goes on by itself"}
}

func publisherName(p *Publisher) string {
	if p.Address == "" {
		return "this publisher"
	}
	return "the publisher at " + p.Address
}

func (j *judge) unansweredCulprit() culprit {
	p := j.subject.Publisher
	if p == nil || p.Unanswered == "" || j.slot.Holder == nil {
		return culprit{}
	}
	return culprit{
		sentence: fmt.Sprintf("the publisher did not answer at %s (%s); the slot is held by %s%s", p.Address, p.Unanswered, j.holder(), j.flush()),
		cure:     fmt.Sprintf("look at that process; `cdcpub slot takeover %s` ends its connection", j.subject.Name),
	}
}

func (j *judge) nobodyCulprit() culprit {
	if j.slot.Active || j.synced() || j.holdsNone() != "" {
		return culprit{}
	}
	sentence := "nobody is connected to the slot"
	switch since, inactive := j.slot.InactiveSince, j.subject.Trend.InactiveFor; {
	case since != nil:
		sentence = "nobody has been connected to the slot since " + human.Moment(*since)
	case inactive != nil && *inactive > 0:
		sentence = fmt.Sprintf("nobody has been connected to the slot for %s or longer", human.Seconds(inactive.Seconds()))
	}
	if p := j.subject.Publisher; p != nil && p.Unanswered != "" {
		sentence += fmt.Sprintf("; the publisher did not answer at %s (%s)", p.Address, p.Unanswered)
	}
	cure := "start its reader"
	if j.expected() {
		cure = "start the publisher (`cdcpub run`)"
	}
	return culprit{sentence: sentence, cure: cure,
		last: fmt.Sprintf("only if nobody needs the slot any more: `cdcpub slot drop %s`, and what it has not delivered stays undelivered", j.subject.Name)}
}

// silentHolderCulprit: somebody is connected, and confirms too little.
func (j *judge) silentHolderCulprit() culprit {
	if !j.slot.Active || j.subject.Trend.LagNotFallingFor == nil {
		return culprit{}
	}
	does := "confirms nothing"
	if t := &j.subject.Trend; t.ConfirmedRate != nil && t.WALRate != nil && *t.ConfirmedRate >= 1 {
		does = fmt.Sprintf("confirms only %s of the %s that are written", human.BytesPerSecond(*t.ConfirmedRate), human.BytesPerSecond(*t.WALRate))
	}
	cure := fmt.Sprintf("look at that process and its log; `cdcpub slot takeover %s` ends its connection", j.subject.Name)
	if h := j.slot.Holder; h != nil && h.PID != 0 {
		cure = fmt.Sprintf("look at that process and its log; SELECT pg_terminate_backend(%d) makes it connect anew", h.PID)
	}
	return culprit{sentence: fmt.Sprintf("%s is connected and %s%s", j.holder(), does, j.flush()), cure: cure}
}

// holder names the walsender's client as far as it can be seen.
func (j *judge) holder() string {
	h := j.slot.Holder
	if h == nil {
		return "somebody"
	}
	return fmt.Sprintf("PID %d%s", h.PID, known(h.ApplicationName, labelled("user ", h.User), labelled("from ", h.Address)))
}

// known puts what can be seen in parentheses.
func known(parts ...string) string {
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func labelled(label, value string) string {
	if value == "" {
		return ""
	}
	return label + value
}

// flush says what the holder has confirmed and when it was last heard. The
// time is by the client's clock, so a negative age is none.
func (j *judge) flush() string {
	h := j.slot.Holder
	if h == nil || h.FlushLSN == nil {
		return ""
	}
	text := fmt.Sprintf("; its flush_lsn is %s", *h.FlushLSN)
	if h.ReplyTime != nil {
		text += fmt.Sprintf(", its last status %s old", human.Seconds(j.sample.Server.Now.Sub(*h.ReplyTime).Seconds()))
	}
	return text
}

// transactionCulprit names a transaction before it is old enough for a finding
// of its own: while the reader is not behind, nobody else can be meant.
func (j *judge) transactionCulprit() culprit {
	t := j.holdingTransaction()
	if t == nil || j.age(t) < stepTime {
		return culprit{}
	}
	return culprit{sentence: j.describe(t), cure: endTransaction(t)}
}

// holdingTransaction returns the transaction that holds restart_lsn: the oldest
// that writes, if what is retained is mostly confirmed already. Transactions of
// every database hold restart_lsn.
func (j *judge) holdingTransaction() *Transaction {
	retained, lag := j.slot.RetainedBytes, j.slot.ConfirmedLagBytes
	if retained == nil || lag == nil {
		return nil
	}
	behind := float64(max(*lag, 0))
	if float64(*retained)-behind < smallLag || behind > float64(*retained)/4 {
		return nil
	}
	var oldest *Transaction
	for i := range j.sample.Transactions {
		t := &j.sample.Transactions[i]
		if t.writes() && (oldest == nil || t.Began.Before(oldest.Began)) {
			oldest = t
		}
	}
	return oldest
}

// longHeld is the holding transaction if it is old enough to be told of.
func (j *judge) longHeld() *Transaction {
	t := j.holdingTransaction()
	if t == nil || j.limits.LongTransaction <= 0 || j.age(t) < j.limits.LongTransaction {
		return nil
	}
	return t
}

func (t *Transaction) writes() bool { return t.Writes || t.GID != "" }

func (j *judge) age(t *Transaction) time.Duration { return j.sample.Server.Now.Sub(t.Began) }

func (j *judge) describe(t *Transaction) string {
	age := human.Seconds(j.age(t).Seconds())
	who := known(t.ApplicationName, labelled("user ", t.User), labelled("database ", t.Database))
	if t.GID != "" {
		return fmt.Sprintf("transaction %s%s was prepared %s ago and is neither committed nor rolled back", literal(t.GID), who, age)
	}
	text := fmt.Sprintf("PID %d%s has had a transaction open for %s", t.PID, who, age)
	if t.State != "" {
		text += ", " + t.State
	}
	if t.QueryStarted != nil {
		text += ", last query begun " + human.Seconds(j.sample.Server.Now.Sub(*t.QueryStarted).Seconds()) + " ago"
	}
	return text
}

func endTransaction(t *Transaction) string {
	if t.GID != "" {
		return fmt.Sprintf("in database %s: COMMIT PREPARED %[2]s or ROLLBACK PREPARED %[2]s, as its coordinator decided", t.Database, literal(t.GID))
	}
	return fmt.Sprintf("ask its owner, or end it: SELECT pg_terminate_backend(%d) rolls it back", t.PID)
}

func (j *judge) longTransaction() *Finding {
	if t := j.longHeld(); t != nil && t.GID == "" {
		return j.heldBy(LongTransaction, t)
	}
	return nil
}

func (j *judge) preparedTransaction() *Finding {
	if t := j.longHeld(); t != nil && t.GID != "" {
		return j.heldBy(PreparedTransaction, t)
	}
	return nil
}

// heldBy informs of a transaction: its WAL is not the reader's to let go.
func (j *judge) heldBy(id FindingID, t *Transaction) *Finding {
	held := float64(*j.slot.RetainedBytes) - float64(max(*j.slot.ConfirmedLagBytes, 0))
	f := info(id, fmt.Sprintf("has restart_lsn held %s back by an old transaction; its reader is not behind", human.Bytes(held)), j.describe(t), endTransaction(t))
	value := j.age(t).Seconds()
	f.Value, f.Unit = &value, "seconds"
	return f
}
