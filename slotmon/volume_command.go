package slotmon

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	commandTimeout = 5 * time.Second
	// pipeDelay is how long a child that the command left behind may keep its
	// output open.
	pipeDelay   = 500 * time.Millisecond
	outputLimit = 4096
	shownLimit  = 200
)

// ask runs the command. Its arguments and its output may hold secrets, so an
// error has neither, but the first line of what it wrote as its own error.
func (v VolumeSource) ask(ctx context.Context) (int64, error) {
	timeout := v.Timeout
	if timeout <= 0 {
		timeout = commandTimeout
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	command := exec.CommandContext(bounded, v.FreeCommand[0], v.FreeCommand[1:]...)
	command.WaitDelay = pipeDelay
	ownGroup(command)
	var out, complaint capped
	command.Stdout, command.Stderr = &out, &complaint
	err := command.Run()
	var exit *exec.ExitError
	switch {
	case bounded.Err() != nil && ctx.Err() == nil:
		return 0, fmt.Errorf("gave no answer in %s", timeout)
	case bounded.Err() != nil:
		return 0, fmt.Errorf("was cut short: %w", context.Cause(ctx))
	case errors.As(err, &exit):
		failure := fmt.Errorf("failed (%w)", exit)
		if line := firstLine(complaint.text); line != "" {
			failure = fmt.Errorf("%w: %s", failure, line)
		}
		return 0, failure
	case errors.Is(err, exec.ErrWaitDelay):
		return 0, errors.New("left a process behind that keeps its output open")
	case err != nil:
		return 0, fmt.Errorf("cannot be run: %w", err)
	}
	return parseFree(out.text)
}

// parseFree reads a decimal integer of bytes; white space around it is no
// matter. Output as long as the limit may have been cut.
func parseFree(output []byte) (int64, error) {
	text := strings.Trim(string(output), " \t\r\n")
	free, err := strconv.ParseInt(text, 10, 64)
	if err != nil || len(output) >= outputLimit || text[0] == '+' || text[0] == '-' {
		return 0, errors.New("did not print the free bytes as one decimal integer and nothing else")
	}
	return free, nil
}

// firstLine is the first line, cut to what can be shown in an alert.
func firstLine(output []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(output)), "\n")
	line = strings.TrimSpace(line)
	line = strings.ToValidUTF8(line[:min(len(line), shownLimit)], "")
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, line)
}

// capped keeps the beginning of what is written to it.
type capped struct{ text []byte }

func (c *capped) Write(p []byte) (int, error) {
	c.text = append(c.text, p[:min(len(p), outputLimit-len(c.text))]...)
	return len(p), nil
}
