package config

import (
	"fmt"
	"strings"
	"time"
)

const exampleURL = "postgres://cdcpub@db.internal:5432/shop?sslmode=verify-full"

func (v *validator) postgres(p *Postgres) {
	if v.required("postgres.url", p.URL == "", exampleURL) {
		v.connString(p)
	}
	if v.required("postgres.slot", p.Slot == "", "cdcpub") && !validSlot(p.Slot) {
		v.fail("postgres.slot", fmt.Sprintf("%q is not a slot name: up to %d lower-case letters, digits and _", p.Slot, maxIdentifier))
	}
	if v.required("postgres.publication", p.Publication == "", "cdcpub") {
		v.identifier("postgres.publication", p.Publication)
	}
	const timeout, interval = "postgres.wal_sender_timeout", "postgres.status_interval"
	v.between(timeout, p.WALSenderTimeout, seconds(1), Duration(time.Hour))
	switch {
	case p.StatusInterval <= 0 && p.WALSenderTimeout > 0:
		v.fail(interval, "must be more than 0s")
	case p.StatusInterval > p.WALSenderTimeout/2:
		v.fail(interval, fmt.Sprintf("%s is more than half of %s (%s), after which the server asks for a reply",
			p.StatusInterval, timeout, p.WALSenderTimeout), timeout)
	}
}

// connString checks what can be told without files and environment. It never
// repeats a part of the string.
func (v *validator) connString(p *Postgres) {
	info, err := p.URL.check()
	if err != nil {
		v.fail("postgres.url", err.Error())
		return
	}
	if p.PasswordFile != "" && info.states("password") {
		v.fail("postgres.password_file", "there is a password in postgres.url too; remove one of them", "postgres.url")
	}
}

// validSlot follows ReplicationSlotValidateName in PostgreSQL.
func validSlot(name string) bool {
	return len(name) <= maxIdentifier && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// identifier checks an exact name from the catalogs.
func (v *validator) identifier(path, name string) {
	switch {
	case len(name) > maxIdentifier:
		v.fail(path, fmt.Sprintf("is longer than %d bytes, the limit of PostgreSQL", maxIdentifier))
	case len(name) > 1 && strings.HasPrefix(name, `"`) && strings.HasSuffix(name, `"`):
		v.fail(path, "must be the exact name without double quotes")
	}
}
