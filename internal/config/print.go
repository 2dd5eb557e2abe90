package config

import (
	"encoding"
	"fmt"
	"io"
	"reflect"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Print writes the effective configuration as YAML that Load accepts, with the
// origin of each value as a comment. Secrets are written as xxxxx.
func (c *Config) Print(w io.Writer) error {
	root, err := c.groupNode(field{value: reflect.ValueOf(c).Elem()})
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

func (c *Config) groupNode(group field) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fieldsOf(group.value, group.path) {
		key, value := textNode(f.key()), (*yaml.Node)(nil)
		var err error
		if f.isGroup() {
			value, err = c.groupNode(f)
		} else if value, err = leafNode(f.value); err == nil {
			c.comment(key, value, f.path)
		}
		if err != nil {
			return nil, fmt.Errorf("print %s: %w", f.path, err)
		}
		node.Content = append(node.Content, key, value)
	}
	return node, nil
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
		return textNode(string(b)), err
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
