package planner_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
)

// The reader of planner scenarios: text files with the groups, nodes and demand of a RayCluster, and the plan that they
// must result in. Parse turns a file into snapshots, Outcome writes a plan as it appears in "want", and File.Rewrite
// puts new outcomes into a file. testdata/README.md has the grammar. Programs read snapshots as JSON.

// File is a file of scenarios on one topic.
type File struct {
	Scenarios []Scenario
	lines     []string
}

// Scenario is one snapshot and the plan that it must result in. Its policy is Snapshot.Policy.
type Scenario struct {
	Name string
	// Line is the number of its first line.
	Line     int
	Snapshot model.Snapshot
	// Want is the outcome in the file, one line each, without indentation.
	Want []string
	// end is the index of the first line after the scenario, want that of its "want", or end if it has none.
	want, end int
}

// The sections of a scenario in the order in which Format writes them.
const (
	sectionCluster = "cluster"
	sectionPolicy  = "policy"
	sectionGroups  = "groups"
	sectionHead    = "head"
	sectionNodes   = "nodes"
	sectionDemand  = "demand"
	sectionWarm    = "warm"
	sectionWant    = "want"
)

var sections = []string{
	sectionCluster, sectionPolicy, sectionGroups, sectionHead, sectionNodes, sectionDemand,
	sectionWarm, sectionWant,
}

// Parse reads the text of a file. An error contains the file, the line, what is there, and what is expected.
func Parse(name, text string) (*File, error) {
	f := &File{lines: strings.Split(strings.TrimRight(text, "\n"), "\n")}
	r := &fileReader{name: name, file: f, seen: map[string]int{}}
	for i, line := range f.lines {
		if err := r.read(i, line); err != nil {
			return nil, err
		}
	}
	if err := r.finish(len(f.lines)); err != nil {
		return nil, err
	}
	if len(f.Scenarios) == 0 {
		return nil, r.problem(len(f.lines)-1, `no scenario: want "scenario NAME"`)
	}
	return f, nil
}

// fileReader collects the entries of one scenario at a time.
type fileReader struct {
	name    string
	file    *File
	seen    map[string]int // scenario names, with their lines
	current *Scenario
	section string
	column  int // of the section's first entry; a line that starts further right continues the entry above
	entries []entry
	used    map[string]bool
}

// entry is one logical line of a section.
type entry struct {
	section, text string
	line          int
}

func (r *fileReader) problem(line int, format string, arguments ...any) error {
	return fmt.Errorf("%s:%d: %s", r.name, line+1, fmt.Sprintf(format, arguments...))
}

func (r *fileReader) read(number int, line string) error {
	content := strings.TrimLeft(line, " ")
	column := len(line) - len(content)
	switch {
	case content == "" || content[0] == '#':
		return nil
	case strings.Contains(line, "\t"):
		return r.problem(number, "a tab: want spaces")
	case column > 0:
		return r.add(number, column, content)
	}
	word, rest, _ := strings.Cut(content, " ")
	if word == "scenario" {
		return r.begin(number, strings.TrimSpace(rest))
	}
	switch {
	case !slices.Contains(sections, word):
		return r.problem(number, "%q: want scenario, %s", word, list(sections))
	case r.current == nil:
		return r.problem(number, `%q before any scenario: want "scenario NAME" above it`, word)
	case r.used[word]:
		return r.problem(number, "%q: the scenario has this section already: want its lines there", word)
	}
	r.section, r.used[word], r.column = word, true, 0
	if word == sectionWant {
		r.current.want = number
	}
	if rest = strings.TrimLeft(rest, " "); rest != "" {
		return r.add(number, len(line)-len(rest), rest)
	}
	return nil
}

// begin ends the previous scenario and starts another one.
func (r *fileReader) begin(number int, name string) error {
	if err := r.finish(number); err != nil {
		return err
	}
	if name == "" {
		return r.problem(number, "scenario without a name: want a sentence that says what holds")
	}
	if above, taken := r.seen[name]; taken {
		return r.problem(number, "scenario %q: want a name of its own: line %d has this one", name, above+1)
	}
	r.seen[name] = number
	r.current = &Scenario{Name: name, Line: number + 1, want: -1}
	r.section, r.entries, r.used = "", nil, map[string]bool{}
	return nil
}

func (r *fileReader) add(number, column int, text string) error {
	text = strings.TrimRight(text, " ")
	switch {
	case r.section == "":
		return r.problem(number, "an indented line without a section: want one of %s at its start",
			list(sections))
	case r.column == 0:
		r.column = column
	case column < r.column:
		return r.problem(number,
			"the line starts in column %d: want column %d, or further right to continue the line above",
			column+1, r.column+1)
	case column > r.column:
		last := &r.entries[len(r.entries)-1]
		last.text += " " + text
		return nil
	}
	r.entries = append(r.entries, entry{r.section, text, number})
	return nil
}

// finish reads the entries of the scenario that ends before a line.
func (r *fileReader) finish(line int) error {
	if r.current == nil {
		return nil
	}
	c := r.current
	for c.end = line; c.end > 0; c.end-- { // blank lines and comments above the next scenario do not belong to this one
		if text := strings.TrimSpace(r.file.lines[c.end-1]); text != "" && text[0] != '#' {
			break
		}
	}
	if c.want < 0 {
		c.want = c.end
	}
	build := builder{file: r.name, snapshot: object{}}
	for _, e := range r.entries {
		if e.section == sectionWant {
			c.Want = append(c.Want, e.text)
		} else if err := build.read(e); err != nil {
			return err
		}
	}
	var err error
	if c.Snapshot, err = build.finish(c.Line); err != nil {
		return err
	}
	r.file.Scenarios = append(r.file.Scenarios, *c)
	return nil
}

// Rewrite returns the file's text with other outcomes, one for each scenario in the file's order. Everything else stays
// the same.
func (f *File) Rewrite(outcomes [][]string) string {
	var lines []string
	from := 0
	for i, s := range f.Scenarios {
		lines = append(lines, f.lines[from:s.want]...)
		lines = append(lines, section(sectionWant, outcomes[i])...)
		from = s.end
	}
	return strings.Join(append(lines, f.lines[from:]...), "\n") + "\n"
}

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
