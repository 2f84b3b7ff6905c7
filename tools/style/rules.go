package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// columns is the maximum width of a line, in columns. A tab counts as tabWidth columns.
const columns, tabWidth = 120, 4

// rule checks a line. It returns a message, or "" if the line is valid.
type rule func(line string) string

// marker matches a directive, such as //go:generate or // +kubebuilder:validation. A directive is always one line.
var marker = regexp.MustCompile(`^\s*//(go:| \+)[a-z]`)

// width reports long lines. It ignores directives, and lines that cannot be split, such as a URL in a comment.
func width(line string) string {
	wide := utf8.RuneCountInString(line) + strings.Count(line, "\t")*(tabWidth-1)
	unbroken := marker.MatchString(line) || len(strings.Fields(line)) <= 2 && strings.Contains(line, "://")
	if wide <= columns || unbroken {
		return ""
	}
	return fmt.Sprintf("%d columns, at most %d", wide, columns)
}

// unplain lists phrases that have a plainer replacement, which the message contains.
var unplain = []struct {
	pattern *regexp.Regexp
	better  string
}{
	{regexp.MustCompile(`(?i)\b(is|are) told\b`), `write "learns", "receives", "logs" or "reports"`},
	{regexp.MustCompile(`(?i)\b(that|those) which\b`), `write "what" or the noun`},
	{regexp.MustCompile(`(?i)\bshall\b`), `write the present tense, or "must"`},
	{
		regexp.MustCompile(`(?i)\b(whereof|thereof|thereby|whereby|herein|hereby|thereupon)\b`),
		"write the noun that it stands for",
	},
	{
		regexp.MustCompile(`(?i)\b(autoscaler|heliostat|operator|server|process|planner|controller|kubelet) who\b`),
		`a program is "that", not "who"`,
	},
	{regexp.MustCompile(`(?i)\bis none of (its|their|a)\b`), "say what it does not do"},
	{regexp.MustCompile(`(?i)\bnobody asked (for|of)\b`), `write "unexpected" or "unrequested"`},
}

// code matches code in Markdown. Words in code are quotes.
var code = regexp.MustCompile("`[^`]*`")

// phrases finds unplain phrases outside of code.
func phrases(line string) string {
	prose := code.ReplaceAllString(line, "")
	for _, phrase := range unplain {
		if found := phrase.pattern.FindString(prose); found != "" {
			return fmt.Sprintf("%q: %s", found, phrase.better)
		}
	}
	return ""
}

// comments finds unplain phrases in the comment of a line of Go.
func comments(line string) string {
	trimmed := strings.TrimSpace(line)
	if text, found := strings.CutPrefix(trimmed, "//"); found {
		return phrases(text)
	}
	if i := strings.LastIndex(trimmed, " // "); i >= 0 {
		return phrases(trimmed[i:])
	}
	return ""
}
