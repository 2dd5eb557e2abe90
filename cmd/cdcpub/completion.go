package main

import (
	"cmp"
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completionScripts ask this program, by completeCommand, what may come next.
// So they know nothing of the command line and stay right when it changes.
//
//go:embed completion
var completionScripts embed.FS

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" placeholder:"bash|zsh|fish" help:"bash, zsh or fish."`
}

// Help is shown below the flags' overview.
func (completionCommand) Help() string {
	return `Examples, for this session and for good:

    source <(cdcpub completion bash)
    cdcpub completion bash > /etc/bash_completion.d/cdcpub

    source <(cdcpub completion zsh)
    cdcpub completion zsh > "${fpath[1]}/_cdcpub"

    cdcpub completion fish | source
    cdcpub completion fish > ~/.config/fish/completions/cdcpub.fish`
}

func (c *completionCommand) Run(p *process) error {
	script, err := completionScripts.ReadFile("completion/cdcpub." + c.Shell)
	if err != nil {
		return err
	}
	_, err = p.stdout.Write(script)
	return err
}

// completeCommand is what the scripts call: it prints what the last word may
// become, one candidate a line, with a tab and its help.
type completeCommand struct {
	Words []string `arg:"" optional:"" help:"The words after the program's name, the last one being that which is completed."`
}

func (c *completeCommand) Run(p *process, parsed *kong.Context) error {
	return complete(parsed.Model.Node, c.Words).write(p.stdout)
}

// candidate is what a word may become.
type candidate struct{ word, help string }

// candidates are what the last word of a command line may become.
type candidates struct {
	words []candidate
	// files: the name of a file is wanted.
	files bool
}

// filesWanted is the line that stands for the names of files.
const filesWanted = ":files"

func (c candidates) write(to io.Writer) error {
	var lines strings.Builder
	for _, w := range c.words {
		fmt.Fprintf(&lines, "%s\t%s\n", w.word, w.help)
	}
	if c.files {
		lines.WriteString(filesWanted + "\n")
	}
	_, err := io.WriteString(to, lines.String())
	return err
}

// complete says what the last of words may become. The words before it may be
// any: what does not parse is passed over.
func complete(root *kong.Node, words []string) candidates {
	last := ""
	if len(words) > 0 {
		words, last = words[:len(words)-1], words[len(words)-1]
	}
	line := commandLine{node: root}
	for _, word := range words {
		line.read(word)
	}
	return line.next(last)
}

// commandLine is where the reading of a command line has got to.
type commandLine struct {
	node *kong.Node
	// waiting is the flag whose value comes next, nil if none does.
	waiting *kong.Flag
	// arguments is the number of the node's arguments that were read.
	arguments int
	// plain: "--" was read, so there are no more flags.
	plain bool
}

func (l *commandLine) read(word string) {
	switch {
	case l.waiting != nil:
		if word != "=" { // which bash makes a word of its own
			l.waiting = nil
		}
	case l.plain:
		l.arguments++
	case word == "--":
		l.plain = true
	case len(word) > 1 && word[0] == '-':
		if flag := l.flag(word); flag != nil && !flag.IsBool() {
			l.waiting = flag
		}
	default:
		if i := slices.IndexFunc(l.node.Children, func(child *kong.Node) bool { return child.Name == word }); i >= 0 {
			l.node, l.arguments = l.node.Children[i], 0
			return
		}
		l.arguments++
	}
}

// flag is the flag of which word is the whole: --name or -n, not --name=value.
func (l *commandLine) flag(word string) *kong.Flag {
	for _, group := range l.node.AllFlags(true) {
		for _, flag := range group {
			if word == "--"+flag.Name || flag.Short != 0 && word == "-"+string(flag.Short) {
				return flag
			}
		}
	}
	return nil
}

func (l *commandLine) next(word string) candidates {
	name, value, stated := strings.Cut(word, "=")
	switch {
	case l.waiting != nil:
		return values(l.waiting.Value, "", strings.TrimPrefix(word, "="))
	case !l.plain && stated && strings.HasPrefix(word, "--"):
		if flag := l.flag(name); flag != nil {
			return values(flag.Value, name+"=", value)
		}
		return candidates{}
	case !l.plain && strings.HasPrefix(word, "-"):
		return l.flags(word)
	}
	var found candidates
	for _, child := range l.node.Children {
		if !child.Hidden && strings.HasPrefix(child.Name, word) {
			found.words = append(found.words, candidate{child.Name, brief(child.Help)})
		}
	}
	if l.arguments < len(l.node.Positional) {
		found.words = append(found.words, values(l.node.Positional[l.arguments], "", word).words...)
	}
	return found
}

func (l *commandLine) flags(word string) candidates {
	var found candidates
	for _, group := range l.node.AllFlags(true) {
		for _, flag := range group {
			if strings.HasPrefix("--"+flag.Name, word) {
				found.words = append(found.words, candidate{"--" + flag.Name, brief(flag.Help)})
			}
		}
	}
	slices.SortStableFunc(found.words, func(a, b candidate) int { return cmp.Compare(a.word, b.word) })
	return found
}

// values are the possible values of a flag or an argument that begin with
// typed, each with what stands before it in the same word.
func values(v *kong.Value, before, typed string) candidates {
	found := candidates{files: v.Flag != nil && v.Flag.PlaceHolder == "FILE"}
	if v.Enum == "" {
		return found
	}
	for _, value := range v.EnumSlice() {
		if strings.HasPrefix(value, typed) {
			found.words = append(found.words, candidate{word: before + value})
		}
	}
	return found
}

// brief is the first sentence of a help text, without its full stop.
func brief(help string) string {
	sentence, _, _ := strings.Cut(help, ". ")
	return strings.TrimSuffix(sentence, ".")
}
