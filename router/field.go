package router

import (
	"encoding/hex"
	"fmt"
	"unicode/utf8"
)

// bytes returns the value of the column as it goes into the record, nil for
// NULL. Only bytea is decoded, into memory of its own.
func (f field) bytes(values [][]byte) ([]byte, *fault) {
	value := values[f.index]
	if f.bytea && value != nil {
		return f.decodeBytea(value)
	}
	return value, notUTF8(f.name, value)
}

// notUTF8 is a fault unless the text is valid UTF-8.
func notUTF8(column string, text []byte) *fault {
	if utf8.Valid(text) {
		return nil
	}
	at := 0
	for {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		at += size
	}
	problem := columnFault(column, fmt.Sprintf("is not UTF-8: byte 0x%02x at offset %d; a database with the encoding SQL_ASCII stores whatever it is sent", text[at], at))
	problem.hint = giveUpHint + ", and read it there with client_encoding = SQL_ASCII; then have writers send UTF-8, or make the column bytea, whose bytes are published as they are"
	return problem
}

// present is bytes for columns that identify: neither NULL nor empty.
func (f field) present(values [][]byte) ([]byte, *fault) {
	value, problem := f.bytes(values)
	if problem == nil && len(value) == 0 {
		return nil, columnFault(f.name, nullOrEmpty(value))
	}
	return value, problem
}

// decodeBytea reads the hex format of bytea (PostgreSQL documentation, 8.4.1).
func (f field) decodeBytea(text []byte) ([]byte, *fault) {
	if len(text) >= 2 && text[0] == '\\' && text[1] == 'x' {
		decoded := make([]byte, hex.DecodedLen(len(text)-2))
		if _, err := hex.Decode(decoded, text[2:]); err == nil {
			return decoded, nil
		}
	}
	problem := columnFault(f.name, "is taken for bytea but is not in its hex format")
	problem.hint = "the replication session must have bytea_output = hex, and a column of another type must not be declared as bytea"
	return nil, problem
}
