package slotmon

import "fmt"

var severityNames = [...]string{OK: "ok", Warning: "warning", Critical: "critical", Unknown: "unknown", Info: "info"}

// ranks orders severities for a verdict: what is critical stays so whatever
// else cannot be seen.
var ranks = [...]int{OK: 0, Info: 0, Warning: 1, Unknown: 2, Critical: 3}

// Worse tells if a verdict becomes worse by other.
func (s Severity) Worse(other Severity) bool { return ranks[other] > ranks[s] }

// String is lower case: ok, warning, critical, unknown, info.
func (s Severity) String() string { return severityNames[s] }

// MarshalText implements encoding.TextMarshaler.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Severity) UnmarshalText(text []byte) error {
	for severity, name := range severityNames {
		if name == string(text) {
			*s = Severity(severity)
			return nil
		}
	}
	return fmt.Errorf("%q is not a severity", text)
}
