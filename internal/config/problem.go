package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Origin says where a value was stated. The zero Origin is a default.
type Origin struct {
	File string
	// Line counts from 1; 0 means the file as a whole.
	Line int
	// Env is the environment variable that stated the value. It wins.
	Env string
}

// String is "default", file:line or the variable's name.
func (o Origin) String() string {
	switch {
	case o.Env != "":
		return o.Env
	case o.Line != 0:
		return fmt.Sprintf("%s:%d", o.File, o.Line)
	case o.File != "":
		return o.File
	}
	return "default"
}

// Problem is one thing that is wrong with a configuration. It never holds a
// secret.
type Problem struct {
	Origin Origin
	// Path is the field, for example kafka.brokers[1]. It is empty when the
	// problem is the file's as a whole.
	Path    string
	Message string
}

// String is one line: origin, path and message.
func (p Problem) String() string {
	s := p.Message
	if p.Path != "" {
		s = p.Path + ": " + s
	}
	if p.Origin != (Origin{}) {
		s = p.Origin.String() + ": " + s
	}
	return s
}

// Problems are all problems of a configuration: those of the file by line,
// then those without a line, then those of environment variables.
type Problems struct {
	List []Problem
}

// Error has one problem per line.
func (p *Problems) Error() string {
	lines := make([]string, len(p.List))
	for i, problem := range p.List {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// asError sorts problems into an error, nil when there are none.
func asError(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(
			strings.Compare(a.Origin.Env, b.Origin.Env),
			cmp.Compare(sortLine(a), sortLine(b)),
		)
	})
	return &Problems{List: problems}
}

// sortLine puts problems without a line behind those with one.
func sortLine(p Problem) uint { return uint(p.Origin.Line) - 1 }
