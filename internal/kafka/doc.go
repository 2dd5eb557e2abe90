// Package kafka delivers messages to Kafka in order, and stops in front of
// what it cannot deliver. It implements pipeline.Producer, and it is the only
// package that knows sarama.
//
// # Why not sarama's producers
//
// sarama's AsyncProducer, like every general client, gives up on a batch for
// most error codes and sends what is behind it. For an outbox that is a lost
// or an overtaken event. So this package uses sarama for what is underneath:
// connections with TLS and SASL, request and record encoding, compression. It
// makes its own record batches, with its own producer ids, epochs and sequence
// numbers. It does not use sarama.Client either: that one hides the topic id,
// which tells a topic from another one created under its name, sleeps inside
// its retries, and shares connections between sessions.
//
// # How it works
//
//	Send -> mailbox -> [ run: topics, partitions ] -> link per broker -> Kafka
//	                     ^         |                        |
//	Results <- outcomes -+         +-> control connection   |
//	                     +------------- mailbox <-----------+
//
// One goroutine, run, owns all state. A partition (partition.go) is a pure
// state machine: records in, a batch out, an outcome in, an effect out. At most
// one batch of a partition is on its way, and a batch is always the head of the
// partition's queue, so nothing can pass the head, whatever happens to it.
// While a batch is on its way the records behind it gather for the next one.
// Batches that are ready at the same moment for the same broker share a
// request; a broker may have several requests of different partitions.
//
// Every broker has a link (broker.go), whose goroutine makes the calls that
// block: dialing, compressing, writing. So a broker that hangs holds up nothing
// but its own partitions. All other requests use one more connection
// (control.go), to any broker that answers. Answers come back through
// mailboxes, which never block sarama's response readers.
//
// A connection that is slow to come is waited for, and others are tried beside
// it (dial.go): a network that is healthy again leaves mute ones behind.
//
// # What happens on an error
//
// classify.go has one table with every error code of the protocol, its class
// and the reason. A batch that is tried again is the identical batch, with the
// same sequence numbers, so a broker that appended it at an earlier attempt
// answers with success and appends nothing. There is no limit to the attempts.
// After a failure a partition waits until its topic's metadata has been read
// again, which gives the leader, and proves that it is still the same topic.
//
// When a broker refuses a batch for its records, the culprit is found: by the
// index in the answer (KIP-467), else by halving. The good records in front are
// sent, the culprit is reported as a pipeline.Rejection, and nothing behind it
// is sent. It is tried again at long intervals; if it is accepted one day, the
// partition goes on. A batch that is only too large is split and no record of
// it is reported. A record that no broker has to see, since it cannot be
// encoded or its topic's name is illegal, is reported at once and not tried
// again.
//
// # Identity
//
// With a transactional id (fence.go) a session takes its producer id from the
// transaction coordinator, which gives the same id and the next epoch to
// whoever asks under that transactional id. From the first batch of the new
// epoch on a partition, its leader refuses what is late from older ones, of
// this process or another. Nothing is transactional but the name: no
// transaction is ever begun. An epoch is used only when PostgreSQL was asked after
// it was given, and has said that the slot is still ours; fence.go has the
// argument. A partition whose sequence numbers the broker does
// not accept gets another epoch from the coordinator, which refuses that if
// somebody else has taken one meanwhile: then this session is over.
//
// Without one, every partition has a producer id of its own, and a new session
// of the process takes the same id with the next epoch. Another process does
// not know the id, and shuts out nothing.
//
// When records whose fate is unknown are sent under a new epoch they may come
// twice, in order: 7 8 7 8.
//
// # Counters
//
// What the sessions of a Client have done is counted in the Client
// (counters.go), so that a reconnect takes nothing back. Producers take its lock
// once per batch of a partition that was answered, never per record.
//
// # Limits
//
//   - Brokers measure the age of a producer id by the timestamps of its
//     records, and forget it after producer.id.expiration.ms (1 day). For
//     records older than that, as after a long outage of ours, a broker that
//     restarts or becomes leader no longer knows the newest batch: if that
//     batch is then sent again because its answer was lost, it is appended
//     twice, in order, and a late request of an earlier session is not refused
//     (seen on Kafka 4.4.0 with timestamps two days old).
//   - A record of more than 100 MiB less 64 KiB, before compression, cannot be
//     sent: sarama encodes no larger request (MaxRequestSize), and brokers read
//     none (socket.request.max.bytes). It is reported as a Rejection.
//     sarama's Producer.MaxMessageBytes plays no role.
//   - Rejection.Size is the size before compression. The broker compares the
//     size after it, so with a codec Size may be above the Limit of a record
//     that passed, and, as codecs add a little to what cannot be compressed,
//     below the Limit of one that did not.
//   - Timestamps before 1970 and after 2262-04-11 cannot be encoded.
//   - A topic that is deleted and created again between two successful requests
//     is noticed at the next comparison, after Config.TopicCheckInterval. What
//     was sent in between is in the new topic.
//   - Brokers before Kafka 2.8 do not give topic ids. With them only the
//     partition count is compared. Brokers before 2.4 do not name the bad
//     records of a batch. Before 0.11 nothing works.
//
// # Memory
//
// Send takes ownership of what the caller's window lets in. In addition a
// request costs up to three times its size while sarama encodes it: the
// records, their compressed form, and the request. A request holds at most
// 8 MiB of batches or one larger record, a broker has at most
// Config.MaxInFlightPerBroker of them, and together they hold no more than the
// window.
//
// # Simulation
//
// TestSimulation plays random schedules of publishers against models of
// PostgreSQL and Kafka and holds what is then in the topic against
// docs/guarantees.md: thousands in the package's tests, a million by
// `make simulate`, which prints how often each kind of event happened. A seed is
// a schedule; one that breaks a promise is told event by event, after all events
// that do not matter for it were left out.
//
// Real are the Producer but for the select in serve, pipeline.Pipeline and
// checkpoint.Tracker. Models are the network, the brokers (logs, leaders,
// replicas, the producer state that Kafka derives from its logs), the
// transaction coordinator, PostgreSQL (a history, and a slot with one holder, a
// timeout, and a stored position) and the order in which package publisher ends
// a session. TestSimulationOfTheWholeProducer runs the Producer as it is, with
// links, control connections and sarama, against the same models behind frames
// of the protocol; its schedules are fewer, and a seed repeats them but nearly.
// TestSimulationCatches breaks a rule of the product and demands that a
// simulation notices.
//
// Not simulated are package wal, TLS and SASL, compression, records that cannot
// be encoded, several topics, topics that are deleted or grow, and brokers that
// lose what they have acknowledged.
package kafka
