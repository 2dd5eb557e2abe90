package config

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/cdcpub/cdcpub/internal/spelling"
)

// unknownKey reports a key that the group does not have, with what was
// probably meant. The value is not shown: it may be a secret.
func (l *loader) unknownKey(key *yaml.Node, group field, siblings []field) {
	if !plainName.MatchString(key.Value) {
		l.report(l.at(key), group.path, "has a key that is not the name of a setting")
		return
	}
	var names []string
	for _, f := range siblings {
		names = append(names, f.key())
	}
	message := "unknown key"
	if near := nearest(key.Value, names); near != "" {
		l.failed[join(group.path, near)] = true
		message += "; did you mean " + join(group.path, near) + "?"
	} else if elsewhere := l.elsewhere(key.Value); elsewhere != "" {
		message += "; did you mean " + elsewhere + "?"
	} else {
		message += "; allowed here: " + strings.Join(names, ", ")
	}
	l.report(l.at(key), join(group.path, key.Value), "%s", message)
}

// elsewhere finds the path that ends in, or is, the key: a field that was
// written under another group, or with dots. Empty if there is not just one.
func (l *loader) elsewhere(key string) string {
	var found []string
	collect(field{value: reflect.ValueOf(l.cfg).Elem()}, func(f field) {
		if f.path == key || f.key() == key {
			found = append(found, f.path)
		}
	})
	if len(found) != 1 {
		return ""
	}
	if found[0] == key && strings.Contains(key, ".") {
		return found[0] + ", written as nested groups"
	}
	return found[0]
}

// collect visits all fields of a group, groups included.
func collect(group field, visit func(field)) {
	for _, f := range fieldsOf(group.value, group.path) {
		visit(f)
		if f.isGroup() {
			collect(f, visit)
		}
	}
}

// unknownVariable reports a CDCPUB_* variable that states no field.
func (l *loader) unknownVariable(name string, known map[string]field) {
	var names []string
	for candidate := range known {
		names = append(names, strings.TrimPrefix(candidate, envPrefix))
	}
	slices.Sort(names)
	message := "is the variable of no setting; their names are CDCPUB_ and the path, for example CDCPUB_KAFKA_BROKERS"
	if near := nearest(strings.TrimPrefix(name, envPrefix), names); near != "" {
		l.failed[known[envPrefix+near].path] = true
		message = "is the variable of no setting; did you mean " + envPrefix + near + "?"
	}
	l.report(Origin{Env: printable(name)}, "", "%s", message)
}

// nearest returns the name that s is probably a misspelling of, or "".
func nearest(s string, names []string) string {
	if len(s) > 64 {
		return ""
	}
	normal := strings.ReplaceAll(strings.ToLower(s), "-", "_")
	best, limit := "", 1+len(s)/5
	for _, name := range names {
		target := strings.ToLower(name)
		if d := spelling.Distance(normal, target); d <= limit {
			best, limit = name, d-1
		}
	}
	if best != "" {
		return best
	}
	// A missing or additional ending is further away than a typo: password for
	// password_file, warning for warn. The shortest one is the nearest.
	for _, name := range names {
		target := strings.ToLower(name)
		if d := max(len(target), len(normal)) - min(len(target), len(normal)); min(len(target), len(normal)) >= 3 &&
			(strings.HasPrefix(target, normal) || strings.HasPrefix(normal, target)) && (best == "" || d < limit) {
			best, limit = name, d
		}
	}
	return best
}
