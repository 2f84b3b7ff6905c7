package gpuinfo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// partFilled makes cards, each with as many random instances as a random number of attempts finds room for.
func partFilled(p Product, cards int, random func(n int) int) [][]Instance {
	fleet := make([][]Instance, cards)
	for i := range fleet {
		card := occupancy{product: &p}
		for range random(7) {
			profile := random(len(p.Profiles))
			starts := p.Profiles[profile].Starts
			if start := starts[random(len(starts))]; card.fits(profile, start) {
				card = card.with(profile, start)
				fleet[i] = append(fleet[i], Instance{p.Profiles[profile].Name, start})
			}
		}
	}
	return fleet
}

func mix(p Product, n int, random func(n int) int) []string {
	wanted := make([]string, n)
	for i := range wanted {
		wanted[i] = p.Profiles[random(len(p.Profiles))].Name
	}
	return wanted
}

// firstFit places each in the order given on the first card, at the first start, that takes it.
func firstFit(p Product, cards [][]Instance, wanted []string) []Assignment {
	var fleet []occupancy
	for _, instances := range cards {
		card, _ := p.occupied(instances)
		fleet = append(fleet, card)
	}
	assignments := make([]Assignment, len(wanted))
	for i, name := range wanted {
		assignments[i] = Assignment{NoCard, Instance{Profile: name}}
		profile, _ := p.index(name)
		for c := range fleet {
			if start, ok := fleet[c].first(profile); ok {
				fleet[c] = fleet[c].with(profile, start)
				assignments[i] = Assignment{c, Instance{name, start}}
				break
			}
		}
	}
	return assignments
}

func (o *occupancy) first(profile int) (int, bool) {
	for _, start := range o.product.Profiles[profile].Starts {
		if o.fits(profile, start) {
			return start, true
		}
	}
	return 0, false
}

// served adds up what was placed: memory units, and instances.
func served(p Product, assignments []Assignment) (units, instances int) {
	for _, a := range assignments {
		if a.Card != NoCard {
			profile, _ := p.Profile(a.Profile)
			units, instances = units+profile.Size, instances+1
		}
	}
	return units, instances
}

func filledBy(cards [][]Instance, assignments []Assignment) [][]Instance {
	filled := make([][]Instance, len(cards))
	for i := range cards {
		filled[i] = slices.Clone(cards[i])
	}
	for _, a := range assignments {
		if a.Card != NoCard {
			filled[a.Card] = append(filled[a.Card], a.Instance)
		}
	}
	return filled
}

func placeAll(t interface{ Fatal(...any) }, p Product, cards [][]Instance, wanted []string) []Assignment {
	assignments, err := p.PlaceAll(cards, wanted)
	if err != nil {
		t.Fatal(err)
	}
	return assignments
}

func names() []string {
	var names []string
	for _, p := range Products() {
		names = append(names, p.Name)
	}
	return names
}

func all(Profile) bool { return true }

// drawn is a random product with cards and wanted profiles.
func drawn(t *rapid.T, suits func(Profile) bool, mostCards, mostWanted int) (Product, [][]Instance, []string) {
	name := rapid.SampledFrom(names()).Draw(t, "product")
	p, _ := ProductNamed(name)
	p = p.Only(suits)
	random := func(label string) func(n int) int {
		return func(n int) int { return rapid.IntRange(0, n-1).Draw(t, label) }
	}
	cards := partFilled(p, rapid.IntRange(1, mostCards).Draw(t, "cards"), random("fill"))
	return p, cards, mix(p, rapid.IntRange(0, mostWanted).Draw(t, "requests"), random("want"))
}

