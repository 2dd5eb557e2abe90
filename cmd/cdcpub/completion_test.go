package main

import (
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func TestCompletionKnowsTheCommandLine(t *testing.T) {
	for name, c := range map[string]struct {
		words      []string
		want, lack []string
		files      bool
	}{
		"commands":                   {words: []string{""}, want: []string{"run", "init", "slot", "config", "version"}, lack: []string{"complete", "--help"}},
		"nothing typed":              {words: nil, want: []string{"run", "slot"}},
		"a command that has begun":   {words: []string{"ver"}, want: []string{"version"}, lack: []string{"run"}},
		"commands of a command":      {words: []string{"slot", ""}, want: []string{"list", "status", "watch"}, lack: []string{"run"}},
		"no commands after a wrong":  {words: []string{"slot", "stutas", ""}, want: []string{"status"}},
		"flags":                      {words: []string{"slot", "status", "--"}, want: []string{"--config", "--help", "--output", "--url"}, lack: []string{"status", "--failover"}},
		"a flag that has begun":      {words: []string{"slot", "create", "--fail"}, want: []string{"--failover"}, lack: []string{"--output"}},
		"values of a flag":           {words: []string{"slot", "status", "--output", ""}, want: []string{"table", "json", "nagios"}, lack: []string{"--output"}},
		"values of a short flag":     {words: []string{"slot", "status", "-o", "n"}, want: []string{"nagios"}, lack: []string{"table"}},
		"values within the word":     {words: []string{"slot", "status", "--output=n"}, want: []string{"--output=nagios"}, lack: []string{"nagios"}},
		"values as bash cuts words":  {words: []string{"slot", "status", "--output", "=", "n"}, want: []string{"nagios"}, lack: []string{"table"}},
		"at the mark of bash":        {words: []string{"slot", "status", "--output", "="}, want: []string{"table", "json", "nagios"}},
		"after a flag and its value": {words: []string{"slot", "create", "-c", "--failover", "--ye"}, want: []string{"--yes"}},
		"a value that is no command": {words: []string{"slot", "status", "list", "--o"}, want: []string{"--output"}},
		"values of an argument":      {words: []string{"completion", ""}, want: []string{"bash", "zsh", "fish"}},
		"no more arguments":          {words: []string{"completion", "bash", ""}, lack: []string{"bash", "zsh"}},
		"no flags after two dashes":  {words: []string{"slot", "status", "--", "--"}, lack: []string{"--output", "--help"}},
		"files":                      {words: []string{"run", "-c", ""}, files: true},
		"files within the word":      {words: []string{"run", "--config=cd"}, files: true},
		"unknown flag with a value":  {words: []string{"run", "--fast="}},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, nil, append([]string{"complete", "--"}, c.words...)...)
			got.expect(t, exitDone, []string{""}, nil)
			offered := map[string]bool{}
			for line := range strings.Lines(got.stdout) {
				word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
				offered[word] = true
			}
			for _, word := range c.want {
				if !offered[word] {
					t.Errorf("lacks %s: %s", word, got.stdout)
				}
			}
			for _, word := range c.lack {
				if offered[word] {
					t.Errorf("offers %s: %s", word, got.stdout)
				}
			}
			if offered[filesWanted] != c.files {
				t.Errorf("files: %t", offered[filesWanted])
			}
		})
	}
}

func TestCompletionOffersOnlyWhatParses(t *testing.T) {
	var walk func(words []string)
	walk = func(words []string) {
		found := execute(t, nil, append([]string{"complete", "--"}, append(words, "")...)...)
		for line := range strings.Lines(found.stdout) {
			word, help, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			command := append(append([]string{}, words...), word)
			execute(t, nil, append(command, "--help")...).expect(t, exitDone, []string{"Usage: cdcpub " + command[0]}, nil)
			if help != "" { // a command, not a value
				walk(command)
			}
		}
	}
	walk(nil)
}

// Whoever asks for help wants to see one that works.
func TestHelpOfEveryCommandShowsAnExample(t *testing.T) {
	var cli commands
	parser, err := kong.New(&cli, kong.Name("cdcpub"), kong.Vars{"config": "cdcpub.yaml"}, kong.Bind(&process{signals: make(chan os.Signal)}))
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range parser.Model.Leaves(true) {
		command := strings.TrimSpace(leaf.Path())
		if !strings.Contains(leaf.Detail, "Example") || !strings.Contains(leaf.Detail, "cdcpub "+command) {
			t.Errorf("the help of %s shows no example of it", command)
		}
	}
}
