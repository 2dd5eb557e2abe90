package config

import (
	"encoding"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Print writes the effective configuration as YAML that Load accepts, with the
// origin of each value as a comment. Secrets are written as xxxxx.
func (c *Config) Print(w io.Writer) error {
	root, err := c.groupNode(field{value: reflect.ValueOf(c).Elem()}, false)
	if err != nil {
		return err
	}
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return fmt.Errorf("print the configuration: %w", err)
	}
	return encoder.Close()
}

// groupNode is the YAML of a group; of what was stated in it only, if so asked.
func (c *Config) groupNode(group field, stated bool) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fieldsOf(group.value, group.path) {
		if stated && !c.Stated(f.path) {
			continue
		}
		key, value := textNode(f.key()), (*yaml.Node)(nil)
		var err error
		switch {
		case f.isGroup():
			value, err = c.groupNode(f, stated)
		case f.isGroups():
			value, err = c.groupsNode(f)
			c.comment(key, value, f.path)
		default:
			value, err = leafNode(f.value)
			c.comment(key, value, f.path)
		}
		if err != nil {
			return nil, fmt.Errorf("print %s: %w", f.path, err)
		}
		node.Content = append(node.Content, key, value)
	}
	return flowIfEmpty(node), nil
}

// groupsNode is the YAML of a map of groups. What was not stated for one of
// them is not its own, so it is left out where that is known.
func (c *Config) groupsNode(f field) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	var keys []string
	for _, key := range f.value.MapKeys() {
		keys = append(keys, key.String())
	}
	slices.Sort(keys)
	for _, key := range keys {
		value, err := c.groupNode(f.member(key), c.origins != nil)
		if err != nil {
			return node, err
		}
		node.Content = append(node.Content, textNode(key), value)
	}
	return flowIfEmpty(node), nil
}

// comment says where the value comes from, where a line comment is possible.
func (c *Config) comment(key, value *yaml.Node, path string) {
	if value.Kind != yaml.ScalarNode && len(value.Content) > 0 {
		key.LineComment = c.Origin(path).String()
		return
	}
	value.LineComment = c.Origin(path).String()
}

// leafNode is the YAML of one value.
func leafNode(v reflect.Value) (*yaml.Node, error) {
	if m, ok := v.Addr().Interface().(mapping); ok {
		node := &yaml.Node{Kind: yaml.MappingNode}
		for _, e := range m.entries() {
			node.Content = append(node.Content, textNode(e.key), textNode(e.value))
		}
		return flowIfEmpty(node), nil
	}
	if text, ok := v.Addr().Interface().(encoding.TextMarshaler); ok {
		b, err := text.MarshalText()
		node := textNode(string(b))
		if digits.Match(b) {
			node.Tag, node.Style = "!!int", 0
		}
		return node, err
	}
	switch v.Kind() {
	case reflect.String:
		return textNode(v.String()), nil
	case reflect.Bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v.Bool())}, nil
	case reflect.Int:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(v.Int(), 10)}, nil
	case reflect.Slice:
		node := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			item, err := leafNode(v.Index(i))
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, item)
		}
		return flowIfEmpty(node), nil
	}
	return nil, fmt.Errorf("no text form of %s", v.Type())
}

// digits matches what needs no quotes, although YAML takes it for a number.
var digits = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)

// textNode is a scalar that reads back as text, quoted where necessary.
func textNode(s string) *yaml.Node {
	node := &yaml.Node{}
	node.SetString(s)
	if s == "" {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}

func flowIfEmpty(node *yaml.Node) *yaml.Node {
	if len(node.Content) == 0 {
		node.Style = yaml.FlowStyle
	}
	return node
}
