package printer

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// PageWidth fits a terminal with a margin.
const PageWidth = 100

// Page collects lines of at most PageWidth columns, and tables.
type Page struct {
	strings.Builder
	// Wide tables have more columns.
	Wide bool
	// Now is the time that ages are counted to.
	Now time.Time
}

// Write writes an answer in the format of -o: text for people, and JSON or YAML, with the same keys, for programs.
func Write[T any](out io.Writer, output string, value T, text func(*Page, T)) error {
	switch output {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	case "yaml":
		written, err := yaml.Marshal(value)
		if err != nil {
			return fmt.Errorf("writing YAML: %w", err)
		}
		_, err = out.Write(written)
		return err
	}
	p := Page{Wide: output == "wide", Now: time.Now()}
	text(&p, value)
	_, err := io.WriteString(out, p.String())
	return err
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
func (p *Page) Line(indent, text string) { p.wrap(indent, indent+"    ", text) }

// wrap writes text that wraps at spaces; continued lines begin with continued.
func (p *Page) wrap(indent, continued, text string) {
	text = Printable(text)
	for ; ; indent = continued {
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
