package scenarios

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// Codes of Kafka's protocol (org.apache.kafka.common.protocol.Errors).
const (
	unknownServerError      = -1
	duplicateSequenceNumber = 46
	newestErrorCode         = 136
	codeOfTheFuture         = newestErrorCode + 1
)

var (
	// recordRefusals are those of records; a human must act.
	recordRefusals = []int16{
		10, // MESSAGE_TOO_LARGE
		17, // INVALID_TOPIC_EXCEPTION
		18, // RECORD_LIST_TOO_LARGE
		32, // INVALID_TIMESTAMP
		87, // INVALID_RECORD
	}
	// fencings tell that somebody else publishes; a human must act.
	fencings = []int16{
		53,  // TRANSACTIONAL_ID_AUTHORIZATION_FAILED
		90,  // PRODUCER_FENCED
		105, // TRANSACTIONAL_ID_NOT_FOUND
	}
	// afterAppend are errors that do not exclude that the batch was appended.
	afterAppend = []int16{
		unknownServerError,
		6,  // NOT_LEADER_OR_FOLLOWER
		7,  // REQUEST_TIMED_OUT
		13, // NETWORK_EXCEPTION
		20, // NOT_ENOUGH_REPLICAS_AFTER_APPEND
		56, // KAFKA_STORAGE_ERROR
		57, // LOG_DIR_NOT_FOUND
		codeOfTheFuture,
	}
	// ofCoordinators are answers to those who ask for a producer id.
	ofCoordinators = []int16{
		unknownServerError,
		7,  // REQUEST_TIMED_OUT
		14, // COORDINATOR_LOAD_IN_PROGRESS
		15, // COORDINATOR_NOT_AVAILABLE
		16, // NOT_COORDINATOR
		41, // NOT_CONTROLLER
		51, // CONCURRENT_TRANSACTIONS
	}
)

// survivable is every code, in the order of the schedule's seed, after which
// the publisher goes on by itself. DUPLICATE_SEQUENCE_NUMBER is not among them:
// for a batch that is not there it would be a lie.
func (w *chaosWorld) survivable(f chaosFault) []int16 {
	var codes []int16
	for code := int16(unknownServerError); code <= codeOfTheFuture; code++ {
		if code != 0 && code != duplicateSequenceNumber && !slices.Contains(recordRefusals, code) && !slices.Contains(fencings, code) {
			codes = append(codes, code)
		}
	}
	w.random(f).Shuffle(len(codes), func(i, j int) { codes[i], codes[j] = codes[j], codes[i] })
	return codes
}

// random follows from the seed and the fault.
func (w *chaosWorld) random(f chaosFault) *rand.Rand {
	return rand.New(rand.NewPCG(w.schedule.seed, uint64(f.at)))
}

// refuseProduce: every code once, for every other batch.
func (w *chaosWorld) refuseProduce(f chaosFault) error {
	w.endAnswer = w.options.fake.Refuse(w.topic, chaosPartitions, 2, w.survivable(f))
	return nil
}

func (w *chaosWorld) refuseAppended(f chaosFault) error {
	codes := slices.Clone(afterAppend)
	w.random(f).Shuffle(len(codes), func(i, j int) { codes[i], codes[j] = codes[j], codes[i] })
	w.endAnswer = w.options.fake.AppendAndRefuse(pick(w.random(f), 2, 3, 7), codes)
	return nil
}

// slowAcks: some come later than kafka.request_timeout allows.
func (w *chaosWorld) slowAcks(f chaosFault) error {
	w.endAnswer = w.options.fake.Slow(uint64(f.at), tenth, 4*time.Second)
	return nil
}

// refuseRecords: each partition's records are refused until a human acts.
func (w *chaosWorld) refuseRecords(f chaosFault) error {
	code := pick(w.random(f), recordRefusals...)
	w.note("records are refused with %d", code)
	w.endAnswer = w.options.fake.Refuse(w.topic, chaosPartitions, 1, []int16{code})
	return nil
}

func (w *chaosWorld) fenceProducer(f chaosFault) error {
	code := pick(w.random(f), fencings...)
	w.note("the producer is fenced with %d", code)
	w.endAnswer = w.options.fake.Refuse(w.topic, chaosPartitions, 1, []int16{code})
	return nil
}

// refuseClaims holds up the session that begins after the one that it ends.
func (w *chaosWorld) refuseClaims(f chaosFault) error {
	w.endAnswer = w.options.fake.RefuseClaims(2, ofCoordinators)
	return w.terminateWalsender(f)
}

func (w *chaosWorld) endAnswers(f chaosFault) error {
	w.note("%s: %d answers", f.kind, w.endAnswer())
	return nil
}

func (w *chaosWorld) endAnswersAndRestart(f chaosFault) error {
	return errors.Join(w.endAnswers(f), w.restart())
}

// shuffleLeaders moves them until the fault is over.
func (w *chaosWorld) shuffleLeaders(f chaosFault) error {
	for over := time.Now().Add(f.lasts); w.ctx.Err() == nil; pause(w.ctx, 3*tenth) {
		w.options.fake.ShuffleLeaders()
		if time.Now().After(over) {
			break
		}
	}
	return nil
}
