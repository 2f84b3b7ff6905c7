package printer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// PageWidth fits a terminal with a margin.
const PageWidth = 100

// Page collects lines of at most PageWidth columns.
type Page struct{ strings.Builder }

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
