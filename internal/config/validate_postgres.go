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
	v.passwordCommand(p)
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
	const both = "there is a password in postgres.url too; remove one of them"
	if info.states("password") && p.PasswordFile != "" {
		v.fail("postgres.password_file", both, "postgres.url")
	}
	if info.states("password") && len(p.PasswordCommand) > 0 {
		v.fail(passwordCommand, both, "postgres.url")
	}
}

func (v *validator) passwordCommand(p *Postgres) {
	switch command := p.PasswordCommand; {
	case len(command) == 0:
	case command[0] == "":
		v.fail(passwordCommand+"[0]", "must be the path or the name of a program")
	case len(command) == 1 && strings.ContainsAny(command[0], " \t"):
		v.fail(passwordCommand, "must be a list with one entry for each argument, since no shell splits it: [aws, rds, generate-db-auth-token]")
	case p.PasswordFile != "":
		v.fail(passwordCommand, "there is postgres.password_file too; remove one of them", "postgres.password_file")
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
