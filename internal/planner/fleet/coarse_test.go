package fleet

import (
	"testing"

	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/plannertest"
)

// TestAMemberFitsWhereverItsClassDoes is the property that classes rely on.
func TestAMemberFitsWhereverItsClassDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawSnapshot(t)
		r := New(&s)
		items := r.Items(s.Requests)
		parts := rapid.Int64Range(0, 4).Draw(t, "parts")
		most := rapid.IntRange(1, 1+len(items)).Draw(t, "most")
		members := 0
		classes, rest := r.classes(items, r.cuts(), parts, most)
		if len(classes) > most {
			t.Errorf("%d classes, want at most %d", len(classes), most)
		}
		for _, class := range classes {
			members += len(class.Members)
			for _, it := range class.Members {
				for i := range r.Groups {
					if suits := it.Suits(r.Groups[i].Shape); suits != class.Suits(r.Groups[i].Shape) {
						t.Errorf("group %s suits %s: %v, and its class %s: %v", r.Groups[i].Name, phrase.Describe(it.Request), suits, phrase.Describe(class.Request), !suits)
					}
				}
				for k, need := range it.Need {
					if class.Need[k].Resource != need.Resource || class.Need[k].Amount < need.Amount {
						t.Errorf("%s is in the class of %s", phrase.Describe(it.Request), phrase.Describe(class.Request))
					}
				}
			}
		}
		if members+len(rest) != len(items) {
			t.Errorf("%d members and %d others of %d items", members, len(rest), len(items))
		}
	})
}
