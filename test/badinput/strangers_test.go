package badinput

import (
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/test/harness"
)

// checking are the arguments whose sentences are the checks that failed.
var checking = []string{"check"}

// sshThere puts an SSH server in the place of PostgreSQL.
func sshThere(s *stand) {
	s.replace = append([]string{"@POSTGRES/", "@" + stranger(s, "SSH-2.0-OpenSSH_9.2\r\n") + "/"}, s.replace...)
}

// httpThere puts an HTTP server in the place of PostgreSQL.
func httpThere(s *stand) {
	s.replace = append([]string{"@POSTGRES/", "@" + stranger(s, badRequest) + "/"}, s.replace...)
}

// badRequest is what web servers answer to what is not HTTP.
const badRequest = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"

// stranger is the address of a server that answers everybody's first bytes with
// this text and hangs up.
func stranger(s *stand, text string) string {
	listener := occupy(s.t)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // the test has ended
			}
			go func() {
				defer conn.Close()
				if _, err := conn.Read(make([]byte, 1<<10)); err == nil {
					_, _ = io.WriteString(conn, text) // the client may have gone
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// web is the address of an HTTP server that runs until the test ends.
func web(s *stand, handler http.Handler) string {
	listener := occupy(s.t)
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(listener) }() // ends with the listener
	s.t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

// crowded sends cdcpub to a server without a place for another slot or
// walsender.
func crowded(s *stand) {
	server := shared.Postgres(s.t, "", "max_wal_senders=0", "max_replication_slots=1")
	once, _ := taken.LoadOrStore(server, sync.OnceValue(func() error { return takeSlot(s, server) }))
	if err := once.(func() error)(); err != nil {
		s.t.Fatal(err)
	}
	s.point(server, harness.Database(s.t, server))
}

// taken has the servers whose only slot is taken.
var taken sync.Map

func takeSlot(s *stand, server *pgserver.Server) error {
	conn, err := pgx.Connect(s.ctx, server.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(s.ctx)
	if _, err := conn.Exec(s.ctx, "SELECT pg_create_physical_replication_slot('taken')"); err != nil {
		return fmt.Errorf("take the slot: %w", err)
	}
	return nil
}
