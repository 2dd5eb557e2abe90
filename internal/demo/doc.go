// Package demo shows the whole product on one machine and proves what it shows.
//
// A small order shop writes business rows and outbox rows into PostgreSQL, the
// real publisher takes them to Kafka, and a consumer that shares no code with it
// prints each record as it arrives. At the end package verify compares what was
// read with PostgreSQL's own history of the outbox, which package witness reads
// through a second slot: the verdict does not rest on anything that the
// publisher says about itself.
//
//	shop --SQL--> PostgreSQL --slot--> publisher --> broker --> consumer
//	  |               |                                            |
//	  |               +--second slot--> oracle --rows--+           |
//	  +--commit times--> ledger <--arrivals------------|-----------+
//	                                                   +--> verify <--records
//
// Order of the end: the writers stop, everything that they committed arrives,
// the publisher drains, the consumer reads to the end of the topic, the verdict
// is made, and whatever was created is removed. A failure of one part stops the
// others in the same order. When ctx ends only the removal is left.
//
// On servers of the user everything has a name of its own: schema, publication
// and slot cdcpub_demo, topic cdcpub.demo.orders. If one of them exists the demo
// refuses to begin, so what it removes is always its own.
package demo
