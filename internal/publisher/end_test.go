package publisher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/internal/kafka"
	"github.com/cdcpub/cdcpub/internal/pipeline"
	"github.com/cdcpub/cdcpub/wal"
)

func TestCausesOfEnds(t *testing.T) {
	malformed := &wal.MalformedError{Type: 'I', Cause: io.ErrUnexpectedEOF}
	cases := []struct {
		err  error
		want EndCause
	}{
		{nil, EndStop},
		{errShutdownTimeout, EndShutdownTimeout},
		{errRecheck, EndRecheck},
		{wal.ErrServerStopping, EndServerStopping},
		{errors.Join(wal.ErrServerStopping, io.EOF), EndServerStopping},
		{wal.ErrServerEnded, EndServerEnded},
		{fmt.Errorf("%w (20s), and looking at it failed: %w", wal.ErrSilent, &net.OpError{Op: "dial", Err: io.EOF}), EndPostgresSilent},
		{fmt.Errorf("%w: slot s is gone", wal.ErrSlotTaken), EndSlotTaken},
		{&wal.SlotInUseError{Slot: "s", Cause: &pgconn.PgError{Code: "55006"}}, EndSlotTaken},
		{stopFor(wal.PublicationTooNew), EndRefused},
		{&wal.StopError{Reason: wal.AccessDenied, Cause: &pgconn.PgError{Code: "42501"}}, EndRefused},
		{malformed, EndMalformed},
		{errors.Join(malformed, context.Canceled), EndMalformed},
		{unknownRelation(1, 100), EndUnknownTable},
		{&pipeline.UnpublishableError{Table: outbox, Cause: io.EOF}, EndUnpublishable},
		{rejectedAt(7), EndRejected},
		{&kafka.StopError{Topic: "t", What: "fenced"}, EndKafka},
		{&pipeline.ImpossibleError{Cause: io.EOF}, EndDefect},
		{fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: "57P01"}), EndTerminated},
		{&pgconn.PgError{Code: "53200"}, EndPostgresError},
		{io.ErrUnexpectedEOF, EndConnectionLost},
		{fmt.Errorf("end replication: %w", os.ErrDeadlineExceeded), EndConnectionLost},
		{fmt.Errorf("send status update: %w", &net.OpError{Op: "write", Err: os.ErrClosed}), EndConnectionLost},
		{errors.New("the producer ended without an error"), EndOther},
	}
	named := []EndCause{EndCancelled} // which the context decides
	for _, c := range cases {
		if got := endOf(c.err); got != c.want {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
		named = append(named, c.want)
	}
	for _, cause := range EndCauses() {
		if !slices.Contains(named, cause) {
			t.Errorf("no error of this test ends with %s", cause)
		}
	}
	for _, cause := range named {
		if !slices.Contains(EndCauses(), cause) {
			t.Errorf("%s is not among EndCauses", cause)
		}
	}
}
