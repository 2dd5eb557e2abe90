package publisher

import (
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cdcpub/cdcpub/internal/pipeline"
	"github.com/cdcpub/cdcpub/wal"
)

// EndCause is one of the few reasons why a session ends.
type EndCause string

// The causes. Those of the last group need a human.
const (
	EndStop            EndCause = "stop"             // asked to, and everything was delivered
	EndCancelled       EndCause = "cancelled"        // the whole process ends at once
	EndShutdownTimeout EndCause = "shutdown_timeout" // asked to, and it took too long

	EndServerStopping EndCause = "server_stopping" // PostgreSQL shuts down
	EndServerEnded    EndCause = "server_ended"    // PostgreSQL ended the stream without an error
	EndTerminated     EndCause = "terminated"      // pg_terminate_backend (SQLSTATE 57P01)
	EndPostgresError  EndCause = "postgres_error"  // another error that PostgreSQL reported
	EndPostgresSilent EndCause = "postgres_silent" // not heard, and not seen from outside
	EndConnectionLost EndCause = "connection_lost" // of PostgreSQL
	EndSlotTaken      EndCause = "slot_taken"      // another process has the slot, or nobody
	EndUnknownTable   EndCause = "unknown_table"   // a row of a table that the catalogs did not explain
	EndRecheck        EndCause = "recheck"         // the publication has changed

	EndRefused       EndCause = "refused"       // slot, publication or tables are not as they must be
	EndMalformed     EndCause = "malformed"     // a message that pgoutput may not send
	EndUnpublishable EndCause = "unpublishable" // a row that cannot become a record
	EndRejected      EndCause = "rejected"      // a record that Kafka refuses
	EndKafka         EndCause = "kafka"         // fenced, or a topic is not the one it was
	EndDefect        EndCause = "defect"        // of cdcpub itself
	EndOther         EndCause = "other"
)

// EndCauses returns every cause there is.
func EndCauses() []EndCause {
	return []EndCause{
		EndStop, EndCancelled, EndShutdownTimeout,
		EndServerStopping, EndServerEnded, EndTerminated, EndPostgresError, EndPostgresSilent, EndConnectionLost,
		EndSlotTaken, EndUnknownTable, EndRecheck,
		EndRefused, EndMalformed, EndUnpublishable, EndRejected, EndKafka, EndDefect, EndOther,
	}
}

// endOf names the cause of an end for counting; what follows from it is
// classify's to say. Typed errors decide, and what was found first wins: a
// server that stops may take the connection with it.
func endOf(err error) EndCause {
	var stops stopped
	switch reported, _ := errors.AsType[*pgconn.PgError](err); {
	case err == nil:
		return EndStop
	case errors.Is(err, errShutdownTimeout):
		return EndShutdownTimeout
	case errors.Is(err, errRecheck):
		return EndRecheck
	case errors.Is(err, wal.ErrServerStopping):
		return EndServerStopping
	case errors.Is(err, wal.ErrServerEnded):
		return EndServerEnded
	case errors.Is(err, wal.ErrSilent):
		return EndPostgresSilent
	case errors.Is(err, wal.ErrSlotTaken), isA[*wal.SlotInUseError](err):
		return EndSlotTaken
	case isA[*wal.StopError](err):
		return EndRefused
	case isA[*wal.MalformedError](err):
		return EndMalformed
	case isA[*wal.UnknownRelationError](err):
		return EndUnknownTable
	case isA[*pipeline.UnpublishableError](err):
		return EndUnpublishable
	case isA[*pipeline.RejectedError](err):
		return EndRejected
	case isA[*pipeline.ImpossibleError](err):
		return EndDefect
	case errors.As(err, &stops):
		return EndKafka
	case reported != nil && reported.Code == "57P01": // admin_shutdown
		return EndTerminated
	case reported != nil:
		return EndPostgresError
	case isA[net.Error](err), errors.Is(err, net.ErrClosed), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return EndConnectionLost
	}
	return EndOther
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
