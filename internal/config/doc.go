// Package config is the configuration of cdcpub: one documented struct, read
// from one YAML file and from environment variables.
//
// The struct Config is the only schema. Its yaml tags give the keys; the path
// of a field gives its environment variable (kafka.tls.ca_file is stated by
// CDCPUB_KAFKA_TLS_CA_FILE); Print and the example file follow it, and tests
// hold them together.
//
// Load goes through four steps, each of which only adds problems and never
// stops at the first one:
//
//  1. setDefaults, for what depends on nothing;
//  2. the file, then the environment over it. Each value's Origin is noted, so
//     that a later problem names the line or the variable;
//  3. deriveDefaults, for what depends on other fields and was not stated;
//  4. Validate, which changes nothing.
//
// Load is a function of the file's text and the environment that it is given.
// What the text only refers to (password files and commands, certificates, the
// PG* environment) is read by Postgres.ConnConfig, TLS.ClientConfig and the
// methods of SASL, each time that a connection is set up. So a configuration can be checked on a machine
// that has none of the secrets, and rotated secrets need no restart.
//
// Two kinds of map have keys that the user chooses: of texts (mapping), and of
// groups, as slot_monitor.slots. A member of the latter states exceptions: what
// it leaves out is that of a general group, and deriveDefaults fills it in.
//
// LoadFor says what the configuration is for. Commands that look at slots need
// a server and no stream, so they share the file and not its required fields.
//
// Secrets never show. Those within the configuration itself are in connection
// strings, in URLs that may hold a token, and in fields of their own. Their
// types, ConnString, SecretURL and Secret, format as the redacted string
// whatever the verb; messages repeat values of other fields only, and keys only
// when they look like the name of a setting.
package config
