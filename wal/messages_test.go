package wal

import (
	"encoding/binary"

	"github.com/jackc/pglogrepl"
)

// Builders of pgoutput messages, for tests.

// column is a value of a tuple: kind 'n', 'u', 't' or 'b'.
type column struct {
	kind byte
	data []byte
}

var null = column{kind: 'n'}

func text(s string) column { return column{'t', []byte(s)} }

func beginMessage(commit pglogrepl.LSN) []byte {
	out := binary.BigEndian.AppendUint64([]byte{'B'}, uint64(commit))
	out = binary.BigEndian.AppendUint64(out, 1_000_000) // a second after 2000-01-01
	return binary.BigEndian.AppendUint32(out, 733)
}

func commitMessage(commit, end pglogrepl.LSN) []byte {
	out := binary.BigEndian.AppendUint64([]byte{'C', 0}, uint64(commit))
	out = binary.BigEndian.AppendUint64(out, uint64(end))
	return binary.BigEndian.AppendUint64(out, 1_000_000)
}

func relationMessage(id uint32, schema, name string, columns ...string) []byte {
	out := binary.BigEndian.AppendUint32([]byte{'R'}, id)
	out = append(append(append(append(out, schema...), 0), name...), 0)
	out = append(out, 'd')
	out = binary.BigEndian.AppendUint16(out, uint16(len(columns)))
	for _, c := range columns {
		out = append(append(append(out, 0), c...), 0)
		out = binary.BigEndian.AppendUint32(out, 25)
		out = binary.BigEndian.AppendUint32(out, 0xffffffff)
	}
	return out
}

func tuple(out []byte, columns ...column) []byte {
	out = binary.BigEndian.AppendUint16(out, uint16(len(columns)))
	for _, c := range columns {
		out = append(out, c.kind)
		if c.kind == 't' || c.kind == 'b' {
			out = binary.BigEndian.AppendUint32(out, uint32(len(c.data)))
			out = append(out, c.data...)
		}
	}
	return out
}

func rowMessage(kind byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{kind}, id)
}

func insertMessage(id uint32, columns ...column) []byte {
	return tuple(append(rowMessage('I', id), 'N'), columns...)
}

func updateMessage(id uint32, old byte, oldColumns, columns []column) []byte {
	out := rowMessage('U', id)
	if old != 0 {
		out = tuple(append(out, old), oldColumns...)
	}
	return tuple(append(out, 'N'), columns...)
}

func deleteMessage(id uint32, old byte, columns ...column) []byte {
	return tuple(append(rowMessage('D', id), old), columns...)
}

func truncateMessage(options byte, ids ...uint32) []byte {
	out := binary.BigEndian.AppendUint32([]byte{'T'}, uint32(len(ids)))
	out = append(out, options)
	for _, id := range ids {
		out = binary.BigEndian.AppendUint32(out, id)
	}
	return out
}

func originMessage(lsn pglogrepl.LSN, name string) []byte {
	return append(append(binary.BigEndian.AppendUint64([]byte{'O'}, uint64(lsn)), name...), 0)
}

func typeMessage(oid uint32, schema, name string) []byte {
	out := binary.BigEndian.AppendUint32([]byte{'Y'}, oid)
	return append(append(append(append(out, schema...), 0), name...), 0)
}
