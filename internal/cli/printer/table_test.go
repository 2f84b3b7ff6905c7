package printer

import "testing"

func TestATableAlignsItsColumnsAndMarksWhatIsUnknown(t *testing.T) {
	draw := func(wide bool) string {
		p := Page{Wide: wide}
		table := newTable("NODE", "KIND", "N", "MORE*", "WHY")
		table.Add("gke-7", "whole", 12, "more", "a\tb")
		table.Add("n", "", known[int](nil), "", "")
		table.Write(&p)
		return p.String()
	}
	if got, want := draw(false), "NODE   KIND   N   WHY\ngke-7  whole  12  a?b\nn      -      -   -\n"; got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	if got, want := draw(true), "NODE   KIND   N   MORE  WHY\ngke-7  whole  12  more  a?b\nn      -      -   -     -\n"; got != want {
		t.Errorf("wide:\n%s, want\n%s", got, want)
	}
}
