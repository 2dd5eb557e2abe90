package config

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// group decodes a mapping into the fields of a group. Only the fields are
// followed, so no anchor can lead astray.
func (l *loader) group(n *yaml.Node, into field) {
	key := n
	n = resolve(n)
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		l.unread = l.unread || into.path == ""
		l.fail(l.at(key), into.path, "must be a group of settings, each as key: value")
		return
	}
	fields := fieldsOf(into.value, into.path)
	l.eachKey(n, into.path, func(key, value *yaml.Node) {
		for _, f := range fields {
			if f.key() == key.Value {
				l.field(key, value, f)
				return
			}
		}
		l.unknownKey(key, into, fields)
	})
}

// field decodes one field of a group and notes its origin.
func (l *loader) field(key, value *yaml.Node, f field) {
	l.cfg.origins[f.path] = l.at(key)
	switch target := f.value.Addr().Interface().(type) {
	case mapping:
		l.mapping(value, f, target)
	default:
		switch {
		case f.isGroup():
			l.group(value, f)
		case f.isGroups():
			l.groups(value, f)
		case f.value.Kind() == reflect.Slice:
			l.list(value, f)
		default:
			l.scalar(value, f)
		}
	}
}

// list decodes a sequence of scalars. Without a value (all items commented
// out) it states nothing; [] states that there are none.
func (l *loader) list(n *yaml.Node, f field) {
	at := n
	n = resolve(n)
	if isNull(n) {
		delete(l.cfg.origins, f.path)
		return
	}
	f.value.SetZero()
	if n.Kind != yaml.SequenceNode {
		l.fail(l.at(at), f.path, "must be a list, for example [a, b]")
		return
	}
	items := reflect.MakeSlice(f.value.Type(), len(n.Content), len(n.Content))
	f.value.Set(items)
	for i, item := range n.Content {
		path := fmt.Sprintf("%s[%d]", f.path, i)
		l.cfg.origins[path] = l.at(item)
		l.scalar(item, field{path: path, value: items.Index(i)})
	}
}

// mapping decodes a mapping of scalars whose keys the user chooses.
func (l *loader) mapping(n *yaml.Node, f field, target mapping) {
	l.chosenKeys(n, f, "{a: b}", func(path, key string, value *yaml.Node) {
		var text string
		l.scalar(value, field{path: path, value: reflect.ValueOf(&text).Elem()})
		target.put(key, text)
	})
}

// groups decodes a mapping of groups whose keys the user chooses.
func (l *loader) groups(n *yaml.Node, f field) {
	l.chosenKeys(n, f, "{a: {b: c}}", func(_, key string, value *yaml.Node) {
		if f.value.IsNil() {
			f.value.Set(reflect.MakeMap(f.value.Type()))
		}
		member := f.member(key)
		l.group(value, member)
		f.set(key, member)
	})
}

// chosenKeys calls visit for each entry of a mapping whose keys the user
// chooses. Without a value it states nothing; {} states that there are none.
func (l *loader) chosenKeys(n *yaml.Node, f field, example string, visit func(path, key string, value *yaml.Node)) {
	at := n
	n = resolve(n)
	if isNull(n) {
		delete(l.cfg.origins, f.path)
		return
	}
	f.value.SetZero()
	if n.Kind != yaml.MappingNode {
		l.fail(l.at(at), f.path, "must be a map, for example %s", example)
		return
	}
	l.eachKey(n, f.path, func(key, value *yaml.Node) {
		path := join(f.path, printable(key.Value))
		l.cfg.origins[path] = l.at(key)
		if err := checkText(key.Value); err != nil {
			l.fail(l.at(key), path, "the key %v", err)
			return
		}
		visit(path, key.Value, value)
	})
}

// scalar decodes one value.
func (l *loader) scalar(n *yaml.Node, f field) {
	at := l.at(n)
	n = resolve(n)
	switch {
	case n.Kind != yaml.ScalarNode:
		l.fail(at, f.path, "must be a single value")
	case n.Style&yaml.TaggedStyle != 0:
		l.fail(at, f.path, "must not have a YAML tag")
	case isNull(n) && f.value.Kind() == reflect.String:
		l.fail(at, f.path, `has no value; leave it out for the default, or write "" for none`)
	case isNull(n):
		l.fail(at, f.path, "has no value; leave it out for the default")
	default:
		if err := setText(f.value, n.Value); err != nil {
			l.fail(at, f.path, "%v", err)
		}
	}
}

// setText sets a scalar from its text. Errors do not repeat the text.
func setText(v reflect.Value, text string) error {
	if err := checkText(text); err != nil {
		return err
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return errors.New("must be true or false")
		}
		v.SetBool(text == "true")
	case reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return errors.New("must be a whole number")
		}
		v.SetInt(int64(n))
	default:
		return fmt.Errorf("cannot be stated: no text form of %s", v.Type())
	}
	return nil
}

// checkText refuses what no name, address or path contains, so that every
// value can be printed on one line and read back.
func checkText(text string) error {
	if !utf8.ValidString(text) {
		return errors.New("is not valid UTF-8")
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		return errors.New("has a control character")
	}
	return nil
}

// eachKey calls visit for each key of a mapping that is a first, plain one.
func (l *loader) eachKey(n *yaml.Node, path string, visit func(key, value *yaml.Node)) {
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		position, key := n.Content[i], resolve(n.Content[i])
		if key.Kind != yaml.ScalarNode || key.Style&yaml.TaggedStyle != 0 {
			l.report(l.at(position), path, "has a key that is not a plain text")
			continue
		}
		if key.Tag == "!!merge" {
			l.report(l.at(position), path, "merge keys (<<) are not supported; write the settings out")
			continue
		}
		if line, seen := first[key.Value]; seen {
			l.report(l.at(position), join(path, printable(key.Value)), "is stated twice, first in line %d", line)
			continue
		}
		first[key.Value] = position.Line
		visit(&yaml.Node{Value: key.Value, Line: position.Line}, n.Content[i+1])
	}
}

// resolve follows an alias to what its anchor names.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

var plainName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// printable returns a key as messages and paths show it. What is not like a
// name may be anything, a misplaced connection string for example.
func printable(key string) string {
	if plainName.MatchString(key) {
		return key
	}
	return "(...)"
}
