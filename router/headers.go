package router

import (
	"bytes"
	"fmt"
)

// headers builds the headers in wire order and cuts them from the slab.
func (r *Router) headers(p *plan, values [][]byte) ([]Header, *fault) {
	built, f := r.buildHeaders(p, values)
	defer r.release(built)
	if f != nil {
		return nil, f
	}
	size := 0
	for _, value := range values {
		size += len(value)
	}
	return r.slab.cut(built, size), nil
}

// buildHeaders fills the scratch space.
func (r *Router) buildHeaders(p *plan, values [][]byte) ([]Header, *fault) {
	built := r.scratch[:0]
	for _, h := range p.headers {
		value, f := h.bytes(values)
		if f != nil {
			return built, f
		}
		if value == nil && h.omitNull {
			continue
		}
		built = append(built, Header{Key: h.key, Value: value})
	}
	if p.spread >= 0 && values[p.spread] != nil {
		return r.spreadObject(p, built, values[p.spread])
	}
	return built, nil
}

// maxScratch is the number of headers up to which the scratch space is kept.
const maxScratch = 256

// release keeps no row alive after it was routed.
func (r *Router) release(built []Header) {
	if cap(built) > maxScratch {
		r.scratch = nil
		return
	}
	clear(built)
	r.scratch = built[:0]
}

// spreadObject appends the members of a JSON object. A member whose name a
// column already filled must not contradict it: consumers take the last header
// of a name, so it would hide the column's value.
func (r *Router) spreadObject(p *plan, built []Header, object []byte) ([]Header, *fault) {
	if f := notUTF8(p.spreadName, object); f != nil {
		return built, f
	}
	filled := built
	members := newMembers(object)
	for members.next() {
		if i := find(filled, members.key); i >= 0 {
			if sameValue(filled[i].Value, members.value) {
				continue
			}
			return built, columnFault(p.spreadName, fmt.Sprintf("has a member %q that contradicts the header of that name, which another column fills", shorten(members.key)))
		}
		built = append(built, Header{Key: r.headerKeys.intern(members.key), Value: members.value})
	}
	if members.problem != "" {
		f := columnFault(p.spreadName, members.problem)
		f.hint = `if this column is not meant for headers, set outbox.columns.headers to ""; ` + giveUpHint
		return built, f
	}
	return built, nil
}

func find(headers []Header, key []byte) int {
	for i := range headers {
		if headers[i].Key == string(key) {
			return i
		}
	}
	return -1
}

func sameValue(a, b []byte) bool {
	return (a == nil) == (b == nil) && bytes.Equal(a, b)
}

const (
	slabHeaders = 64
	slabBytes   = 16 << 10
)

// headerSlab cuts header slices from shared chunks, so that most records cost
// no allocation of their own. A chunk lives as long as its last record, and
// with it the rows that its headers point into. So that a record that waits
// long for its broker does not hold the memory of many that are gone, a chunk
// is small and serves at most slabBytes of rows.
type headerSlab struct {
	free  []Header
	bytes int
}

func (s *headerSlab) cut(headers []Header, rowBytes int) []Header {
	n := len(headers)
	if n > slabHeaders/4 || rowBytes > slabBytes/4 {
		own := make([]Header, n)
		copy(own, headers)
		return own
	}
	if n > len(s.free) || rowBytes > s.bytes {
		s.free, s.bytes = make([]Header, slabHeaders), slabBytes
	}
	cut := s.free[:n:n]
	copy(cut, headers)
	s.free, s.bytes = s.free[n:], s.bytes-rowBytes
	return cut
}
