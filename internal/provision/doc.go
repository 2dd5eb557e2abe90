// Package provision creates what publishing needs in PostgreSQL, or writes it
// down as SQL for others to run.
//
// A Plan names what must exist: outbox tables, a publication, a slot, and, if
// asked for, the roles that use them. There are two ways from it:
//
//   - Plan.Script is pure: a commented psql script for whoever must approve it.
//   - Run looks at the server first. If something that exists does not fit, it
//     says everything that is wrong, in one *ProblemsError, and has changed
//     nothing. Only then it creates what is missing, and reports each step.
//
// What exists is never altered, except that missing tables are added to the
// publication. So both may be run again at any time.
//
// The order is roles, tables, publication, slot. The slot comes last: rows that
// were written before a publication was created cannot be decoded with it, so a
// slot that is older than its publication cannot be read.
//
// Passwords are not this package's business: roles are created without one.
package provision
