package config

import (
	"strings"
	"testing"
)

func TestTopicTemplates(t *testing.T) {
	for template, ok := range map[string]bool{
		"outbox.event.{aggregate_type}": true,
		"{tenant}-{Aggregate Type}":     true,
		"{a}":                           true,
		"orders":                        true,
		"a}":                            false,
		"{a":                            false,
		"{}":                            false,
		"{{a}}":                         false,
		"a b":                           false,
		"..":                            false,
		strings.Repeat("x", 250):        false,
	} {
		if err := checkTemplate(template); (err == nil) != ok {
			t.Errorf("%q: %v", template, err)
		}
	}
}
