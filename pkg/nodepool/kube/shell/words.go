// Package shell splits the start command of a container into words, as bash does. It must not run anything, expand
// variables, or know what the words mean.
package shell

import "strings"

// Words splits the first simple command of a script into words the way bash does: it removes quotes and
// backslashes, and stops at an unquoted ; & | or line end. It does not expand variables.
func Words(script string) []string {
	var words []string
	var word strings.Builder
	inWord := false
	flush := func() {
		if inWord {
			words = append(words, word.String())
			word.Reset()
			inWord = false
		}
	}
	for i := 0; i < len(script); i++ {
		c := script[i]
		switch {
		case c == ' ' || c == '\t':
			flush()
		case c == ';' || c == '&' || c == '|' || c == '\n':
			flush()
			return words
		case c == '\'':
			inWord = true
			end := strings.IndexByte(script[i+1:], '\'')
			if end < 0 {
				end = len(script) - i - 1
			}
			word.WriteString(script[i+1 : i+1+end])
			i += end + 1
		case c == '"':
			inWord = true
			i = doubleQuoted(script, i+1, &word)
		case c == '\\' && i+1 < len(script):
			i++
			if script[i] != '\n' {
				inWord = true
				word.WriteByte(script[i])
			}
		default:
			inWord = true
			word.WriteByte(c)
		}
	}
	flush()
	return words
}

// doubleQuoted copies from i up to the closing quote and returns its position. Inside double quotes a backslash
// escapes only $ ` " \ and a line end.
func doubleQuoted(script string, i int, word *strings.Builder) int {
	for ; i < len(script) && script[i] != '"'; i++ {
		if script[i] == '\\' && i+1 < len(script) && strings.IndexByte("$`\"\\\n", script[i+1]) >= 0 {
			i++
			if script[i] == '\n' {
				continue
			}
		}
		word.WriteByte(script[i])
	}
	return i
}
