package router

// interner gives each distinct byte string one Go string. Lookups of known ones
// do not allocate. It is a cache: when full it forgets everything.
type interner struct {
	known map[string]string
}

const (
	maxInterned    = 4096
	maxInternedLen = 256
)

func (in *interner) lookup(b []byte) (string, bool) {
	s, ok := in.known[string(b)]
	return s, ok
}

func (in *interner) intern(b []byte) string {
	if s, ok := in.known[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(s) > maxInternedLen {
		return s
	}
	if in.known == nil {
		in.known = map[string]string{}
	}
	if len(in.known) >= maxInterned {
		clear(in.known)
	}
	in.known[s] = s
	return s
}
