package check

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// Status is the outcome of a check.
type Status uint8

// The outcomes; see the package documentation.
const (
	OK Status = iota
	Warn
	Fail
	Skip
)

var statusNames = [...]string{OK: "ok", Warn: "warn", Fail: "fail", Skip: "skip"}

// String is lower case: ok, warn, fail, skip.
func (s Status) String() string { return statusNames[s] }

// MarshalText implements encoding.TextMarshaler.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Status) UnmarshalText(text []byte) error {
	i := slices.Index(statusNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("%q is not the outcome of a check", text)
	}
	*s = Status(i)
	return nil
}

// Result is what one check found.
type Result struct {
	// ID names the check; it is one of IDs.
	ID     string `json:"id"`
	Status Status `json:"status"`
	// Subjects are the tables, topics or brokers that it is about; empty when
	// the check is about one thing only.
	Subjects []string `json:"subjects"`
	// Found is what was found, with numbers; of Skip, why nothing was.
	Found string `json:"found"`
	// Cure is what to do; empty if the Status is OK.
	Cure string `json:"cure,omitempty"`
	// Commands are the exact SQL statements, shell commands or lines of a file
	// that the cure needs.
	Commands []string `json:"commands"`
}

// Report is everything that was found: the document that
// `cdcpub check -o json` prints.
type Report struct {
	// Verdict is fail if any check failed, else warn if any warned, else ok.
	Verdict Status `json:"verdict"`
	// Server is host:port/database, Brokers the bootstrap addresses.
	Server  string   `json:"server"`
	Brokers []string `json:"brokers"`
	Counts  Counts   `json:"counts"`
	Checks  []Result `json:"checks"`
}

// Counts are numbers of results.
type Counts struct {
	OK   int `json:"ok"`
	Warn int `json:"warn"`
	Fail int `json:"fail"`
	Skip int `json:"skip"`
}

// NewReport judges the facts.
func NewReport(facts *Facts) *Report {
	r := &Report{
		Server: facts.Postgres.Server, Brokers: append([]string{}, facts.Setup.Brokers...), Checks: Judge(facts),
	}
	for i := range r.Checks {
		result := &r.Checks[i]
		result.Subjects = append([]string{}, result.Subjects...) // lists are never null
		result.Commands = append([]string{}, result.Commands...)
		switch result.Status {
		case OK:
			r.Counts.OK++
		case Warn:
			r.Counts.Warn++
		case Fail:
			r.Counts.Fail++
		case Skip:
			r.Counts.Skip++
		}
	}
	switch {
	case r.Counts.Fail > 0:
		r.Verdict = Fail
	case r.Counts.Warn > 0:
		r.Verdict = Warn
	}
	return r
}

// JSON writes the document.
func (r *Report) JSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}
