package printer

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"heliostat.dev/heliostat/internal/doctor"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// WriteDoctor writes findings by object, those with errors first, or one line with the number of examined objects.
func WriteDoctor(p *Page, report Doctor) {
	if len(report.Findings) == 0 {
		p.WriteString("Nothing found. " + lookedAt(report) + "\n")
		return
	}
	byObject := map[string][]doctor.Finding{}
	for _, f := range report.Findings {
		byObject[f.Object] = append(byObject[f.Object], f)
	}
	objects := slices.SortedFunc(maps.Keys(byObject), func(a, b string) int {
		errorsOf := func(object string) int { return min(1, Severe(byObject[object], raydemand.Error)) }
		if first := errorsOf(b) - errorsOf(a); first != 0 {
			return first
		}
		return strings.Compare(a, b)
	})
	for _, object := range objects {
		p.WriteString(object + "\n")
		for _, f := range byObject[object] {
			writeFinding(p, f)
		}
		p.WriteString("\n")
	}
	var counts []string
	for _, severity := range []raydemand.Severity{raydemand.Error, raydemand.Warning, raydemand.Info} {
		if n := Severe(report.Findings, severity); n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, Plural(n, noun[severity])))
		}
	}
	p.WriteString(strings.Join(counts, ", ") + ". " + lookedAt(report) + "\n")
}

var noun = map[raydemand.Severity]string{raydemand.Error: "error", raydemand.Warning: "warning", raydemand.Info: "hint"}

func writeFinding(p *Page, f doctor.Finding) {
	const indent = "           "
	fmt.Fprintf(p, "  %-7s  %s\n", f.Severity, f.Code)
	where := f.Field
	hidden := func(r rune) bool { return !unicode.IsPrint(r) && !strings.ContainsRune("\n\r\t", r) }
	if strings.ContainsFunc(f.Seen, hidden) {
		f.Seen = strconv.Quote(f.Seen) // a letter without width, or a terminal's escape
	}
	if f.Seen != "" {
		where = strings.TrimPrefix(where+": "+f.Seen, ": ")
	}
	if where != "" {
		p.WriteString(fold(strings.Fields(where), indent, "", ""))
	}
	p.WriteString(fold(strings.Fields(f.Why), indent, "", ""))
	p.WriteString(FoldCommand(f.Fix, indent))
}

// fold breaks text between words; each line but the last ends with continued.
func fold(words []string, indent, further, continued string) string {
	var text strings.Builder
	line := indent
	for i, word := range words {
		switch {
		case i == 0:
			line += word
		case len([]rune(line))+1+len([]rune(word))+len(continued) > PageWidth:
			text.WriteString(line + continued + "\n")
			line = indent + further + word
		default:
			line += " " + word
		}
	}
	return text.String() + line + "\n"
}

// FoldCommand breaks a command so that a shell still reads it as one: between words with a backslash, and inside JSON
// in single quotes where JSON allows space.
func FoldCommand(command, indent string) string {
	command, hint, _ := strings.Cut(command, "  # ")
	text := foldJSON(fold(commandWords(command), indent, "  ", ` \`))
	if hint != "" {
		text += fold(strings.Fields("# "+hint), indent, "# ", "")
	}
	return text
}

// foldJSON breaks long lines after a comma outside of JSON strings or, if there is none, after a colon.
func foldJSON(text string) string {
	const indent = "    "
	var folded strings.Builder
	for line := range strings.Lines(text) {
		for len([]rune(line)) > PageWidth+1 {
			at := max(jsonBreak(line, ","), 0)
			if at <= PageWidth/2 {
				at = max(at, jsonBreak(line, ":"))
			}
			if at <= len(indent) {
				break
			}
			folded.WriteString(line[:at] + "\n")
			line = indent + line[at:]
		}
		folded.WriteString(line)
	}
	return folded.String()
}

// jsonBreak returns the position after the last such byte within the page width and outside of JSON strings, or 0.
func jsonBreak(line, behind string) int {
	inString, at := false, 0
	for i := 0; i < len(line) && i < PageWidth; i++ {
		switch c := line[i]; {
		case c == '\\' && inString:
			i++
		case c == '"':
			inString = !inString
		case !inString && c == behind[0] && i > 0 && strings.ContainsRune(`"}]0123456789el`, rune(line[i-1])):
			at = i + 1
		}
	}
	return at
}

// commandWords splits at spaces outside of single quotes, which it keeps.
func commandWords(command string) []string {
	var words []string
	var word strings.Builder
	quoted := false
	for i := 0; i < len(command); i++ {
		c := command[i]
		switch {
		case c == ' ' && !quoted:
			if word.Len() > 0 {
				words = append(words, word.String())
			}
			word.Reset()
			continue
		case c == '\\' && !quoted && i+1 < len(command):
			word.WriteByte(c)
			i++
			c = command[i]
		case c == '\'':
			quoted = !quoted
		}
		word.WriteByte(c)
	}
	if word.Len() > 0 {
		words = append(words, word.String())
	}
	return words
}

// Severe counts the findings of a severity.
func Severe(findings []doctor.Finding, severity raydemand.Severity) int {
	n := 0
	for _, f := range findings {
		if f.Severity == severity {
			n++
		}
	}
	return n
}

// lookedAt says which objects were examined, which were not, and what is missing.
func lookedAt(report Doctor) string {
	kinds := map[string]int{}
	for _, o := range report.Examined.Objects {
		if o.Examined() {
			kinds[o.Kind]++
		}
	}
	text := "Looked at no object."
	if len(kinds) > 0 {
		text = "Looked at " + CountKinds(kinds) + "."
	}
	if skipped := doctor.Skipped(report.Examined); len(skipped) > 0 {
		text += " Did not examine: " + CountKinds(skipped) + "."
	}
	return strings.TrimSpace(text + " " + report.Note)
}

// CountKinds writes numbers of objects by kind: 1 ConfigMap, 2 Deployments.
func CountKinds(kinds map[string]int) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		n := kinds[kind]
		name, group, grouped := strings.Cut(kind, ".")
		name = Plural(n, name)
		if grouped {
			name += "." + group
		}
		parts = append(parts, fmt.Sprintf("%d %s", n, name))
	}
	return strings.Join(parts, ", ")
}

// Plural returns the noun, in the plural unless n is 1.
func Plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	if stem, ends := strings.CutSuffix(noun, "y"); ends {
		return stem + "ies"
	}
	return noun + "s"
}

// Doctor is the output of `doctor -o json`.
type Doctor struct {
	Findings []doctor.Finding `json:"findings"`

	Examined doctor.Input `json:"-"`
	// Note says what is missing; empty if there are objects.
	Note string `json:"-"`
}
