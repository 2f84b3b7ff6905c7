package docs

import (
	"regexp"
	"strings"
)

// step is one block of commands on a page, with the output that the page shows for it.
type step struct {
	commands string
	// shown are lines that the commands print in this order, possibly among others.
	shown []string
	// second is true if the commands belong in a second terminal.
	second bool
}

// secondTerminal is the first line of a block for a second terminal.
const secondTerminal = "# second terminal\n"

// block matches a fenced block and its kind, which is "" if the block has none. The tests do not type indented blocks
// of other kinds.
var block = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// steps returns the blocks of kind sh on a page, each with the block without a kind that follows it.
func steps(page string) []step {
	var found []step
	for _, parts := range block.FindAllStringSubmatch(page, -1) {
		switch kind, text := parts[1], parts[2]; {
		case kind == "sh":
			found = append(found, step{commands: text, second: strings.HasPrefix(text, secondTerminal)})
		case kind == "" && len(found) > 0:
			last := &found[len(found)-1]
			last.shown = append(last.shown, strings.Split(strings.TrimSpace(text), "\n")...)
		}
	}
	return found
}

// varying lists the text that differs between two runs: local paths, the suffixes of pod names, numbers, and the
// padding of tables.
var varying = []struct {
	pattern *regexp.Regexp
	as      string
}{
	{regexp.MustCompile(`/\S*/`), "/…/"},
	{regexp.MustCompile(`-worker-[a-z0-9]{5}\b`), "-worker-…"},
	{regexp.MustCompile(`(\d+(\.\d+)?(ms|s|m|h)?)+( (ms|s|min|h)\b)?`), "0"},
	{regexp.MustCompile(`\s+`), " "},
}

// plain returns a line without the text that varies.
func plain(line string) string {
	for _, v := range varying {
		line = v.pattern.ReplaceAllString(line, v.as)
	}
	return strings.TrimSpace(line)
}

// missing returns the first of the shown lines that the output does not contain after the previous one, or "" if it
// contains all of them.
func missing(shown []string, printed string) string {
	lines := strings.Split(printed, "\n")
	for _, want := range shown {
		for {
			if len(lines) == 0 {
				return want
			}
			got := lines[0]
			lines = lines[1:]
			if plain(got) == plain(want) {
				break
			}
		}
	}
	return ""
}
