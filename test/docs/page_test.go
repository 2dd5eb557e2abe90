package docs_test

import (
	"fmt"
	"strings"
	"testing"
)

const referenceHead = `# Configuration

<!-- Made of the doc comments in internal/config by: go generate ./test/docs -->

One YAML file, named by ` + "`-c`" + `, else by ` + "`CDCPUB_CONFIG`" + `, else ` + "`cdcpub.yaml`" + ` in the
current directory. Every command reads the same one.
` + "[`cdcpub.example.yaml`](../cdcpub.example.yaml)" + ` is the whole file with every default.

- Each setting can also come from an environment variable, named below. It wins over the
  file. An empty one states nothing. Lists are comma-separated, maps are
  comma-separated ` + "`name=value`" + ` pairs; a value with a comma goes in double quotes.
- A file is not needed, in a container for example: if none is named, there is no
  ` + "`cdcpub.yaml`" + `, and a variable states a setting, everything comes from variables.
  ` + "`-c ''`" + ` says so even where there is a file.
- Unknown keys and unknown ` + "`CDCPUB_*`" + ` variables are errors, and so is a key that is
  stated twice. All problems are reported at once, with exit code 2.
- A size is a number of bytes, or has a unit: ` + "`512KiB`, `64MiB`" + `. A duration always has a
  unit: ` + "`250ms`, `10s`, `1m30s`" + `. A share is ` + "`75%` or `0.75`" + `.
- ` + "`cdcpub config print`" + ` shows what is in effect, where each value was stated, and no
  secret. A file that names ` + "`slot_monitor.servers`" + ` and states nothing of a stream is for
  ` + "`cdcpub slot watch`" + `, and may leave the rest out.
- The configuration is read once, at the start. Files that it names (passwords,
  certificates, keys) are read again for each connection, so they can be rotated
  without a restart.

## All settings

| setting | type | default | environment variable |
|---|---|---|---|
`

// configurationReference is the page: a table of everything, then each setting
// with its text.
func configurationReference(t *testing.T) string {
	all := settings(t)
	names := namesOf(all)
	var page strings.Builder
	page.WriteString(referenceHead)
	for _, s := range all {
		if !s.group {
			variable := "none: file only"
			if s.variable() != "" {
				variable = "`" + s.variable() + "`"
			}
			fmt.Fprintf(&page, "| [%s](#%s) | %s | %s | %s |\n", s.path, anchor(s.explainedAt(), nil), s.kind(t), s.preset(), variable)
		}
	}
	for _, s := range all {
		if s.owner == "Limit" {
			continue
		}
		level := "##"
		if strings.Contains(s.path, ".") {
			level = "###"
		}
		fmt.Fprintf(&page, "\n%s %s\n\n%s\n", level, s.path, fill(names.text(t, s)))
	}
	return page.String()
}

// explainedAt is the heading under which the setting stands.
func (s setting) explainedAt() string {
	if s.owner == "Limit" {
		return s.path[:strings.LastIndexByte(s.path, '.')]
	}
	return s.path
}

// fill breaks lines at 88 characters.
func fill(text string) string {
	var out strings.Builder
	width := 0
	for i, word := range strings.Fields(text) {
		if i > 0 && width+1+len(word) > 88 {
			out.WriteString("\n")
			width = 0
		} else if i > 0 {
			out.WriteString(" ")
			width++
		}
		out.WriteString(word)
		width += len(word)
	}
	return out.String()
}
