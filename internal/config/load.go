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
	"strings"

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
)

// DefaultFile is the file that is meant where none is named.
const DefaultFile = "cdcpub.yaml"

// LoadFor is Load for what is needed. With NeedSlots a missing DefaultFile is
// as good as an empty one when a variable names a server, so that a slot can be
// looked at with nothing but CDCPUB_POSTGRES_URL.
func LoadFor(path string, env []string, need Need) (*Config, error) {
	var text []byte
	if path != "" {
		var err error
		text, err = os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && need == NeedSlots && path == DefaultFile:
			if !namesServer(env) {
				return nil, fmt.Errorf("read the configuration: %w; name another file, or state CDCPUB_POSTGRES_URL", err)
			}
			path = ""
		case err != nil:
			return nil, fmt.Errorf("read the configuration: %w; name the file with -c FILE or CDCPUB_CONFIG", err)
		}
	}
	return parse(path, text, env, need)
}

// namesServer tells if a variable names a server to look at.
func namesServer(env []string) bool {
	return slices.ContainsFunc(env, func(variable string) bool {
		name, value, _ := strings.Cut(variable, "=")
		return value != "" && (name == envName("postgres.url") || name == envName("slot_monitor.servers"))
	})
}

// parse is LoadFor behind the file system.
func parse(file string, text []byte, env []string, need Need) (*Config, error) {
	l := newLoader(file)
	l.cfg.need = need
	l.file(text)
	l.environment(env)
	l.cfg.deriveDefaults()
	v := validator{cfg: l.cfg, failed: l.failed, unread: l.unread}
	v.run()
	if err := asError(append(l.problems, v.problems...)); err != nil {
		return nil, err
	}
	return l.cfg, nil
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

// Origin says where the value of the field at path comes from.
func (c *Config) Origin(path string) Origin { return c.origins[path] }
