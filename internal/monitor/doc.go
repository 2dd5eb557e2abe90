// Package monitor keeps an eye on the slots of one or more servers: it takes a
// sample of each at an interval, has package slotmon judge it, raises and
// resolves alerts, and holds the newest result for whoever asks.
//
// It needs no replication stream. Every sample is a connection of its own, so
// that nothing blocks a smart shutdown of the server and a server that moved is
// found again. One goroutine per server owns that server's series, alerts and
// last result: a server that hangs delays no other.
//
// A server that cannot be asked is unknown, never fine. It raises one alert of
// its own, whatever the number of its slots, and leaves their alerts as they
// are, since nothing is known of them.
package monitor