func TestPlacingOnManyCardsMakesLegalLayoutsAndLeavesOverOnlyWhatFitsNowhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, cards, wanted := drawn(t, all, 6, 30)
		before := fmt.Sprint(cards, wanted)
		assignments := placeAll(t, p, cards, wanted)
		if fmt.Sprint(cards, wanted) != before {
			t.Fatal("what was given was changed")
		}
		filled := filledBy(cards, assignments)
		for i, layout := range filled {
			if err := p.Check(layout); err != nil {
				t.Fatalf("card %d: %v", i, err)
			}
		}
		for i, a := range assignments {
			if a.Profile != wanted[i] {
				t.Fatalf("request %d of %s was answered with %s", i, wanted[i], a.Profile)
			}
			if a.Card != NoCard {
				continue
			}
			for c, layout := range filled {
				if _, err := p.Place(layout, a.Profile); err == nil {
					t.Fatalf("%s was left over, and card %d has room", a.Profile, c)
				}
			}
		}
	})
}

func TestPlacingOnManyCardsServesNoLessMemoryThanFirstFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, cards, wanted := drawn(t, Profile.Plain, 6, 30)
		got, n := served(p, placeAll(t, p, cards, wanted))
		first, m := served(p, firstFit(p, cards, wanted))
		if got < first || m == len(wanted) && n < m {
			t.Fatalf("%d units in %d instances, first fit %d in %d", got, n, first, m)
		}
	})
}

// most is the most memory that any placement serves, by trying all.
func most(p Product, cards []occupancy, profiles []int, seen map[string]int) int {
	if len(profiles) == 0 {
		return 0
	}
	var keys []string
	for _, card := range cards {
		keys = append(keys, fmt.Sprint(card.taken, card.count, card.media))
	}
	slices.Sort(keys)
	key := fmt.Sprint(len(profiles), strings.Join(keys, ";"))
	if best, known := seen[key]; known {
		return best
	}
	profile, rest := profiles[0], profiles[1:]
	best := most(p, cards, rest, seen)
	for c := range cards {
		for _, start := range p.Profiles[profile].Starts {
			if cards[c].fits(profile, start) {
				next := slices.Clone(cards)
				next[c] = next[c].with(profile, start)
				best = max(best, p.Profiles[profile].Size+most(p, next, rest, seen))
			}
		}
	}
	seen[key] = best
	return best
}

func optimum(p Product, cards [][]Instance, wanted []string) int {
	var fleet []occupancy
	for _, instances := range cards {
		card, _ := p.occupied(instances)
		fleet = append(fleet, card)
	}
	var profiles []int
	for _, name := range wanted {
		profile, _ := p.index(name)
		profiles = append(profiles, profile)
	}
	slices.Sort(profiles)
	return most(p, fleet, profiles, map[string]int{})
}

// The requests and cards are the same in each run; the figures stand in docs/design/0004-mig-placement.md.
func TestPlacingOnAFewCardsServesAsMuchMemoryAsAnyPlacementAlmostAlways(t *testing.T) {
	if testing.Short() {
		t.Skip("trying every placement takes long under the race detector")
	}
	for _, test := range []struct {
		name  string
		suits func(Profile) bool
		// most is in how many of the instances less than the optimum may be served.
		most int
	}{{"profiles without attributes", Profile.Plain, 0}, {"all profiles", all, 2}} {
		t.Run(test.name, func(t *testing.T) {
			const instances = 1000
			random, possible := seeded(2), 0
			var short, lost, shortFirst, lostFirst int
			for range instances {
				p := Products()[random(len(productTable))].Only(test.suits)
				cards := partFilled(p, 1+random(3), random)
				wanted := mix(p, 1+random(7), random)
				got, _ := served(p, placeAll(t, p, cards, wanted))
				first, _ := served(p, firstFit(p, cards, wanted))
				best := optimum(p, cards, wanted)
				possible += best
				short, lost = counted(short, lost, best-got)
				shortFirst, lostFirst = counted(shortFirst, lostFirst, best-first)
			}
			t.Logf("less than the optimum in %d of %d, %d of %d units; first fit in %d, %d units", short, instances, lost, possible, shortFirst, lostFirst)
			if short > test.most || shortFirst == 0 {
				t.Errorf("short in %d, want at most %d; first fit in %d", short, test.most, shortFirst)
			}
		})
	}
}

