package badinput

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cdcpub/cdcpub/test/harness"
)

// listen returns the exit code of the program and what it said, with what is
// another at each run replaced.
func (s *stand) listen(p *harness.Process, m mistake) (code int, sentences []string) {
	s.t.Helper()
	if m.code == stays {
		line, err := p.WaitForLine(s.ctx, "a warning", func(l harness.LogLine) bool {
			return l.Event() == m.event || m.event == "" && complains(l)
		})
		if err != nil {
			s.t.Fatal(err)
		}
		if err := p.Signal(syscall.SIGKILL); err != nil {
			s.t.Fatal(err)
		}
		return stays, []string{s.constant(message(line))}
	}
	code, err := p.Wait(s.ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	if slices.Equal(m.args, checking) {
		return code, s.failures(p.Stdout())
	}
	var complaint harness.LogLine
	for _, line := range p.Log() {
		if complains(line) {
			complaint = line
		}
	}
	if complaint != nil {
		return code, []string{s.constant(message(complaint))}
	}
	for line := range strings.Lines(p.Stderr()) {
		if line = strings.TrimRight(line, "\n"); line != "" && !strings.HasPrefix(line, "{") {
			sentences = append(sentences, s.constant(line))
		}
	}
	if len(sentences) == 0 {
		s.t.Fatalf("it says nothing; standard output:\n%s", p.Stdout())
	}
	return code, sentences
}

// failures are the checks that failed, each with its cure, as one line.
func (s *stand) failures(report string) (failed []string) {
	within := false
	for line := range strings.Lines(report) {
		switch {
		case strings.HasPrefix(line, "FAIL "):
			failed, within = append(failed, ""), true
		case !strings.HasPrefix(line, " "):
			within = false
		}
		if within {
			last := &failed[len(failed)-1]
			*last = strings.TrimSpace(*last + " " + strings.Join(strings.Fields(line), " "))
		}
	}
	if len(failed) == 0 {
		s.t.Fatalf("no check failed:\n%s", report)
	}
	for i := range failed {
		failed[i] = s.constant(failed[i])
	}
	return failed
}

// complains tells if a line says what is wrong with the publisher. Alerts are of
// the slot monitor, which looks at the same time.
func complains(l harness.LogLine) bool {
	return (l["level"] == "warn" || l["level"] == "error") && l.Event() != "alert"
}

// message is what a line of the log tells: the error, or the stall, and what it
// is about.
func message(line harness.LogLine) string {
	text, _ := line["msg"].(string)
	for _, field := range []string{"reason", "cause", "error"} {
		if value, ok := line[field].(string); ok && value != "" {
			text += ": " + value
		}
	}
	return text
}

var (
	processID = regexp.MustCompile(`\bpid [0-9]+|terminate_backend\([0-9]+\)`)
	position  = regexp.MustCompile(`\b[0-9A-F]+/[0-9A-F]+\b`)
	directory = regexp.MustCompile(`(/tmp)?/[^ ]*cdcpub-process-[0-9]+/`)
	eventID   = regexp.MustCompile(`event [0-9a-f]{8}-[0-9a-f-]{27}`)
	loopback  = regexp.MustCompile(`127\.0\.0\.1:[0-9]{4,5}`)
	resolver  = regexp.MustCompile(` on [0-9.:\[\]]+:53`)
)

// constant replaces what is another at each run.
func (s *stand) constant(text string) string {
	if s.server != nil {
		text = strings.NewReplacer(
			s.address("POSTGRES"), "POSTGRES", s.address("KAFKA:9092"), "KAFKA",
			s.database, "cdcpub_db",
		).Replace(text)
	}
	if s.elsewhere != "" {
		text = strings.ReplaceAll(text, s.elsewhere, "another_db")
	}
	text = processID.ReplaceAllStringFunc(text, func(found string) string {
		return regexp.MustCompile(`[0-9]+`).ReplaceAllString(found, "PID")
	})
	text = position.ReplaceAllString(text, "LSN")
	text = directory.ReplaceAllString(text, "")
	text = resolver.ReplaceAllString(text, "")
	text = eventID.ReplaceAllString(text, "event ID")
	return loopback.ReplaceAllStringFunc(text, func(found string) string {
		if found == "127.0.0.1:9477" { // an example in a sentence
			return found
		}
		return "127.0.0.1:PORT"
	})
}

// address is what a name of the usual configuration stands for.
func (s *stand) address(name string) string {
	for pair := range slices.Chunk(s.replace, 2) {
		if pair[0] == name {
			return pair[1]
		}
	}
	return name
}

// whole joins lines with what belongs to them: the pointer to --help, and
// problems and cures that are indented below a heading.
func whole(lines []string) []string {
	var sentences []string
	for _, line := range lines {
		if last := len(sentences) - 1; last >= 0 && (strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "Try: ")) {
			sentences[last] += " " + strings.TrimSpace(line)
		} else {
			sentences = append(sentences, line)
		}
	}
	return sentences
}

// longest is what a person reads as one sentence.
const longest = 400

// noise is what no person should have to read.
var noise = []*regexp.Regexp{
	regexp.MustCompile(`%!|<nil>|goroutine [0-9]|panic:|0xc0[0-9a-f]+|\{0x|&\{|\[\]string`),
	regexp.MustCompile(`SQLSTATE .*SQLSTATE`),
	regexp.MustCompile(`\n\t| {3,}`),
}

// driver is what libraries say to each other.
var driver = regexp.MustCompile("dial tcp|lookup .* no such host|failed to connect to `|failed to receive|i/o timeout|context deadline exceeded|: EOF\\b|kafka server:|invalid body length")

// cure is something to do: a command, a setting, a variable, SQL, or words that
// tell what would be right.
var cure = regexp.MustCompile("`[^`]+`|" +
	`\b(postgres|outbox|kafka|window|http|slot_monitor|log|outbox\.columns)\.[a-z_]+|--[a-z]+|-c FILE|CDCPUB_[A-Z]|PG[A-Z]{4}|` +
	`\b(ALTER|CREATE|GRANT|SELECT|DROP) |` +
	`must be|indent with spaces|did you mean|for example|expected|remove|add |correct|state |set |raise|create |check |choose |name (?:a|the|another) |needs|stated twice|see README|allowed|only one|trying again|without double quotes|it may have`)

// judge tells what is wrong with a sentence itself.
func judge(t *testing.T, sentence string, m mistake) {
	t.Helper()
	if n, limit := len(sentence), cmp.Or(m.longest, longest); n > limit {
		t.Errorf("%d characters, more than %d: %s", n, limit, sentence)
	}
	for _, n := range noise {
		if n.MatchString(sentence) {
			t.Errorf("noise (%s): %s", n, sentence)
		}
	}
	if strings.Contains(sentence, secret) {
		t.Errorf("a secret is shown: %s", sentence)
	}
	cured, raw := cure.MatchString(sentence), driver.MatchString(sentence)
	if finished := cured && !raw; finished == m.unfinished {
		t.Errorf("finished %v (a cure %v, the driver's words %v), want %v: %s", finished, cured, raw, !m.unfinished, sentence)
	}
}
