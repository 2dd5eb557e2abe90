// Package scenarios runs cdcpub as a process against real PostgreSQL and real
// Apache Kafka, does to all three what production does, and lets one checker
// with an independent oracle judge the outcome.
//
// A scenario is a function of a stand. Every scenario ends in stand.check. The
// same functions run against mutants: builds with one guarantee broken on
// purpose, each of which must be caught (see mutants_test.go).
package scenarios
