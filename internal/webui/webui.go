// Package webui is the status page: one document for people, embedded in the program. It loads nothing from elsewhere
// and knows nothing but the REST API, which it polls. It decides nothing and writes nothing.
package webui

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the parts of the page
	"encoding/base64"
	"fmt"
	"net/http"
	"time"
)

//go:embed page.html
var layout []byte

//go:embed page.css
var style []byte

//go:embed page.js
var script []byte

// Handler serves the page. Its content security policy allows the page's own script and style, by their hashes, and
// calls to the server it came from; nothing else.
func Handler() http.Handler {
	page := assemble()
	policy := fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; connect-src 'self'; img-src data:; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'", hash(script), hash(style))
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum(page)) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Content-Security-Policy", policy)
		header.Set("Cache-Control", "no-cache")
		header.Set("ETag", tag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(page))
	})
}

// assemble puts style and script into the layout, where an empty element waits for each.
func assemble() []byte {
	page := bytes.Replace(layout, []byte("<style></style>"), wrap("style", style), 1)
	return bytes.Replace(page, []byte("<script></script>"), wrap("script", script), 1)
}

func wrap(element string, text []byte) []byte {
	return fmt.Appendf(nil, "<%s>%s</%s>", element, text, element)
}

func hash(text []byte) string {
	return "sha256-" + base64.StdEncoding.EncodeToString(sum(text))
}

func sum(text []byte) []byte {
	digest := sha256.Sum256(text)
	return digest[:]
}
