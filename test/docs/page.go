package docs

import (
	"regexp"
	"strings"
)

// step is one block of commands of a page, and what the page shows as printed by it.
type step struct {
	commands string
	// shown are lines that are printed in this order, among others.
	shown []string
	// second is set where the commands belong into a second terminal.
	second bool
}

// secondTerminal is the first line of a block for a second terminal.
const secondTerminal = "# second terminal\n"

// block is a fenced block with its kind, "" where it has none. What stands in indented blocks of other kinds is not
// typed.
var block = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// steps are the blocks of a page that are of kind sh, each with the block without a kind that follows it.
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

// varying is what differs between two runs: where the machine keeps things, the ends of pods' names, numbers, and how a
// table is filled up.
var varying = []struct {
	pattern *regexp.Regexp
	as      string
}{
	{regexp.MustCompile(`/\S*/`), "/…/"},
	{regexp.MustCompile(`-worker-[a-z0-9]{5}\b`), "-worker-…"},
	{regexp.MustCompile(`(\d+(\.\d+)?(ms|s|m|h)?)+( (ms|s|min|h)\b)?`), "0"},
	{regexp.MustCompile(`\s+`), " "},
}

// plain is a line without what varies.
func plain(line string) string {
	for _, v := range varying {
		line = v.pattern.ReplaceAllString(line, v.as)
	}
	return strings.TrimSpace(line)
}

// missing is the first of the lines shown that was not printed after those before it, "" where all were.
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