// counted adds one more instance that falls short by so many units.
func counted(short, lost, by int) (int, int) {
	if by > 0 {
		short++
	}
	return short, lost + by
}

func TestTheOrderOfRequestsDoesNotChangeWhatIsServed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, cards, wanted := drawn(t, all, 4, 20)
		turned := slices.Clone(wanted)
		slices.Reverse(turned)
		if diff := cmp.Diff(filledSorted(cards, placeAll(t, p, cards, wanted)), filledSorted(cards, placeAll(t, p, cards, turned))); diff != "" {
			t.Fatalf("cards (-as given +turned round):\n%s", diff)
		}
	})
}

func filledSorted(cards [][]Instance, assignments []Assignment) []string {
	var texts []string
	for _, layout := range filledBy(cards, assignments) {
		texts = append(texts, written(layout))
	}
	return texts
}

func TestASmallInstanceGoesWhereNoLargeOneIsLost(t *testing.T) {
	p := product(t, "A100 40GB")
	cards := [][]Instance{nil, {{"4g.20gb", 0}}, {{"1g.5gb", 0}}, {{"2g.10gb", 4}, {"1g.5gb", 6}}}
	for _, test := range []struct {
		wanted []string
		want   []Assignment
	}{
		{[]string{"1g.5gb"}, []Assignment{{2, Instance{"1g.5gb", 1}}}},
		{[]string{"3g.20gb"}, []Assignment{{2, Instance{"3g.20gb", 4}}}}, // at 0 on the last it would take the place of a 4g
		{[]string{"1g.5gb", "7g.40gb", "4g.20gb"}, []Assignment{{2, Instance{"1g.5gb", 1}}, {0, Instance{"7g.40gb", 0}}, {3, Instance{"4g.20gb", 0}}}},
		{[]string{"7g.40gb", "7g.40gb"}, []Assignment{{0, Instance{"7g.40gb", 0}}, {NoCard, Instance{"7g.40gb", 0}}}},
	} {
		if diff := cmp.Diff(test.want, placeAll(t, p, cards, test.wanted)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.wanted, diff)
		}
	}
}

func TestPlacingOnManyCardsRefusesWhatCannotBe(t *testing.T) {
	p := product(t, "A100 40GB")
	for want, try := range map[string]func() ([]Assignment, error){
		"placing 9g.90gb: A100 40GB has no such profile": func() ([]Assignment, error) { return p.PlaceAll([][]Instance{nil}, []string{"9g.90gb"}) },
		"reading card 1: placing 3g.20gb at 4 on A100 40GB: no room on one card": func() ([]Assignment, error) {
			return p.PlaceAll([][]Instance{nil, {{"3g.20gb", 4}, {"3g.20gb", 4}}}, nil)
		},
	} {
		if _, err := try(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestWasteIsWhatIsFreeAndWhatOfItNothingCanTake(t *testing.T) {
	p := product(t, "A100 40GB")
	for _, test := range []struct {
		cards string
		want  Waste
	}{
		{"", Waste{Units: 8, Slices: 7}},
		{"3g.20gb@0 3g.20gb@4", Waste{Slices: 1, StrandedSlices: 1}},
		{"1g.5gb@6", Waste{Units: 7, Slices: 6, StrandedUnits: 1, StrandedSlices: 0}},
		{"4g.20gb@0 1g.5gb@4 1g.5gb@6", Waste{Units: 2, Slices: 1, StrandedUnits: 1}},
		{"7g.40gb@0", Waste{}},
	} {
		got, err := p.Waste([][]Instance{read(t, test.cards), read(t, test.cards)})
		want := Waste{2 * test.want.Units, 2 * test.want.Slices, 2 * test.want.StrandedUnits, 2 * test.want.StrandedSlices}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q, %v (-want +got):\n%s", test.cards, err, diff)
		}
	}
}

// seeded draws the same numbers in each run.
func seeded(seed uint64) func(n int) int { return rand.New(rand.NewPCG(seed, 0)).IntN }
