// Package check tells before the first start, and at any time later, whether
// PostgreSQL and Kafka are as a configuration needs them. It changes nothing.
//
// # Parts
//
//	Read    asks PostgreSQL; the only part with a connection
//	Judge   makes Results of Facts: pure, without clock, context or logger
//	Report  shows Results as text or as a JSON document
//
// The facts about Kafka come from whoever can ask it, in the form of Kafka.
//
// # Results
//
//	OK    is as it must be; the text has the numbers
//	WARN  works, and has a price or a risk that should be known
//	FAIL  publishing would stop, lose rows or never begin
//	SKIP  could not be looked at, because another check failed, or because the
//	      role may not see it; the text says which
//
// Whatever is not OK has a cure: a sentence, and the exact commands where there
// are any. Everything that can be looked at is, whatever else failed. One fault
// gives one FAIL: what only follows from it is SKIP.
//
// # Ids
//
// Every Report has every id of IDs, in that order, at least once. An id has
// several results when subjects (tables, topics, brokers) differ in what was
// found; subjects with the same outcome share one. Ids, and the members of the
// JSON document, keep their names and meanings; new ones may be added.
//
// # What cannot be known
//
//   - Whether a slot is older than its publication: PostgreSQL records the time
//     of neither. slot.publication_age warns when transaction ids leave it
//     possible, and says what the server will answer if it is so.
//   - The age of the oldest row that is not confirmed: the server knows since
//     when a slot has been inactive (17), which is an upper bound of the age of
//     the rows written since, and no more.
//   - Which topics a template with other columns than the aggregate type makes.
//   - Minor versions with a known defect are those of the release notes. Where
//     these name one major version only, the siblings of the same release day
//     are taken to have it too.
package check
