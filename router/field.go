package router

import "encoding/hex"

// bytes returns the value of the column as it goes into the record, nil for
// NULL. Only bytea is decoded, into memory of its own.
func (f field) bytes(values [][]byte) ([]byte, *fault) {
	value := values[f.index]
	if !f.bytea || value == nil {
		return value, nil
	}
	return f.decodeBytea(value)
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
