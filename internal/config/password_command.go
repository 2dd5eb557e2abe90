package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// PasswordCommandError is a run of PasswordCommand that gave no password. The
// next one may, since many commands ask a service of their own.
type PasswordCommandError struct {
	Program string
	cause   error
}

func (e *PasswordCommandError) Error() string {
	return fmt.Sprintf("%s: %s %v", passwordCommand, e.Program, e.cause)
}

func (e *PasswordCommandError) Unwrap() error { return e.cause }

// checkPasswordCommand tells if the program is there and may be run.
func checkPasswordCommand(argv []string) error {
	if _, err := exec.LookPath(argv[0]); err != nil {
		return cannotRun(argv[0], err)
	}
	return nil
}

// cannotRun is a program that was not run. No further try cures that.
func cannotRun(program string, cause error) error {
	var text string
	switch {
	case errors.Is(cause, exec.ErrNotFound):
		text = "cannot be run: there is no such program in PATH; install it, or state its path"
	case errors.Is(cause, fs.ErrNotExist):
		text = "cannot be run: there is no such file; install it, or correct the path"
	case errors.Is(cause, fs.ErrPermission):
		text = "cannot be run: it may not be executed (permission denied); make it executable for the user of this process"
	default:
		return fmt.Errorf("%s: %s cannot be run: %w", passwordCommand, program, cause)
	}
	return &fileError{fmt.Sprintf("%s: %s %s", passwordCommand, program, text), cause}
}

// runForPassword runs a command and returns the first line that it prints.
// Arguments and output, that on standard error too, may hold secrets: an error
// has the name of the program and the exit status alone.
func runForPassword(ctx context.Context, argv []string) (string, error) {
	fail := func(err error) (string, error) { return "", &PasswordCommandError{Program: argv[0], cause: err} }
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
		return fail(fmt.Errorf("printed no password within %s; run it by hand to see what it waits for", passwordCommandLimit))
	case bounded.Err() != nil:
		return fail(fmt.Errorf("was ended: %w", context.Cause(ctx)))
	case errors.As(err, &exit):
		return fail(fmt.Errorf("failed (%w); run it by hand to see why", err))
	case errors.Is(err, exec.ErrWaitDelay):
		return fail(errors.New("left a process behind that keeps its output open; let it end with what it has started"))
	case err != nil:
		return "", cannotRun(argv[0], err)
	}
	line, _, _ := strings.Cut(string(out.text), "\n")
	line = strings.TrimSuffix(line, "\r")
	switch {
	case line == "":
		return fail(errors.New("printed no password on its first line; run it by hand to see what it prints"))
	case hasControl(line) || !utf8.ValidString(line):
		return fail(errors.New("printed a first line that is no password: it has control characters or is not UTF-8; let it print the password alone"))
	case len(line) == maxPassword:
		return fail(errors.New("printed a first line that is too long for a password; let it print the password alone"))
	}
	return line, nil
}

// cutShort keeps the beginning of what is written to it.
type cutShort struct{ text []byte }

func (b *cutShort) Write(p []byte) (int, error) {
	b.text = append(b.text, p[:min(len(p), maxPassword-len(b.text))]...)
	return len(p), nil
}
