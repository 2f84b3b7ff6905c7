package printer

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// PageWidth fits a terminal with a margin.
const PageWidth = 100

// Page collects lines of at most PageWidth columns, and has the Look of its tables.
type Page struct {
	strings.Builder
	Look
}

// WriterOf returns the function that writes an answer in the format of -o: text for people, and JSON or YAML, with the
// same keys, for programs.
func WriterOf[T any](output string, as Look, text func(*Page, T)) func(io.Writer, T) error {
	switch output {
	case "json":
		return func(out io.Writer, value T) error {
			encoder := json.NewEncoder(out)
			encoder.SetEscapeHTML(false)
			encoder.SetIndent("", "  ")
			return encoder.Encode(value)
		}
	case "yaml":
		return func(out io.Writer, value T) error {
			written, err := yaml.Marshal(value)
			if err != nil {
				return fmt.Errorf("writing YAML: %w", err)
			}
			_, err = out.Write(written)
			return err
		}
	}
	return func(out io.Writer, value T) error {
		p := Page{Look: as}
		text(&p, value)
		_, err := io.WriteString(out, p.String())
		return err
	}
}

// Printable replaces characters that would move a terminal's cursor: names come from outside.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// Line writes text that wraps at spaces; continued lines are indented by four more columns.
func (p *Page) Line(indent, text string) {
	text = Printable(text)
	for continued := indent + "    "; ; indent = continued {
		room := PageWidth - utf8.RuneCountInString(indent)
		head, rest := breakLine(text, room)
		p.WriteString(strings.TrimRight(indent+head, " ") + "\n")
		if rest == "" {
			return
		}
		text = rest
	}
}

// breakLine breaks at the last space within width runes, or inside a longer word.
func breakLine(text string, width int) (head, rest string) {
	if utf8.RuneCountInString(text) <= width {
		return text, ""
	}
	runes := []rune(text)
	cut := width
	for cut > 0 && runes[cut] != ' ' {
		cut--
	}
	if cut == 0 {
		cut = width
	}
	return string(runes[:cut]), strings.TrimLeft(string(runes[cut:]), " ")
}
