package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// token is a word, a quoted text, a key with its colon, a comma, or one of { } [ ].
type token struct {
	text string
	kind tokenKind
}

type tokenKind int

const (
	word tokenKind = iota
	quoted
	key
	mark
)

const marks = "{}[],"

// scan splits an entry into tokens.
func scan(text string) ([]token, error) {
	var tokens []token
	for text = strings.TrimLeft(text, " "); text != ""; text = strings.TrimLeft(text, " ") {
		t, rest, err := next(text)
		if err != nil {
			return nil, err
		}
		tokens, text = append(tokens, t), rest
	}
	return tokens, nil
}

func next(text string) (token, string, error) {
	if strings.IndexByte(marks, text[0]) >= 0 {
		return token{text[:1], mark}, text[1:], nil
	}
	if text[0] == '"' {
		prefix, err := strconv.QuotedPrefix(text)
		if err != nil {
			return token{}, "", fmt.Errorf(`%s: want a closing quote "`, text)
		}
		content, err := strconv.Unquote(prefix)
		if err != nil {
			return token{}, "", fmt.Errorf(`%s: want a quoted text in Go syntax`, prefix)
		}
		if rest, isKey := strings.CutPrefix(text[len(prefix):], ":"); isKey {
			return token{content, key}, rest, nil
		}
		return token{content, quoted}, text[len(prefix):], nil
	}
	end := strings.IndexAny(text, " \""+marks)
	if end < 0 {
		end = len(text)
	}
	if content, isKey := strings.CutSuffix(text[:end], ":"); isKey {
		return token{content, key}, text[end:], nil
	}
	return token{text[:end], word}, text[end:], nil
}

// quote returns a word unchanged, and everything else in quotes.
func quote(text string) string {
	plain := text != "" && !strings.ContainsAny(text, " \"#\\"+marks) && !strings.HasSuffix(text, ":") &&
		strconv.Quote(text) == `"`+text+`"`
	if plain {
		return text
	}
	return strconv.Quote(text)
}

// list writes "a, b or c".
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
