// Package pipeline joins the stream, the router, the tracker and the producer:
// it takes batches of events in commit order, sends what they mean to Kafka,
// and announces what may be confirmed.
//
// One goroutine, one select. Backpressure is a channel that is not read: when
// the window is full or a record was rejected, no batch is taken, the stream
// stops reading its socket, and the WAL waits where it is. Nothing is skipped:
// a row that cannot become a record ends the pipeline, after what lies before
// it was delivered; a record that Kafka refuses stands still with everything
// behind it until the broker's mind or an operator's changes.
//
// One session, one Pipeline: after any end everything is built again from
// nothing and starts at the slot's confirmed_flush_lsn.
package pipeline
