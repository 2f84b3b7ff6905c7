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
		p.wrap(indent, indent, strings.Join(strings.Fields(where), " "))
	}
	p.wrap(indent, indent, strings.Join(strings.Fields(f.Why), " "))
	command, hint, _ := strings.Cut(f.Fix, "  # ")
	p.WriteString(indent + command + "\n") // one line, as a shell reads it
	if hint != "" {
		p.wrap(indent+"# ", indent+"# ", hint)
	}
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
