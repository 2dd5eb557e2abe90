package notify

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

const hidden = "xxxxx"

// word matches what stays together however an answer escapes the URL.
var word = regexp.MustCompile(`[\p{L}\p{N}]{6,}`)

// hiding replaces the parts of a URL that may be secret: a server that does not
// know a path likes to repeat it. Parts of less than four bytes are no secrets,
// but for a password.
func hiding(u *url.URL) *strings.Replacer {
	var parts []string
	for _, path := range []string{u.Path, u.EscapedPath()} {
		parts = append(parts, path)
		parts = append(parts, strings.Split(path, "/")...)
	}
	parts = append(parts, u.RawQuery)
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		_, raw, _ := strings.Cut(pair, "=")
		value, _ := url.QueryUnescape(raw)
		parts = append(parts, raw, value)
	}
	var secrets []string
	if u.User != nil {
		password, _ := u.User.Password()
		plain := u.User.Username() + ":" + password
		parts = append(parts, u.User.Username(), u.User.String(), base64.StdEncoding.EncodeToString([]byte(plain)))
		_, escaped, _ := strings.Cut(u.User.String(), ":")
		secrets = append(secrets, password, escaped)
	}
	for _, part := range append(parts, secrets...) {
		secrets = append(secrets, word.FindAllString(part, -1)...)
		if len(part) >= 4 {
			secrets = append(secrets, part)
		}
	}
	// Of several that begin at the same place the first one in the list counts.
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, secret := range secrets {
		if secret != "" {
			pairs = append(pairs, secret, hidden)
		}
	}
	return strings.NewReplacer(pairs...)
}
