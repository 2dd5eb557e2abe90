package slotmon

import "strings"

// literal quotes a string for SQL.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// against completes a number that more of is worse with its limit.
func (f *Finding) against(limit string) string {
	if f.Severity == OK {
		return ", still near the limit of " + limit
	}
	return ", more than " + limit
}
