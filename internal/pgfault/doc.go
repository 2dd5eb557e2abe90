// Package pgfault says in plain words why PostgreSQL could not be connected to,
// and what cures it. The driver's own text has one line per address and TLS mode,
// in the terms of sockets.
//
// Watch looks at the first bytes that come back over a connection, since an
// error cannot tell a server of another kind from one that stumbles. Everything
// else is a pure reading of the error: by type, by SQLSTATE, and where one
// SQLSTATE has several causes by the name of the server's own function, which is
// not translated. Never by text.
package pgfault
