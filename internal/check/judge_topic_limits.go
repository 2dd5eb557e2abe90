package check

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/cdcpub/cdcpub/internal/human"
)

// recordRoom is what a record needs besides its payload: the batch around it,
// key and headers of ordinary size.
const recordRoom = 1024

// messageSize: Kafka compares the compressed batch with the limit. A batch
// that is too large is halved until it fits; a single record cannot be.
func (j *judge) messageSize(t *Topic) outcome {
	limit, known := t.number("max.message.bytes")
	if !known {
		return unset("max.message.bytes")
	}
	largest, rows := j.largestPayload()
	size := human.Bytes(limit)
	if rows > 0 && largest+recordRoom > limit {
		need := largest + largest/10 + recordRoom
		o := warn("max.message.bytes is %s, and the outbox has a payload of %s: unless compression makes it fit, the broker refuses it and the stream stops there", size, human.Bytes(largest))
		if !j.Setup.Compressed {
			o = fail("max.message.bytes is %s, and the outbox has a payload of %s: the broker refuses it, and the stream stops there", size, human.Bytes(largest))
		}
		return o.cured("raise the limit, and the consumers' fetch sizes with it", j.configCommand(t.Name, fmt.Sprintf("max.message.bytes=%d", need)))
	}
	if j.Setup.BatchBytes > limit {
		return warn("max.message.bytes is %s, and kafka.batch_bytes is %s: batches that compression does not make fit are refused and sent again in halves", size, human.Bytes(j.Setup.BatchBytes)).
			cured(fmt.Sprintf("set kafka.batch_bytes to %d or less, or raise the limit", max(1, limit-recordRoom)), j.configCommand(t.Name, fmt.Sprintf("max.message.bytes=%d", j.Setup.BatchBytes+recordRoom)))
	}
	text := fmt.Sprintf("max.message.bytes %s, batches %s", size, human.Bytes(j.Setup.BatchBytes))
	if rows > 0 {
		text += fmt.Sprintf(", largest of %s payloads %s", human.Count(rows), human.Bytes(largest))
	}
	return ok("%s", text)
}

// largestPayload is in bytes, of the rows that were read.
func (j *judge) largestPayload() (bytes, rows int64) {
	for i := range j.Postgres.Tables {
		t := &j.Postgres.Tables[i]
		bytes, rows = max(bytes, t.LargestPayload), rows+t.PayloadRows
	}
	return bytes, rows
}

func (j *judge) cleanup(t *Topic) outcome {
	policy := t.Configs["cleanup.policy"]
	switch {
	case policy == "":
		return unset("cleanup.policy")
	case strings.Contains(policy, "compact"):
		return warn("cleanup.policy is %s: of each aggregate only the newest event is sure to stay, and an event with a NULL payload (a tombstone) removes the aggregate", policy).
			cured("right for a topic that holds the last state; for a history of events set delete", j.configCommand(t.Name, "cleanup.policy=delete"))
	}
	return ok("%s", policy)
}

// backlog is how old the oldest row that is not confirmed may be. unknown says
// why there is no number although there may be a backlog.
func (j *judge) backlog() (age time.Duration, unknown string) {
	if j.Postgres.Sample == nil {
		return 0, "the slot could not be read"
	}
	s := j.slot
	switch {
	case s == nil, s.ConfirmedLagBytes != nil && *s.ConfirmedLagBytes <= 0:
		return 0, ""
	case s.Active:
		return 0, ""
	case s.InactiveSince != nil:
		return max(0, j.Postgres.Sample.Server.Now.Sub(*s.InactiveSince)), ""
	}
	return 0, fmt.Sprintf("PostgreSQL %s does not know since when slot %s has been inactive", j.Postgres.Sample.Server.Version, s.Name)
}

// stamp is what records carry as their time.
func (j *judge) stamp() string {
	if column := j.Setup.Route.Columns.Timestamp.Name; column != "" {
		return "the time in column " + column
	}
	return "the commit time"
}

// timestamps: brokers refuse a record whose timestamp is out of their range.
func (j *judge) timestamps(t *Topic) outcome {
	kind := t.Configs["message.timestamp.type"]
	if kind == "" {
		return unset("message.timestamp.type")
	}
	if kind == "LogAppendTime" {
		return ok("LogAppendTime: the brokers put their own time in place of %s", j.stamp())
	}
	before, limited := t.limit("message.timestamp.before.max.ms")
	if !limited {
		before, limited = t.limit("message.timestamp.difference.max.ms") // Kafka before 3.6
	}
	if limited {
		if age, _ := j.backlog(); age > before {
			return fail("the brokers refuse records older than %s, the slot has been inactive for %s, and records carry %s: the stream would stop at the first row that is too old", human.Seconds(before.Seconds()), human.Seconds(age.Seconds()), j.stamp()).
				cured("lift the limit before cdcpub starts", j.configCommand(t.Name, "message.timestamp.before.max.ms=9223372036854775807"))
		}
		return warn("the brokers refuse records older than %s, and records carry %s: after an outage of that length the stream stops", human.Seconds(before.Seconds()), j.stamp()).
			cured("lift the limit", j.configCommand(t.Name, "message.timestamp.before.max.ms=9223372036854775807"))
	}
	if after, limited := t.limit("message.timestamp.after.max.ms"); limited {
		return ok("records carry %s; refused only if more than %s in the brokers' future", j.stamp(), human.Seconds(after.Seconds()))
	}
	return ok("records carry %s; any is accepted", j.stamp())
}

// limit is a span in milliseconds; false if there is none. The largest number
// stands for none.
func (t *Topic) limit(setting string) (time.Duration, bool) {
	ms, known := t.number(setting)
	if !known || ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return 0, false
	}
	return time.Duration(ms) * time.Millisecond, true
}

// shortestRetention is what a consumer's outage overnight may take.
const shortestRetention = 24 * time.Hour

// retention: Kafka deletes by the timestamps of records, so what is published
// late is deleted early.
func (j *judge) retention(t *Topic) outcome {
	policy := t.Configs["cleanup.policy"]
	if policy != "" && !strings.Contains(policy, "delete") {
		return ok("nothing is deleted by age (cleanup.policy %s)", policy)
	}
	keep, limited := t.limit("retention.ms")
	if _, known := t.number("retention.ms"); !known {
		return unset("retention.ms")
	}
	size := ""
	if n, known := t.number("retention.bytes"); known && n >= 0 {
		size = fmt.Sprintf(", and no more than %s in a partition", human.Bytes(n))
	}
	if !limited {
		return ok("records are kept for ever%s", size)
	}
	kept := human.Seconds(keep.Seconds())
	from := j.stamp()
	if t.Configs["message.timestamp.type"] == "LogAppendTime" {
		from = "the broker has them"
	}
	age, unknown := j.backlog()
	switch {
	case from == j.stamp() && age > keep:
		return warn("records are deleted %s after %s, and the slot has been inactive for %s: what is published of that time may be deleted before consumers read it", kept, from, human.Seconds(age.Seconds())).
			cured("keep records longer before cdcpub starts", j.configCommand(t.Name, fmt.Sprintf("retention.ms=%d", (2*age).Milliseconds())))
	case keep < shortestRetention:
		return warn("records are deleted %s after %s%s: a consumer that is away for longer never sees them", kept, from, size).
			cured("keep records for longer than any consumer may be away, for example a week", j.configCommand(t.Name, "retention.ms=604800000"))
	case from == j.stamp() && unknown != "":
		return ok("records are kept for %s after %s%s; the age of the backlog is not known (%s)", kept, from, size, unknown)
	}
	return ok("records are kept for %s after %s%s", kept, from, size)
}
