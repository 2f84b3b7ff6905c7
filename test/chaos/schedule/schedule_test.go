package schedule

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestASeedAlwaysDrawsTheSameFaults(t *testing.T) {
	a, b := Draw(7, 3, 20, 5, 30*time.Second), Draw(7, 3, 20, 5, 30*time.Second)
	if !slices.Equal(a, b) {
		t.Errorf("%v\n%v", a, b)
	}
	if slices.Equal(a, Draw(7, 4, 20, 5, 30*time.Second)) || slices.Equal(a, Draw(8, 3, 20, 5, 30*time.Second)) {
		t.Error("another round or seed draws the same")
	}
}

func TestFaultsEndWithinTheStormAndAllAreDrawn(t *testing.T) {
	drawn := map[Kind]bool{}
	for _, f := range Draw(1, 1, 2000, 5, 30*time.Second) {
		if f.At < 0 || f.For < time.Second || f.At+f.For > 30*time.Second+time.Millisecond {
			t.Errorf("%s", f)
		}
		if one := strings.HasPrefix(string(f.Kind), "head") || f.Kind == Nonsense || f.Kind == Maximum || f.Kind == Minimum; one != (f.Cluster >= 0) {
			t.Errorf("%s concerns the wrong RayClusters", f)
		}
		drawn[f.Kind] = true
	}
	for _, kind := range Kinds() {
		if !drawn[kind] {
			t.Errorf("%s is never drawn", kind)
		}
	}
}

func TestOneOfEachHasEachKindOnce(t *testing.T) {
	var kinds []Kind
	for _, f := range OneOfEach(1, 5, 30*time.Second) {
		kinds = append(kinds, f.Kind)
	}
	slices.Sort(kinds)
	want := Kinds()
	slices.Sort(want)
	if !slices.Equal(kinds, want) {
		t.Errorf("%q, want %q", kinds, want)
	}
}

func TestParseReadsWhatStringWrites(t *testing.T) {
	want := Draw(1, 1, 50, 5, 30*time.Second)
	var text strings.Builder
	for _, f := range want {
		text.WriteString("  " + f.String() + "\n\n")
	}
	if got, err := Parse(text.String()); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := Parse("\n"); err != nil || got == nil || len(got) != 0 {
		t.Errorf("an empty schedule: %v, %v", got, err)
	}
	for _, bad := range []string{"1s 2s head-hangs 3", "1s 2s head-hums 3 0", "x 2s head-hangs 3 0", "1s y head-hangs 3 0",
		"1s 2s head-hangs z 0", "1s 2s head-hangs 3 -1"} {
		if _, err := Parse(bad); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestShrinkFindsTheFaultsThatMatter hides one to three faults that fail only together among many.
func TestShrinkFindsTheFaultsThatMatter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		all := Draw(random.Uint64(), 1, 1+random.IntN(30), 5, 30*time.Second)
		want := slices.Clone(all)
		for len(want) > 1+random.IntN(3) {
			i := random.IntN(len(want))
			want = slices.Delete(want, i, i+1)
		}
		got, _ := Shrink(all, 1000, func(some []Fault) bool {
			for _, f := range want {
				if !slices.Contains(some, f) {
					return false
				}
			}
			return true
		})
		if !slices.Equal(got, want) {
			t.Fatalf("of %d faults: %v, want %v", len(all), got, want)
		}
	}
}

func TestShrinkStopsAfterItsReplaysWithAScheduleThatFails(t *testing.T) {
	all := Draw(1, 1, 20, 5, 30*time.Second)
	calls := 0
	fails := func(some []Fault) bool {
		calls++
		return slices.Contains(some, all[13]) && slices.Contains(some, all[2])
	}
	got, replayed := Shrink(all, 4, fails)
	if calls != 4 || replayed != 4 || !fails(got) {
		t.Errorf("%d replays, reported %d, %d faults", calls, replayed, len(got))
	}
	if got, _ := Shrink(all, 1000, func([]Fault) bool { return true }); len(got) != 0 {
		t.Errorf("a run that fails without faults needs %d faults", len(got))
	}
}
