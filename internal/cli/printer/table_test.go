package printer

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWhatDoesNotFitIsCutInTheMiddleOfNamesAndWrappedInProse(t *testing.T) {
	draw := func(as Look) string {
		var p Page
		t := newTable(&Page{Look: as}, "@NODE", "KIND", "#N", "~WHY", "MORE*")
		t.Add("gke-"+strings.Repeat("p", 60)+"-x7k2", "whole", "12", strings.Repeat("word ", 12)+"end", "more")
		t.Write(&p)
		return p.String()
	}
	want := "NODE                                                             KIND    N  WHY\n" +
		"gke-" + strings.Repeat("p", 27) + "…" + strings.Repeat("p", 26) + "-x7k2  whole  12  word word word word word\n"
	got := draw(Look{})
	if !strings.HasPrefix(got, want) || strings.Count(got, "word") != 12 || strings.Contains(got, "MORE") {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for line := range strings.Lines(got) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > PageWidth {
			t.Errorf("a line has %d columns: %s", n, line)
		}
	}
	if wide := draw(Look{Wide: true}); strings.Count(wide, "\n") != 2 || !strings.Contains(wide, strings.Repeat("p", 60)) || !strings.Contains(wide, "MORE") {
		t.Errorf("wide:\n%s", wide)
	}
}

func TestColorsAreUsedOnlyWhereTheyAreWanted(t *testing.T) {
	draw := func(colour bool) string {
		var p Page
		t := newTable(&Page{Look: Look{color: colour}}, "A", "B")
		t.Add(Cell{"x", Bad}, Cell{"y", Plain})
		t.Write(&p)
		return p.String()
	}
	if got := draw(false); got != "A  B\nx  y\n" {
		t.Errorf("without colours: %q", got)
	}
	if got := draw(true); got != "\x1b[1mA\x1b[0m  \x1b[1mB\x1b[0m\n\x1b[31mx\x1b[0m  y\n" {
		t.Errorf("with colours: %q", got)
	}
	if colored(&bytes.Buffer{}) {
		t.Error("a file gets colours")
	}
}
