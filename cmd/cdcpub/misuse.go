package main

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/internal/spelling"
)

// usageError is a command line that cannot be parsed.
type usageError struct {
	text string
	// command is as far as it could be read: "slot status".
	command string
}

// Error has the pointer to the help on a line of its own.
func (e *usageError) Error() string { return e.text + "\nTry: " + e.help() }

func (e *usageError) help() string {
	return strings.Join(strings.Fields("cdcpub "+e.command+" --help"), " ")
}

// misuse says what is wrong with words that the parser has refused with err.
func misuse(root *kong.Node, words []string, err error) *usageError {
	line := commandLine{node: root}
	for _, word := range words {
		if wrong := line.wrong(word); wrong != "" {
			return &usageError{wrong, line.command()}
		}
		line.read(word)
	}
	switch {
	case line.waiting != nil:
		return &usageError{fmt.Sprintf("%s needs a value: %s", spelled(line.waiting), exampleOf(line.waiting)), line.command()}
	case len(line.node.Children) > 0:
		return &usageError{"a command is missing; choose one of " + strings.Join(line.choices(), ", "), line.command()}
	}
	if missing := line.node.Positional; line.arguments < len(missing) && missing[line.arguments].Required {
		needs := missing[line.arguments]
		return &usageError{fmt.Sprintf("%s needs one of %s", line.command(), strings.Join(needs.EnumSlice(), ", ")), line.command()}
	}
	return &usageError{err.Error(), line.command()}
}

// command is the path of the command so far, without the program's name.
func (l *commandLine) command() string { return strings.TrimSpace(l.node.Path()) }

// wrong says what is wrong with the next word; empty if that cannot be told by
// its place.
func (l *commandLine) wrong(word string) string {
	switch {
	case l.waiting != nil, !l.plain && word == "--":
		return ""
	case !l.plain && len(word) > 1 && word[0] == '-':
		return l.wrongFlag(word)
	case len(l.node.Children) > 0:
		choices := l.choices()
		for _, child := range l.node.Children {
			if child.Name == word {
				return ""
			}
		}
		if near := nearby(word, choices); near != "" {
			return fmt.Sprintf("there is no command %q; did you mean %s?", l.within(word), near)
		}
		return fmt.Sprintf("there is no command %q; choose one of %s", l.within(word), strings.Join(choices, ", "))
	case l.arguments < len(l.node.Positional):
		return ""
	case len(l.node.Positional) > 0 && l.node.Positional[len(l.node.Positional)-1].IsCumulative():
		return ""
	case len(l.node.Positional) == 0:
		return fmt.Sprintf("%q is too much: %s takes flags alone; remove it", word, l.command())
	}
	return fmt.Sprintf("%q is too much: %s takes one name; remove it", word, l.command())
}

// wrongFlag is wrong for a word that begins with a dash.
func (l *commandLine) wrongFlag(word string) string {
	name, _, _ := strings.Cut(word, "=")
	if l.flag(name) != nil || !strings.HasPrefix(word, "--") && l.flag(word[:2]) != nil {
		return ""
	}
	var names []string
	for _, group := range l.node.AllFlags(true) {
		for _, flag := range group {
			names = append(names, "--"+flag.Name)
		}
	}
	who := "cdcpub"
	if command := l.command(); command != "" {
		who += " " + command
	}
	text := fmt.Sprintf("%s has no flag %s", who, name)
	if near := nearby(name, names); near != "" {
		return text + "; did you mean " + near + "?"
	}
	return text + "; most settings are stated in the configuration file or as CDCPUB_ variables"
}

func (l *commandLine) choices() []string {
	var names []string
	for _, child := range l.node.Children {
		if !child.Hidden {
			names = append(names, child.Name)
		}
	}
	return names
}

// within is a word with the commands before it.
func (l *commandLine) within(word string) string { return strings.TrimSpace(l.command() + " " + word) }

// nearby is the name that was probably meant, or "".
func nearby(word string, names []string) string {
	near := spelling.Sorted(word, names)
	if len(near) > 0 && spelling.Distance(word, near[0]) <= 1+len(word)/5 {
		return near[0]
	}
	return ""
}

// spelled is a flag by its names: "-c, --config".
func spelled(flag *kong.Flag) string {
	if flag.Short != 0 {
		return fmt.Sprintf("-%c, --%s", flag.Short, flag.Name)
	}
	return "--" + flag.Name
}

// exampleOf is a flag with a value: "-c FILE".
func exampleOf(flag *kong.Flag) string {
	value := strings.ToUpper(flag.Name)
	switch {
	case flag.PlaceHolder != "":
		value = flag.PlaceHolder
	case flag.Enum != "":
		value = strings.Join(flag.EnumSlice(), "|")
	case flag.HasDefault:
		value = flag.Default
	}
	if flag.Short != 0 {
		return fmt.Sprintf("-%c %s", flag.Short, value)
	}
	return "--" + flag.Name + " " + value
}

// durationFlags parses the durations of flags as those of settings are.
var durationFlags = kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(func(c *kong.DecodeContext, target reflect.Value) error {
	token, err := c.Scan.PopValue("duration")
	if err != nil {
		return err
	}
	var d config.Duration
	text, ok := token.Value.(string)
	if !ok {
		return errors.New("must be a duration, for example 10s")
	}
	if err := d.UnmarshalText([]byte(text)); err != nil {
		return err
	}
	target.SetInt(int64(d))
	return nil
}))
