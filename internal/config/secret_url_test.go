package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestSecretURLShowsSchemeAndHostOnly(t *testing.T) {
	for in, want := range map[string]string{
		"":                                     "",
		"http://am:9093":                       "http://am:9093",
		"http://am:9093/":                      "http://am:9093",
		"http://am:9093/prefix":                "http://am:9093/xxxxx",
		"https://hooks.example/services/T0/B0": "https://hooks.example/xxxxx",
		"https://hooks.example?token=t":        "https://hooks.example/xxxxx",
		"https://u:p@hooks.example":            "https://xxxxx@hooks.example",
		"https://u@hooks.example/a":            "https://xxxxx@hooks.example/xxxxx",
		"http://[::1]:9093/x":                  "http://[::1]:9093/xxxxx",
		"https://bücher.example/x":             "https://bücher.example/xxxxx",
		"https://u:12/34@hooks.example":        "xxxxx",
		"https://u:12?34@hooks.example":        "xxxxx",
		"https://u:12#34@hooks.example":        "xxxxx",
		"https://hooks.example/x#y":            "xxxxx",
		"https://hooks.example:0/x":            "xxxxx",
		"https://hooks.example:/x":             "xxxxx",
		"hooks.example/x":                      "xxxxx",
		"ftp://hooks.example":                  "xxxxx",
		"https:hooks.example":                  "xxxxx",
		"https://a b/":                         "xxxxx",
		"https://a%41/":                        "xxxxx",
	} {
		if got := SecretURL(in).Redacted(); got != want {
			t.Errorf("%q redacted is %q, want %q", in, got, want)
		}
		if again := SecretURL(want).Redacted(); want != "xxxxx" && again != want {
			t.Errorf("%q redacted once more is %q", want, again)
		}
	}
}

func TestEveryWayToFormatASecretURLIsRedacted(t *testing.T) {
	w := Webhook{URL: "https://u:hunter2@hooks.example/hunter2?t=hunter2"}
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{string(text), w.URL.String(), fmt.Sprintf("%v %+v %#v %s %q %x", w, w, w, w, w, w)}
	for _, s := range all {
		if strings.Contains(s, "hunter2") || strings.Contains(s, fmt.Sprintf("%x", "hunter2")) {
			t.Errorf("shows the secret: %s", s)
		}
	}
}
