// Package pgserver runs throw-away PostgreSQL servers, for the demo and for
// tests.
//
// Find looks for server programs on the machine and downloads them if there
// are none of the wanted version. Start makes a database cluster of its own
// with initdb and serves it on 127.0.0.1, ready for logical decoding. A Server
// can be stopped in every way PostgreSQL knows, killed, and started again on
// the same data and port.
//
// Nothing survives the process that called Start, not even a SIGKILL of it:
// package guard stops the server and removes its temporary directory.
//
// PostgreSQL refuses to run as root. When the caller is root, the server runs
// as the user postgres, or nobody if there is no such user.
//
// Each server runs its own initdb (0.7 s). To copy a ready cluster takes 0.1 s,
// but copies share one system identifier, which is what a publisher uses to
// notice that it talks to another server.
package pgserver
