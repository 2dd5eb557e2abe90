package kafka

import "github.com/IBM/sarama"

// event is something that can happen in a simulation.
type event uint8

const (
	evNothing event = iota // left out by the search for a shorter schedule
	evStart
	evOpen
	evBatch
	evStreamEnds
	evTurn
	evResults
	evClose
	evClosed
	evCleanEnd
	evStatus
	evStop
	evStopDeadline
	evConnectionLost
	evSilence
	evTerminated
	evExpired
	evNotice
	evFreeze
	evThaw
	evKill
	evKilledHost
	evTakeover
	evServerCrash
	evCheckpoint

	evDepart
	evGateClosed
	evDialFails
	evArrive
	evReplicas
	evAnswer
	evIncomplete
	evCut
	evTimeout
	evLate
	evLateAppended
	evLateGone
	evLateRefused
	evLateRepeat

	evControl
	evLookup
	evLookupError
	evTopicError
	evNewID
	evClaim
	evClaimRefused
	evClaimUnanswered
	evClaimPostponed
	evClaimForbidden
	evLateClaim
	evLook
	evLookTaken
	evLookFails
	evControlFails

	evLeader
	evTruncated
	evBrokerRestart
	evForget
	evTighten
	evCure
	evSmaller
	evCoordinator

	evFaultRetry
	evFaultOperator
	evFaultReject
	evFaultSplit
	evFaultBump
	evFaultFresh
	evFaultFenced
	evOutOfOrder
	evOldEpoch
	evRefusedRecord
	evTooLarge
	evRejection
	evProducerFailed
	evUnfenced

	evMoment
	evSecond
	evMinute
	evHours

	// What was held against the promises when the schedule was over.
	evJudgedRow
	evJudgedBatch
	evJudgedRecord
	evJudgedSample
	evJudgedFenced

	eventKinds
)

var eventNames = [eventKinds]string{
	evNothing: "nothing", evStart: "process starts", evOpen: "session opens", evBatch: "WAL events delivered",
	evStreamEnds: "stream ends for a shutdown", evTurn: "round of the producer", evResults: "outcomes delivered",
	evClose: "producer is closed", evClosed: "session is over", evCleanEnd: "session ended with all delivered",
	evStatus: "position confirmed to PostgreSQL", evStop: "shutdown asked for", evStopDeadline: "shutdown_timeout passes",
	evConnectionLost: "replication connection lost", evSilence: "replication connection goes silent",
	evTerminated: "slot taken away, session unaware", evExpired: "server gives the slot up", evNotice: "session hears that it is over",
	evFreeze: "process freezes", evThaw: "process wakes up", evKill: "process killed", evKilledHost: "host dies with its process",
	evTakeover: "another process opens the session", evServerCrash: "PostgreSQL crashes", evCheckpoint: "PostgreSQL stores the slot",
	evDepart: "request written", evGateClosed: "request held back by the gate", evDialFails: "connect refused",
	evArrive: "request handled", evReplicas: "replicas confirm later", evAnswer: "answer delivered",
	evIncomplete: "answer lacks a partition", evCut: "connection cut", evTimeout: "request timed out",
	evLate: "late request handled", evLateAppended: "late request appended, or known", evLateGone: "late requests lost", evLateRefused: "late request refused for its epoch or sequence",
	evLateRepeat: "late repeat, where nothing shuts it out",
	evControl:    "control request handled", evLookup: "metadata read", evLookupError: "metadata request fails", evTopicError: "metadata has an error code",
	evNewID: "producer id given", evClaim: "epoch given", evClaimRefused: "claim fenced",
	evClaimUnanswered: "epoch given, answer lost", evClaimPostponed: "coordinator away", evClaimForbidden: "claim forbidden",
	evLateClaim: "late claim takes effect", evLook: "PostgreSQL says who has the slot: this session",
	evLookTaken: "PostgreSQL says who has the slot: not this session", evLookFails: "PostgreSQL cannot be asked who has the slot", evControlFails: "control connection fails",
	evLeader: "leader moves", evTruncated: "leader moves, unconfirmed batches vanish", evBrokerRestart: "broker restarts",
	evForget: "broker forgets producers", evTighten: "topic refuses a record", evCure: "topic takes it again",
	evSmaller: "largest batch changes", evCoordinator: "coordinator goes or comes",
	evFaultRetry: "fault: retry", evFaultOperator: "fault: operator", evFaultReject: "fault: reject", evFaultSplit: "fault: too large",
	evFaultBump: "fault: sequence", evFaultFresh: "fault: producer id", evFaultFenced: "fault: fenced",
	evOutOfOrder: "broker refuses a sequence", evOldEpoch: "broker refuses an epoch", evRefusedRecord: "broker refuses a record",
	evTooLarge: "broker refuses a size", evRejection: "rejection reported", evProducerFailed: "producer ends with an error", evUnfenced: "session goes on without a fence",
	evMoment: "a moment passes", evSecond: "seconds pass", evMinute: "a minute passes", evHours: "hours pass",
	evJudgedRow: "judged: row of the outbox, delivered and in order", evJudgedBatch: "judged: batch in a log, by whom and after what it was sent",
	evJudgedRecord: "judged: record as a consumer sees it", evJudgedSample: "judged: confirmed position against the ends of the logs",
	evJudgedFenced: "judged: schedule with a fence in which nothing may come late",
}

var faultEvents = map[class]event{
	classRetry: evFaultRetry, classOperator: evFaultOperator, classReject: evFaultReject, classSplit: evFaultSplit,
	classBump: evFaultBump, classFresh: evFaultFresh, classFenced: evFaultFenced,
}

// eventCounts says how often each event happened.
type eventCounts [eventKinds]int64

func (c *eventCounts) count(e event) { c[e]++ }

func (c *eventCounts) add(other *eventCounts) {
	for e := range c {
		c[e] += other[e]
	}
}

// countVerdict counts what a broker refuses in earnest.
func (c *eventCounts) countVerdict(code sarama.KError) {
	switch code {
	case sarama.ErrNoError:
	case sarama.ErrOutOfOrderSequenceNumber:
		c.count(evOutOfOrder)
	case sarama.ErrInvalidProducerEpoch:
		c.count(evOldEpoch)
	case sarama.ErrMessageSizeTooLarge:
		c.count(evTooLarge)
	default:
		c.count(evRefusedRecord)
	}
}
