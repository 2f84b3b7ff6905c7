// Package webui serves the status page: one document, embedded in the program. The page loads nothing from elsewhere;
// it reads the REST API and follows its events. It must not decide or write anything.
package webui

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"net/http"
	"time"
)

//go:embed page
var files embed.FS

// scripts are the parts of the script. While it loads, each part uses only the parts before it.
var scripts = []string{
	"dom.js",
	"words.js",
	"server.js",
	"groups.js",
	"cards.js",
	"fleet.js",
	"costs.js",
	"cluster.js",
	"timeline.js",
	"page.js",
}

var (
	layout = part("page.html")
	style  = part("page.css")
	script = joined(scripts)
)

func part(name string) []byte {
	text, err := files.ReadFile("page/" + name)
	if err != nil {
		panic(err) // the file is not embedded
	}
	return text
}

// joined joins the parts into one script with its own scope.
func joined(names []string) []byte {
	text := []byte("'use strict';\n(() => {\n")
	for _, name := range names {
		text = append(append(text, part(name)...), '\n')
	}
	return append(text, "})();\n"...)
}

// Handler serves the page. Its content security policy allows only the page's own script and style, by their hashes,
// and calls to its server.
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

// assemble puts style and script into the empty elements of the layout.
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
