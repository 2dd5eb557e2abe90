package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Load reads the file at path, if path is not empty, lays the CDCPUB_*
// variables of env (as os.Environ gives them) over it, fills in the defaults
// and validates. It looks at nothing else: no network, no other file, no
// process environment.
//
// The error is a *Problems with everything that is wrong, or wraps what
// os.ReadFile returned.
func Load(path string, env []string) (*Config, error) { return LoadFor(path, env, NeedStream) }

// Need is what a configuration is loaded for.
type Need int

const (
	// NeedStream: to publish. Everything that is required must be there.
	NeedStream Need = iota
	// NeedSlots: to look at slots, or to act on them. Postgres.URL or one of
	// SlotMonitor.Servers is required, and nothing else; what is stated must be
	// right all the same.
	NeedSlots
	// NeedStated: whatever the configuration is made for. It is for slots alone
	// if it names SlotMonitor.Servers and states nothing of a stream.
	NeedStated
)

// DefaultFile is the file that is meant where none is named.
const DefaultFile = "cdcpub.yaml"

// Locate says what Load is to read where no file is named: DefaultFile in the
// working directory, or no file at all if there is none and a variable of env
// states a setting, as in a container. An error wraps fs.ErrNotExist.
func Locate(env []string) (string, error) {
	if _, err := os.Stat(DefaultFile); !errors.Is(err, fs.ErrNotExist) {
		return DefaultFile, nil // what else is wrong shows when it is read
	}
	if !statesAnything(env) {
		return "", &fileError{fmt.Sprintf("there is no %s in this directory, and no %s variable states a setting; name a file with %s",
			DefaultFile, envPrefix, waysToName), fs.ErrNotExist}
	}
	return "", nil
}

// waysToName are how a file is named.
const waysToName = "-c FILE or CDCPUB_CONFIG"

// LoadFor is Load for what is needed.
func LoadFor(path string, env []string, need Need) (*Config, error) {
	var text []byte
	if path != "" {
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return nil, unreadableFile(path, err)
		}
	}
	return parse(path, text, env, need)
}

// unreadableFile says why there is no configuration.
func unreadableFile(path string, cause error) error {
	if errors.Is(cause, fs.ErrNotExist) {
		return &fileError{fmt.Sprintf("there is no configuration file %s; name another with %s", path, waysToName), cause}
	}
	return fmt.Errorf("configuration file: %w", unreadable(path, cause))
}

// parse is LoadFor behind the file system.
func parse(file string, text []byte, env []string, need Need) (*Config, error) {
	l := newLoader(file)
	l.cfg.need = need
	l.file(text)
	l.environment(env)
	l.cfg.settleNeed()
	l.cfg.deriveDefaults()
	v := validator{cfg: l.cfg, failed: l.failed, unread: l.unread}
	v.run()
	if err := asError(append(l.problems, v.problems...)); err != nil {
		return nil, err
	}
	return l.cfg, nil
}

// settleNeed finds out what NeedStated means here.
func (c *Config) settleNeed() {
	if c.need != NeedStated {
		return
	}
	c.need = NeedStream
	stream := []string{"postgres.slot", "postgres.publication", "outbox", "kafka"}
	if len(c.SlotMonitor.Servers) > 0 && !slices.ContainsFunc(stream, c.statesWithin) {
		c.need = NeedSlots
	}
}

// statesWithin tells if path, or anything within it, was stated.
func (c *Config) statesWithin(path string) bool {
	for stated := range c.origins {
		if within(stated, path) {
			return true
		}
	}
	return false
}

// loader collects values, their origins and all problems on the way.
type loader struct {
	cfg      *Config
	problems []Problem
	// failed has the paths whose statement could not be used, so that their
	// absence is not reported once more.
	failed map[string]bool
	// unread is set when the file, or a part of it, could not be read.
	unread bool
}

func newLoader(file string) *loader {
	cfg := &Config{file: file, origins: map[string]Origin{}}
	cfg.setDefaults()
	return &loader{cfg: cfg, failed: map[string]bool{}}
}

// fail reports a statement at path that cannot be used.
func (l *loader) fail(at Origin, path, format string, args ...any) {
	l.failed[path] = true
	l.report(at, path, format, args...)
}

// report adds a problem that leaves the value at path usable.
func (l *loader) report(at Origin, path, format string, args ...any) {
	l.problems = append(l.problems, Problem{Origin: at, Path: path, Message: fmt.Sprintf(format, args...)})
}

func (l *loader) at(n *yaml.Node) Origin { return Origin{File: l.cfg.file, Line: n.Line} }

// file reads the YAML document. An empty one states nothing.
func (l *loader) file(text []byte) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, more yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return
	case err != nil:
		l.syntax(err)
		return
	}
	switch err := decoder.Decode(&more); {
	case err == nil:
		l.report(l.at(&more), "", "a second YAML document begins here; only one is allowed")
	case !errors.Is(err, io.EOF):
		l.syntax(err)
	}
	l.group(document.Content[0], field{value: reflect.ValueOf(l.cfg).Elem()})
}

var (
	// The YAML library gives the line of a syntax error in its text only.
	syntaxError = regexp.MustCompile(`(?s)^yaml: (?:line ([0-9]+): )?(.*)$`)
	// An anchor's name in it comes from the file, and may be half a password.
	quotedName = regexp.MustCompile(`'[0-9A-Za-z_-]+'`)
)

// syntax reports what the YAML library could not read. Its line is sometimes
// that before the culprit.
func (l *loader) syntax(err error) {
	at, message := Origin{File: l.cfg.file}, err.Error()
	if parts := syntaxError.FindStringSubmatch(message); parts != nil {
		at.Line, _ = strconv.Atoi(parts[1])
		message = quotedName.ReplaceAllString(parts[2], "'...'")
	}
	l.unread = true
	l.report(at, "", "not valid YAML around here: %s; indent with spaces, never with tabs, and quote values that have : # * or &", message)
}

// origin is where path, or the nearest thing around it, was stated.
func (c *Config) origin(path string) Origin {
	for ; path != ""; path = parent(path) {
		if o, ok := c.origins[path]; ok {
			return o
		}
	}
	return Origin{File: c.file}
}

// Stated tells if the field at path (for example
// outbox.columns.schema_version) was stated by the file or the environment.
// Otherwise it has its default.
func (c *Config) Stated(path string) bool {
	_, stated := c.origins[path]
	return stated
}

// File is the file that was read, "" if none was.
func (c *Config) File() string { return c.file }

// Origin says where the value of the field at path comes from.
func (c *Config) Origin(path string) Origin { return c.origins[path] }
