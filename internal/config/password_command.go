package config

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	passwordCommand = "postgres.password_command"
	// passwordCommandLimit bounds one run.
	passwordCommandLimit = 10 * time.Second
	// passwordPipeDelay is how long a process that the command left behind may
	// keep its output open.
	passwordPipeDelay = 500 * time.Millisecond
	// maxPassword bounds what is read of its output. Tokens of clouds have one
	// or two kilobytes.
	maxPassword = 64 << 10
)

// runForPassword runs a command and returns the first line that it prints.
// Arguments and output, that on standard error too, may hold secrets: an error
// has the name of the program and the exit status alone.
func runForPassword(ctx context.Context, argv []string) (string, error) {
	fail := func(err error) (string, error) {
		return "", fmt.Errorf("%s: %s %w", passwordCommand, argv[0], err)
	}
	bounded, cancel := context.WithTimeout(ctx, passwordCommandLimit)
	defer cancel()
	command := exec.CommandContext(bounded, argv[0], argv[1:]...)
	command.WaitDelay = passwordPipeDelay
	ownGroup(command)
	var out cutShort
	command.Stdout = &out
	err := command.Run()
	var exit *exec.ExitError
	switch {
	case bounded.Err() != nil && ctx.Err() == nil:
		return fail(fmt.Errorf("printed no password within %s", passwordCommandLimit))
	case bounded.Err() != nil:
		return fail(fmt.Errorf("was ended: %w", context.Cause(ctx)))
	case errors.As(err, &exit):
		return fail(fmt.Errorf("failed (%w); run it by hand to see why", err))
	case errors.Is(err, exec.ErrWaitDelay):
		return fail(errors.New("left a process behind that keeps its output open"))
	case errors.Is(err, exec.ErrNotFound):
		return fail(errors.New("cannot be run: there is no such program in PATH"))
	case err != nil:
		return fail(fmt.Errorf("cannot be run: %w", err))
	}
	line, _, _ := strings.Cut(string(out.text), "\n")
	line = strings.TrimSuffix(line, "\r")
	switch {
	case line == "":
		return fail(errors.New("printed no password on its first line"))
	case hasControl(line) || !utf8.ValidString(line):
		return fail(errors.New("printed a first line that is no password: it has control characters or is not UTF-8"))
	case len(line) == maxPassword:
		return fail(errors.New("printed a first line that is too long"))
	}
	return line, nil
}

// cutShort keeps the beginning of what is written to it.
type cutShort struct{ text []byte }

func (b *cutShort) Write(p []byte) (int, error) {
	b.text = append(b.text, p[:min(len(p), maxPassword-len(b.text))]...)
	return len(p), nil
}
