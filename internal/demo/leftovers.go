package demo

import (
	"fmt"
	"strings"
)

// LeftoversError says that names of the demo are taken on servers of the user:
// by a demo that runs, or by one that was killed.
type LeftoversError struct {
	Objects []string
	// Removal are the commands that remove them, for psql or a shell.
	Removal []string
}

func (e *LeftoversError) Error() string {
	return fmt.Sprintf("%s exists already: another demo runs there, or one was killed; if none runs, remove it with\n  %s",
		strings.Join(e.Objects, ", "), strings.Join(e.Removal, "\n  "))
}
