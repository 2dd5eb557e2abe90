package publisher

import (
	"encoding/json"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cdcpub/cdcpub/internal/pipeline"
)

func TestStallsOfPartitionsAreKindsOfTheirOwn(t *testing.T) {
	began := time.Now()
	for _, c := range []struct {
		partition pipeline.PartitionStatus
		want      StallKind
		cause     string
	}{
		{pipeline.PartitionStatus{Topic: "t", Partition: 3, Stall: "why", StallSince: began}, StallPartition, "topic t partition 3: why"},
		{pipeline.PartitionStatus{Topic: "t", Partition: -1, Stall: "why", StallSince: began}, StallPartition, "topic t: why"},
		{pipeline.PartitionStatus{Topic: "t", Partition: 3, Stall: "why", StallSince: began, LeaseLost: true}, StallLease, "topic t partition 3: why"},
	} {
		stall := partitionStall(&c.partition)
		if stall.Kind != c.want || stall.Cause != c.cause || !stall.Since.Equal(began) {
			t.Errorf("%+v: %+v", c.partition, stall)
		}
	}
}

func TestAWalsenderThatStandsStillIsNamedAfterItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 15 * time.Second
		if stall := walsenderStall(timeout, timeout); stall != nil {
			t.Errorf("named at once: %+v", stall)
		}
		stall := walsenderStall(time.Minute, timeout)
		if stall == nil || stall.Kind != StallPostgresSilent || time.Since(stall.Since) != time.Minute {
			t.Errorf("after a minute: %+v", stall)
		}
	})
}

func TestEveryStateWithoutASessionHasItsKind(t *testing.T) {
	for name, want := range map[State]StallKind{Connecting: StallConnecting, Standby: StallStandby, Blocked: StallBlocked, Stopped: StallStopped} {
		p, _ := observed(nil)
		p.enter(name, io.EOF)
		stall := p.Status().Stall
		if stall == nil || stall.Kind != want || !slices.Contains(StallKinds(), want) {
			t.Errorf("%s: %+v", name, stall)
		}
	}
}

// Pages, dashboards and `cdcpub slot status` read them.
func TestNamesInTheStatusDocumentAreStable(t *testing.T) {
	at := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	partition := int32(3)
	document, err := json.Marshal(Status{
		State: Streaming, Since: at, Role: "active", Slot: "s", Publication: "p", ConfirmedLSN: "0/1", ReceivedLSN: "0/2",
		LastConfirmed: at, LastAcknowledged: at, Transactions: 1, RowsRead: 2, BytesRead: 3, Sessions: 1,
		SessionEnds: map[EndCause]int{EndTerminated: 1}, Acked: 4,
		Stall: &Stall{Kind: StallPartition, Cause: "c", Since: at, Topic: "t", Partition: &partition},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"state":"streaming","since":"2026-11-30T08:00:00Z","role":"active","ready":false,` +
		`"stall":{"kind":"partition","cause":"c","since":"2026-11-30T08:00:00Z","topic":"t","partition":3},` +
		`"slot":"s","publication":"p","confirmed_lsn":"0/1","received_lsn":"0/2",` +
		`"last_confirmed":"2026-11-30T08:00:00Z","last_acknowledged":"2026-11-30T08:00:00Z",` +
		`"transactions":1,"rows_read":2,"bytes_read":3,"sessions":1,"session_ends":{"terminated":1},` +
		`"records_acknowledged":4,"in_flight":{"records":0,"bytes":0,"full":false}}`
	if string(document) != want {
		t.Errorf("got  %s\nwant %s", document, want)
	}
}
