package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// environment lays the CDCPUB_* variables over the file. An empty variable
// states nothing, as with libpq's. Lists are comma-separated, maps are
// comma-separated name=value pairs; commas within double quotes do not count.
// A map of groups has no text form, so only the file can state it.
func (l *loader) environment(env []string) {
	known, fileOnly := map[string]field{}, map[string]field{}
	for _, f := range leaves(l.cfg, "") {
		if f.isGroups() {
			fileOnly[envName(f.path)] = f
		} else {
			known[envName(f.path)] = f
		}
	}
	for _, variable := range env {
		name, text, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, envPrefix) || text == "" || foreign(name) {
			continue
		}
		if f, ok := known[name]; ok {
			l.variable(name, text, f)
		} else if f, ok := beginning(name, fileOnly); ok {
			l.report(Origin{Env: printable(name)}, f.path, "no variable can state it; write it in the configuration file")
		} else {
			l.unknownVariable(name, known)
		}
	}
}

// beginning finds the field whose variable's name is, or begins, the name.
func beginning(name string, fields map[string]field) (f field, ok bool) {
	for candidate, f := range fields {
		if name == candidate || strings.HasPrefix(name, candidate+"_") {
			return f, true
		}
	}
	return field{}, false
}

// kubernetesLink matches the variables that Kubernetes sets in every pod for a
// Service whose name is or begins with "cdcpub".
var kubernetesLink = regexp.MustCompile(
	`^CDCPUB_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)?)$`)

// statesAnything tells if a variable is there for the configuration.
func statesAnything(env []string) bool {
	return slices.ContainsFunc(env, func(variable string) bool {
		name, text, _ := strings.Cut(variable, "=")
		return strings.HasPrefix(name, envPrefix) && text != "" && !foreign(name)
	})
}

// foreign tells if a variable with our prefix is not for the configuration:
// CDCPUB_CONFIG names the file, others come from Kubernetes.
func foreign(name string) bool {
	return name == envPrefix+"CONFIG" || kubernetesLink.MatchString(name)
}

// variable decodes one environment variable.
func (l *loader) variable(name, text string, f field) {
	at := Origin{Env: name}
	l.override(f.path, at)
	switch target := f.value.Addr().Interface().(type) {
	case mapping:
		f.value.SetZero()
		l.pairs(at, text, f, target)
	default:
		if f.value.Kind() != reflect.Slice {
			l.text(at, text, f)
			return
		}
		parts := splitList(text)
		items := reflect.MakeSlice(f.value.Type(), len(parts), len(parts))
		f.value.Set(items)
		for i, part := range parts {
			l.text(at, part, field{path: fmt.Sprintf("%s[%d]", f.path, i), value: items.Index(i)})
		}
	}
}

// override makes the variable the origin of path instead of the file. A problem
// of the file's value stays reported, but says nothing about the new one.
func (l *loader) override(path string, at Origin) {
	for p := range l.cfg.origins {
		if within(p, path) {
			delete(l.cfg.origins, p)
		}
	}
	for p := range l.failed {
		if within(p, path) {
			delete(l.failed, p)
		}
	}
	l.cfg.origins[path] = at
}

func (l *loader) text(at Origin, text string, f field) {
	if err := setText(f.value, text); err != nil {
		l.fail(at, f.path, "%v", err)
	}
}

func (l *loader) pairs(at Origin, text string, f field, target mapping) {
	seen := map[string]bool{}
	for _, pair := range splitList(text) {
		key, value, ok := strings.Cut(pair, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		path := join(f.path, printable(key))
		switch {
		case !ok:
			l.fail(at, f.path, "must be name=value pairs with commas between them")
			return
		case checkText(pair) != nil:
			l.fail(at, f.path, "%v", checkText(pair))
			return
		case seen[key]:
			l.fail(at, path, "is stated twice")
			return
		}
		seen[key] = true
		target.put(key, value)
	}
}

// splitList splits at commas outside double quotes and trims the parts.
func splitList(text string) []string {
	quoted := false
	parts := strings.FieldsFunc(text, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ',' && !quoted
	})
	for i, part := range parts {
		parts[i] = strings.TrimSpace(part)
	}
	return parts
}

// within tells if path is under, or is a part of it.
func within(path, under string) bool {
	rest, ok := strings.CutPrefix(path, under)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// parent cuts the last part of a path.
func parent(path string) string {
	if i := strings.LastIndexAny(path, ".["); i >= 0 {
		return path[:i]
	}
	return ""
}
