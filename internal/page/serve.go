package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"net/http"
	"path"
	"time"
)

//go:embed assets
var files embed.FS

// policy lets the page load its own files and talk to its own server, and
// nothing else. The data: images are the icons of the tab.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'self'; require-trusted-types-for 'script'"

// guarded sets the headers that every answer has, errors included.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

// assets are the embedded files by name.
type assets map[string]asset

type asset struct {
	content           []byte
	contentType, etag string
}

var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
}

func loadAssets() assets {
	all := assets{}
	entries, _ := fs.ReadDir(files, "assets") // embedded: it is there
	for _, entry := range entries {
		content, _ := fs.ReadFile(files, path.Join("assets", entry.Name()))
		sum := sha256.Sum256(content)
		all[entry.Name()] = asset{
			content:     content,
			contentType: contentTypes[path.Ext(entry.Name())],
			etag:        `"` + hex.EncodeToString(sum[:16]) + `"`,
		}
	}
	return all
}

// serve lets the browser keep the file and makes it ask each time whether it is
// still the same: after an upgrade no page has half of the old scripts.
func (a assets) serve(name string) http.HandlerFunc {
	asset := a[name]
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("Content-Type", asset.contentType)
		w.Header().Set("ETag", asset.etag)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(asset.content))
	}
}

func (p *Page) serveNow(w http.ResponseWriter, _ *http.Request) {
	o := p.observe(time.Now())
	serveJSON(w, describe(&o, p.source.Version, p.source.Poll))
}

func (p *Page) serveHistory(w http.ResponseWriter, r *http.Request) {
	serveJSON(w, p.history.since(r.URL.Query().Get("since")))
}

func serveJSON(w http.ResponseWriter, answer any) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the client is gone
}
