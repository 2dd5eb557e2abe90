// Package harness gives tests real servers, a real cdcpub process, and
// independent witnesses of what happened.
//
//   - Postgres and Kafka start throw-away servers. They are costly, so a test
//     package shares them through a Shared; each test then takes a database and
//     topics of its own.
//   - StartProcess runs a cdcpub that the test can signal, freeze and kill.
//   - Proxy stands between a client and a server and cuts, freezes or delays.
//   - FakeKafka answers what no real broker does on request.
//   - Webhook keeps the alerts that cdcpub sends.
//   - ReadAll, Follow and Consumer tell what is in a topic; Oracle tells what
//     PostgreSQL committed, by another slot and another decoder than ours. They
//     are those of package witness, bound to the life of a test.
//
// No test is skipped because something is missing: it fails with the command
// that installs it. Nothing outlives the test binary, even if it is killed.
//
// Functions that wait take a context and return errors, so that they can be
// used from any goroutine. Functions that take a testing.TB fail the test, and
// belong into its own goroutine.
package harness
