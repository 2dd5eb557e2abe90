package kafka

import (
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

// class says what the producer does after an error code.
type class uint8

const (
	// classRetry sends the identical batch again, without limit.
	classRetry class = iota + 1
	// classOperator is classRetry, slower: only a human can cure the cause.
	classOperator
	// classReject means that a record of the batch is at fault.
	classReject
	// classSplit is classReject for size: a batch of several records is
	// halved, since they are too large only together.
	classSplit
	// classBump sends the same records again under the next epoch of the same
	// producer id, which also shuts out late requests of the old epoch.
	classBump
	// classFresh sends the same records again under another producer id.
	classFresh
	// classFenced ends the producer: somebody else publishes.
	classFenced
	// classDuplicate is success: an earlier attempt was appended.
	classDuplicate
	// classApart: the request could not be encoded because of one of its
	// batches; each goes in a request of its own.
	classApart
)

// rule is one line of the table.
type rule struct {
	code sarama.KError
	name string
	class
	// unsure: the batch may have been appended in spite of the error.
	unsure bool
	// reason explains the class. It is part of the status text, so for
	// classOperator it says what to do.
	reason string
}

func (r rule) String() string {
	if r.name == "" {
		return r.reason
	}
	return fmt.Sprintf("%s (%d): %s", r.name, int16(r.code), r.reason)
}

// notProduce is the reason of codes that no broker gives to a produce or
// InitProducerID request. Should one come anyway, we know nothing, and what is
// unknown is tried again.
const notProduce = "not an answer to our requests, so nothing is known but that it failed"

// rules has every error code of the protocol (Kafka 4.x) exactly once.
// Source: org.apache.kafka.common.protocol.Errors, and what the broker does
// before it answers (ReplicaManager, LogValidator, ProducerAppendInfo).
var rules = [...]rule{
	{-1, "UNKNOWN_SERVER_ERROR", classRetry, true, "the broker failed in a way it cannot name; the append may have happened"},
	{1, "OFFSET_OUT_OF_RANGE", classRetry, true, notProduce},
	{2, "CORRUPT_MESSAGE", classRetry, false, "bytes damaged on the way, or a failing disk; the batch is good when it leaves us"},
	{3, "UNKNOWN_TOPIC_OR_PARTITION", classOperator, false, "the topic or partition does not exist: create it, by `cdcpub init --types TYPE` where kafka.create_topics is set, else by kafka-topics.sh --create"},
	{4, "INVALID_FETCH_SIZE", classRetry, true, notProduce},
	{5, "LEADER_NOT_AVAILABLE", classRetry, false, "no broker leads the partition: an election is going on, or its brokers are down and must be brought back"},
	{6, "NOT_LEADER_OR_FOLLOWER", classRetry, true, "the partition has another leader now; this one may have appended before it lost the role"},
	{7, "REQUEST_TIMED_OUT", classRetry, true, "the leader has appended the batch, but not every in-sync replica has confirmed it in time; if it lasts, see whether the brokers of the other replicas and a majority of the controllers run"},
	{8, "BROKER_NOT_AVAILABLE", classRetry, false, "the broker is not there yet"},
	{9, "REPLICA_NOT_AVAILABLE", classRetry, false, "a replica is down"},
	{10, "MESSAGE_TOO_LARGE", classSplit, false, "the record alone is larger than the topic (max.message.bytes) or the broker (message.max.bytes) allows"},
	{11, "STALE_CONTROLLER_EPOCH", classRetry, true, notProduce},
	{12, "OFFSET_METADATA_TOO_LARGE", classRetry, true, notProduce},
	{13, "NETWORK_EXCEPTION", classRetry, true, "the broker lost a connection of its own; the append may have happened"},
	{14, "COORDINATOR_LOAD_IN_PROGRESS", classRetry, false, "the coordinator loads its state, as on every fresh cluster"},
	{15, "COORDINATOR_NOT_AVAILABLE", classRetry, false, "the coordinator is not there yet"},
	{16, "NOT_COORDINATOR", classRetry, false, "the coordinator has moved"},
	{17, "INVALID_TOPIC_EXCEPTION", classReject, false, "no topic of this name may be written to; the name comes from the record, and no operator can create it"},
	{18, "RECORD_LIST_TOO_LARGE", classSplit, false, "the record alone is larger than a log segment: raise segment.bytes of the topic, or log.segment.bytes of the brokers"},
	{19, "NOT_ENOUGH_REPLICAS", classRetry, false, "fewer replicas are in sync than the topic's min.insync.replicas demands; bring the missing brokers back"},
	{20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", classRetry, true, "appended, but to fewer replicas than the topic's min.insync.replicas demands; bring the missing brokers back"},
	{21, "INVALID_REQUIRED_ACKS", classOperator, false, "the broker does not accept acks=all: it is no Kafka broker or a proxy changes requests"},
	{22, "ILLEGAL_GENERATION", classRetry, true, notProduce},
	{23, "INCONSISTENT_GROUP_PROTOCOL", classRetry, true, notProduce},
	{24, "INVALID_GROUP_ID", classRetry, true, notProduce},
	{25, "UNKNOWN_MEMBER_ID", classRetry, true, notProduce},
	{26, "INVALID_SESSION_TIMEOUT", classRetry, true, notProduce},
	{27, "REBALANCE_IN_PROGRESS", classRetry, true, notProduce},
	{28, "INVALID_COMMIT_OFFSET_SIZE", classRetry, true, notProduce},
	{29, "TOPIC_AUTHORIZATION_FAILED", classOperator, false, "grant WRITE and DESCRIBE on the topic to our principal"},
	{30, "GROUP_AUTHORIZATION_FAILED", classRetry, true, notProduce},
	{31, "CLUSTER_AUTHORIZATION_FAILED", classOperator, false, "grant IDEMPOTENT_WRITE on the cluster to our principal (Kafka before 2.8)"},
	{32, "INVALID_TIMESTAMP", classReject, false, "the timestamp is outside what the topic allows: raise message.timestamp.before.max.ms and message.timestamp.after.max.ms of the topic"},
	{33, "UNSUPPORTED_SASL_MECHANISM", classOperator, false, "the listener does not offer the mechanism: correct kafka.sasl.mechanism"},
	{34, "ILLEGAL_SASL_STATE", classOperator, false, "the listener has no SASL: use one that has, or take kafka.sasl away"},
	{35, "UNSUPPORTED_VERSION", classOperator, false, "the broker is too old or too new for every request version we speak"},
	{36, "TOPIC_ALREADY_EXISTS", classRetry, true, notProduce},
	{37, "INVALID_PARTITIONS", classRetry, true, notProduce},
	{38, "INVALID_REPLICATION_FACTOR", classRetry, true, notProduce},
	{39, "INVALID_REPLICA_ASSIGNMENT", classRetry, true, notProduce},
	{40, "INVALID_CONFIG", classRetry, true, notProduce},
	{41, "NOT_CONTROLLER", classRetry, false, "the controller has moved"},
	{42, "INVALID_REQUEST", classOperator, false, "the broker calls the request malformed: see its log; a proxy may change requests"},
	{43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", classOperator, false, "the topic keeps a message format from before Kafka 0.11: raise message.format.version"},
	{44, "POLICY_VIOLATION", classOperator, false, "a policy of the cluster forbids the write: see the broker log"},
	{45, "OUT_OF_ORDER_SEQUENCE_NUMBER", classBump, false, "the broker lost or never had our sequence; a higher epoch starts at 0 and shuts out late requests"},
	{46, "DUPLICATE_SEQUENCE_NUMBER", classDuplicate, false, "the batch was appended by an earlier attempt"},
	{47, "INVALID_PRODUCER_EPOCH", classFresh, false, "the broker knows a higher epoch of our producer id"},
	{48, "INVALID_TXN_STATE", classFresh, false, "the broker sees an open transaction of our producer id; we have none, so the id is spoilt"},
	{49, "INVALID_PRODUCER_ID_MAPPING", classFresh, false, "the broker ties our producer id to a transactional id; we have none, so the id is spoilt"},
	{50, "INVALID_TRANSACTION_TIMEOUT", classRetry, true, notProduce},
	{51, "CONCURRENT_TRANSACTIONS", classRetry, false, "the coordinator is busy with the same id"},
	{52, "TRANSACTION_COORDINATOR_FENCED", classRetry, true, notProduce},
	{53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", classFenced, false, "an answer for transactional producers: somebody else uses our producer id"},
	{54, "SECURITY_DISABLED", classOperator, false, "the listener has no security, but kafka.tls is configured"},
	{55, "OPERATION_NOT_ATTEMPTED", classRetry, false, "the broker did not try"},
	{56, "KAFKA_STORAGE_ERROR", classRetry, true, "a disk of the broker fails; another replica takes over; the append may have happened"},
	{57, "LOG_DIR_NOT_FOUND", classRetry, true, "a disk of the broker fails; another replica takes over; the append may have happened"},
	{58, "SASL_AUTHENTICATION_FAILED", classOperator, false, "the broker does not accept who we say we are: check kafka.sasl"},
	{59, "UNKNOWN_PRODUCER_ID", classBump, false, "the broker forgot our producer id; a higher epoch starts at 0"},
	{60, "REASSIGNMENT_IN_PROGRESS", classRetry, false, "the partition is moving"},
	{61, "DELEGATION_TOKEN_AUTH_DISABLED", classRetry, true, notProduce},
	{62, "DELEGATION_TOKEN_NOT_FOUND", classRetry, true, notProduce},
	{63, "DELEGATION_TOKEN_OWNER_MISMATCH", classRetry, true, notProduce},
	{64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", classRetry, true, notProduce},
	{65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", classOperator, false, "the delegation token may not be used: renew it"},
	{66, "DELEGATION_TOKEN_EXPIRED", classOperator, false, "the delegation token has expired: renew it"},
	{67, "INVALID_PRINCIPAL_TYPE", classRetry, true, notProduce},
	{68, "NON_EMPTY_GROUP", classRetry, true, notProduce},
	{69, "GROUP_ID_NOT_FOUND", classRetry, true, notProduce},
	{70, "FETCH_SESSION_ID_NOT_FOUND", classRetry, true, notProduce},
	{71, "INVALID_FETCH_SESSION_EPOCH", classRetry, true, notProduce},
	{72, "LISTENER_NOT_FOUND", classOperator, false, "the leader has no listener of the name that we connect through: correct advertised.listeners"},
	{73, "TOPIC_DELETION_DISABLED", classRetry, true, notProduce},
	{74, "FENCED_LEADER_EPOCH", classRetry, false, "our metadata is older than the leader"},
	{75, "UNKNOWN_LEADER_EPOCH", classRetry, false, "our metadata is newer than the broker"},
	{76, "UNSUPPORTED_COMPRESSION_TYPE", classOperator, false, "the topic or broker does not take this codec: change kafka.compression"},
	{77, "STALE_BROKER_EPOCH", classRetry, true, notProduce},
	{78, "OFFSET_NOT_AVAILABLE", classRetry, false, "the leader is too young to answer"},
	{79, "MEMBER_ID_REQUIRED", classRetry, true, notProduce},
	{80, "PREFERRED_LEADER_NOT_AVAILABLE", classRetry, false, "a leader election is going on"},
	{81, "GROUP_MAX_SIZE_REACHED", classRetry, true, notProduce},
	{82, "FENCED_INSTANCE_ID", classRetry, true, notProduce},
	{83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", classRetry, false, "no replica is eligible to lead: bring one back"},
	{84, "ELECTION_NOT_NEEDED", classRetry, true, notProduce},
	{85, "NO_REASSIGNMENT_IN_PROGRESS", classRetry, true, notProduce},
	{86, "GROUP_SUBSCRIBED_TO_TOPIC", classRetry, true, notProduce},
	{87, "INVALID_RECORD", classReject, false, "the broker refuses the record for what it is, for example a null key in a compacted topic"},
	{88, "UNSTABLE_OFFSET_COMMIT", classRetry, true, notProduce},
	{89, "THROTTLING_QUOTA_EXCEEDED", classRetry, false, "a quota is used up"},
	{90, "PRODUCER_FENCED", classFenced, false, "a newer producer has taken over"},
	{91, "RESOURCE_NOT_FOUND", classRetry, true, notProduce},
	{92, "DUPLICATE_RESOURCE", classRetry, true, notProduce},
	{93, "UNACCEPTABLE_CREDENTIAL", classRetry, true, notProduce},
	{94, "INCONSISTENT_VOTER_SET", classRetry, true, notProduce},
	{95, "INVALID_UPDATE_VERSION", classRetry, true, notProduce},
	{96, "FEATURE_UPDATE_FAILED", classRetry, true, notProduce},
	{97, "PRINCIPAL_DESERIALIZATION_FAILURE", classRetry, true, notProduce},
	{98, "SNAPSHOT_NOT_FOUND", classRetry, true, notProduce},
	{99, "POSITION_OUT_OF_RANGE", classRetry, true, notProduce},
	{100, "UNKNOWN_TOPIC_ID", classRetry, false, "our metadata is older than the topic"},
	{101, "DUPLICATE_BROKER_REGISTRATION", classRetry, true, notProduce},
	{102, "BROKER_ID_NOT_REGISTERED", classRetry, true, notProduce},
	{103, "INCONSISTENT_TOPIC_ID", classRetry, false, "our metadata is older than the topic"},
	{104, "INCONSISTENT_CLUSTER_ID", classRetry, true, notProduce},
	{105, "TRANSACTIONAL_ID_NOT_FOUND", classFenced, false, "an answer for transactional producers: somebody else uses our producer id"},
	{106, "FETCH_SESSION_TOPIC_ID_ERROR", classRetry, true, notProduce},
	{107, "INELIGIBLE_REPLICA", classRetry, true, notProduce},
	{108, "NEW_LEADER_ELECTED", classRetry, true, notProduce},
	{109, "OFFSET_MOVED_TO_TIERED_STORAGE", classRetry, true, notProduce},
	{110, "FENCED_MEMBER_EPOCH", classRetry, true, notProduce},
	{111, "UNRELEASED_INSTANCE_ID", classRetry, true, notProduce},
	{112, "UNSUPPORTED_ASSIGNOR", classRetry, true, notProduce},
	{113, "STALE_MEMBER_EPOCH", classRetry, true, notProduce},
	{114, "MISMATCHED_ENDPOINT_TYPE", classRetry, true, notProduce},
	{115, "UNSUPPORTED_ENDPOINT_TYPE", classRetry, true, notProduce},
	{116, "UNKNOWN_CONTROLLER_ID", classRetry, true, notProduce},
	{117, "UNKNOWN_SUBSCRIPTION_ID", classRetry, true, notProduce},
	{118, "TELEMETRY_TOO_LARGE", classRetry, true, notProduce},
	{119, "INVALID_REGISTRATION", classRetry, true, notProduce},
	{120, "TRANSACTION_ABORTABLE", classRetry, true, notProduce},
	{121, "INVALID_RECORD_STATE", classRetry, true, notProduce},
	{122, "SHARE_SESSION_NOT_FOUND", classRetry, true, notProduce},
	{123, "INVALID_SHARE_SESSION_EPOCH", classRetry, true, notProduce},
	{124, "FENCED_STATE_EPOCH", classRetry, true, notProduce},
	{125, "INVALID_VOTER_KEY", classRetry, true, notProduce},
	{126, "DUPLICATE_VOTER", classRetry, true, notProduce},
	{127, "VOTER_NOT_FOUND", classRetry, true, notProduce},
	{128, "INVALID_REGULAR_EXPRESSION", classRetry, true, notProduce},
	{129, "REBOOTSTRAP_REQUIRED", classRetry, false, "our metadata is too old; it is read from the start"},
	{130, "STREAMS_INVALID_TOPOLOGY", classRetry, true, notProduce},
	{131, "STREAMS_INVALID_TOPOLOGY_EPOCH", classRetry, true, notProduce},
	{132, "STREAMS_TOPOLOGY_FENCED", classRetry, true, notProduce},
	{133, "SHARE_SESSION_LIMIT_REACHED", classRetry, true, notProduce},
	{134, "GROUP_DELETION_FAILED", classRetry, true, notProduce},
	{135, "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED", classRetry, true, notProduce},
	{136, "CONTROLLER_ID_NOT_REGISTERED", classRetry, true, notProduce},
}

// rulesByCode indexes rules by code - firstCode. It is built once and never
// written again.
var rulesByCode = func() []rule {
	last := rules[len(rules)-1].code
	index := make([]rule, last-firstCode+1)
	for _, r := range rules {
		index[r.code-firstCode] = r
	}
	return index
}()

// unknownCode is the name of codes that the table does not know.
const unknownCode = "UNKNOWN_CODE"

// firstCode is the lowest error code, UNKNOWN_SERVER_ERROR.
const firstCode sarama.KError = -1

// classify returns the rule of code. A code that the table does not know, of
// a Kafka newer than this program, is retried.
func classify(code sarama.KError) rule {
	if i := int(code) - int(firstCode); i >= 0 && i < len(rulesByCode) && rulesByCode[i].class != 0 {
		return rulesByCode[i]
	}
	return rule{code, unknownCode, classRetry, true, "an error code newer than this program"}
}

// classifyError returns the rule of an error without a per-partition answer:
// of the connection, of authentication, or of sarama's encoder.
func classifyError(err error) rule {
	var code sarama.KError
	var failed *connectError
	switch {
	case errors.As(err, &failed) && failed.passing:
		return rule{class: classRetry, reason: err.Error()}
	case errors.As(err, &failed):
		return rule{class: failed.class, reason: err.Error()}
	case errors.As(err, &code):
		return classify(code)
	case isEncodingError(err):
		return rule{class: classReject, reason: err.Error()}
	default:
		return rule{class: classRetry, unsure: !errors.Is(err, errNotSent), reason: err.Error()}
	}
}

func isEncodingError(err error) bool {
	var encoding sarama.PacketEncodingError
	return errors.As(err, &encoding)
}
