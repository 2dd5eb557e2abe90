package config

import (
	"fmt"
	"io"
	"strings"
)

// Secret is a password or a key. Everything that formats it gets xxxxx;
// string(s) is the secret.
type Secret string

// Redacted is xxxxx, or nothing if there is no secret.
func (s Secret) Redacted() string {
	if s == "" {
		return ""
	}
	return redacted
}

// String returns Redacted.
func (s Secret) String() string { return s.Redacted() }

// Format writes Redacted for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.Redacted()) }

// MarshalText returns Redacted.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.Redacted()), nil }

// UnmarshalText takes the text as it is.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = Secret(text)
	return nil
}

// secretFrom is the secret that is stated, or that of the file if one is named:
// each call reads it again. path is the field with the file's name, for errors.
func secretFrom(stated Secret, file, path string) (string, error) {
	if file == "" {
		return string(stated), nil
	}
	secret, err := readSecret(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return secret, nil
}

// readSecret reads a file that has nothing but a secret, perhaps with a newline
// at its end.
func readSecret(path string) (string, error) {
	text, err := readFile(path)
	if err != nil {
		return "", err
	}
	secret := strings.TrimRight(string(text), "\r\n")
	switch {
	case secret == "":
		return "", fmt.Errorf("%s is empty; write the secret into it, or remove the setting", path)
	case hasControl(secret):
		return "", fmt.Errorf("%s has more than one line; it must have nothing but the secret", path)
	}
	return secret, nil
}

func hasControl(secret string) bool { return strings.ContainsAny(secret, "\r\n\x00") }
