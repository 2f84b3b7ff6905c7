package gpuinfo

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// brute lists every legal layout of a product without the code under test. It applies the rules one cell of the axis at
// a time: legal starts, no overlaps, the maximum of each profile, and one instance with the media engines.
func brute(p Product) []string {
	var places []Instance
	for _, profile := range p.Profiles {
		for _, start := range profile.Starts {
			places = append(places, Instance{profile.Name, start})
		}
	}
	var legal []string
	var extend func(from int, layout []Instance)
	extend = func(from int, layout []Instance) {
		legal = append(legal, written(layout))
		for i := from; i < len(places); i++ {
			if longer := append(slices.Clone(layout), places[i]); bruteLegal(p, longer) {
				extend(i+1, longer)
			}
		}
	}
	extend(0, nil)
	return legal
}

func bruteLegal(p Product, layout []Instance) bool {
	owner := map[int]string{}
	count := map[string]int{}
	media := 0
	for _, instance := range layout {
		at := slices.IndexFunc(p.Profiles, func(profile Profile) bool { return profile.Name == instance.Profile })
		profile := p.Profiles[at]
		for cell := instance.Start; cell < instance.Start+profile.Size; cell++ {
			if owner[cell] != "" || cell >= p.Units {
				return false
			}
			owner[cell] = profile.Name
		}
		if strings.Contains(profile.Name, "+me") {
			media++
		}
		if count[profile.Name]++; count[profile.Name] > profile.Max || media > 1 {
			return false
		}
	}
	return true
}

// written returns the same text for the same layout, in any order.
func written(layout []Instance) string {
	var parts []string
	for _, instance := range layout {
		parts = append(parts, fmt.Sprintf("%s@%02d", instance.Profile, instance.Start))
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

func read(t *testing.T, layout string) []Instance {
	t.Helper()
	var instances []Instance
	for _, part := range strings.Fields(layout) {
		name, at, _ := strings.Cut(part, "@")
		instances = append(instances, Instance{name, number(at)})
	}
	return instances
}

func eachProduct(t *testing.T, test func(t *testing.T, p Product)) {
	for _, p := range Products() {
		t.Run(p.Name, func(t *testing.T) { test(t, p) })
	}
}

func product(t *testing.T, name string) Product {
	t.Helper()
	p, known := ProductNamed(name)
	if !known {
		t.Fatalf("no product %s", name)
	}
	return p
}

// plain selects the shapes 1g, 2g, 3g, 4g and 7g: profiles without attributes, and not 1g with twice the memory.
func plain(p Profile) bool { return p.Plain() && (p.Slices != 1 || p.Size != 2) }

func TestNothingCanBeAddedToMaximalLayoutsAndSomethingToOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("trying every layout takes long")
	}
	eachProduct(t, func(t *testing.T, p Product) {
		legal := brute(p)
		isLegal := map[string]bool{}
		for _, layout := range legal {
			isLegal[layout] = true
		}
		for _, text := range legal {
			layout, whole := read(t, text), true
			for _, profile := range p.Profiles {
				for _, start := range profile.Starts {
					if isLegal[written(append(slices.Clone(layout), Instance{profile.Name, start}))] {
						whole = false
					}
				}
			}
			additions, err := p.Additions(layout)
			if err != nil || whole != (len(additions) == 0) {
				t.Errorf("%q: additions %v, %v; brute force says maximal: %v", text, additions, err, whole)
			}
		}
	})
}

// The placement rule checks only memory. That is sufficient, because compute slices never run out first.
func TestNoLegalLayoutHasMoreComputeSlicesThanTheCard(t *testing.T) {
	eachProduct(t, func(t *testing.T, p Product) {
		for _, text := range brute(p) {
			slices := 0
			for _, instance := range read(t, text) {
				profile, _ := p.Profile(instance.Profile)
				slices += profile.Slices
			}
			if slices > p.Slices {
				t.Errorf("%s: %d compute slices of %d", text, slices, p.Slices)
			}
		}
	})
}

// TestCountsOfLayoutsAreThePublishedOnes compares the tables with counts derived from NVIDIA's documents. The commonly
// published number for the A100 is also 19.
func TestCountsOfLayoutsAreThePublishedOnes(t *testing.T) {
	tests := []struct {
		product        string
		only           func(Profile) bool
		sets, complete int
	}{
		{"A100 40GB", plain, 37, 19},
		{"H200", plain, 37, 19},
		{"A100 40GB", Profile.Plain, 77, 78},
		{"A30", Profile.Plain, 9, 5},
		{"RTX PRO 6000", Profile.Plain, 9, 5},
	}
	for _, test := range tests {
		p := product(t, test.product)
		p.Profiles = slices.DeleteFunc(slices.Clone(p.Profiles), func(profile Profile) bool { return !test.only(profile) })
		sets, complete := map[string]bool{}, 0
		for _, text := range brute(p) {
			layout := read(t, text)
			var names []string
			for _, instance := range layout {
				names = append(names, instance.Profile)
			}
			slices.Sort(names)
			sets[strings.Join(names, " ")] = true
			additions, err := p.Additions(layout)
			if err != nil {
				t.Fatal(err)
			}
			if len(additions) == 0 {
				complete++
			}
		}
		if got := [2]int{len(sets) - 1, complete}; got != [2]int{test.sets, test.complete} {
			t.Errorf("%s with %d profiles: %v sets and complete layouts, want %d, %d",
				test.product, len(p.Profiles), got, test.sets, test.complete)
		}
	}
}

func TestLayoutsThatNVIDIADescribes(t *testing.T) {
	tests := []struct {
		name, product, beside, wanted, placed string
		fails                                 bool
	}{
		{"seven 1g", "A100 40GB", "", "1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb", "0 1 2 3 4 5 6", false},
		{"no eighth 1g", "A100 40GB", "", "1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb", "", true},
		{"three 2g", "A100 40GB", "", "2g.10gb 2g.10gb 2g.10gb", "0 2 4", false},
		{"no fourth 2g", "A100 40GB", "", "2g.10gb 2g.10gb 2g.10gb 2g.10gb", "", true},
		{"two 3g", "H100 80GB", "", "3g.40gb 3g.40gb", "0 4", false},
		{"two 3g leave a compute slice that nothing can use", "H100 80GB", "3g.40gb@0 3g.40gb@4", "1g.10gb", "", true},
		{"4g and 3g: the driver puts the 3g behind", "A100 80GB", "", "3g.40gb 4g.40gb", "0 4", false},
		{"no two 4g", "A100 80GB", "", "4g.40gb 4g.40gb", "", true},
		{"one 7g", "H200", "", "7g.141gb", "0", false},
		{"nothing beside a 7g", "H200", "7g.141gb@0", "1g.18gb", "", true},
		{"behind a 3g at 0 are three 1g", "A100 40GB", "3g.20gb@0", "1g.5gb 1g.5gb 1g.5gb", "4 5 6", false},
		{"and no four", "A100 40GB", "3g.20gb@0", "1g.5gb 1g.5gb 1g.5gb 1g.5gb", "", true},
		{"before a 3g at 4 are four", "A100 40GB", "3g.20gb@4", "1g.5gb 1g.5gb 1g.5gb 1g.5gb", "0 1 2 3", false},
		{"a first 1g goes where the 4g stays possible", "A100 40GB", "", "1g.5gb", "6", false},
		{"a 3g too", "A100 40GB", "", "3g.20gb", "4", false},
		{"the 1g with double memory can use the last unit", "A100 40GB", "", "1g.10gb", "6", false},
		{"all-balanced of mig-parted on seven slices", "H100 80GB", "", "1g.10gb 1g.10gb 2g.20gb 3g.40gb", "0 2 3 4", false},
		{"all-balanced of mig-parted on an A30", "A30", "", "1g.6gb 1g.6gb 2g.12gb", "0 2 3", false},
		{"one owner of the media engines", "A100 40GB", "1g.5gb+me@0", "1g.5gb+me", "", true},
		{"and six without beside it", "A100 40GB", "1g.5gb+me@0", "1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb", "1 2 3 4 5 6", false},
		{"one owner on an A30, whatever its size", "A30", "1g.6gb+me@0", "2g.12gb+me", "", true},
		{"graphics on every quarter of an RTX PRO", "RTX PRO 6000", "", "1g.24gb.gfx 1g.24gb+gfx 1g.24gb+gfx 1g.24gb+gfx", "0 3 6 9", false},
		{"one has all media engines and three have none", "RTX PRO 6000", "1g.24gb+me.all@0", "1g.24gb-me 1g.24gb-me 1g.24gb-me", "3 6 9", false},
		{"half an RTX PRO 5000 leaves no whole one", "RTX PRO 5000", "1g.24gb@0", "2g.48gb", "", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			placed, err := product(t, test.product).Place(read(t, test.beside), strings.Fields(test.wanted)...)
			if test.fails != errors.Is(err, ErrNoRoom) || !test.fails && err != nil {
				t.Fatalf("placed %v, error %v", placed, err)
			}
			var starts []string
			for _, instance := range placed {
				starts = append(starts, fmt.Sprint(instance.Start))
			}
			if got := strings.Join(starts, " "); got != test.placed {
				t.Errorf("starts %s, want %s", got, test.placed)
			}
		})
	}
}

// For random cards and requests, Place finds a placement exactly if brute force finds a layout that holds both. The
// placement is legal, and no other placement leaves more of the largest profile.
func TestPlaceFindsAPlacementWhereThereIsOneAndTheBest(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 19))
	for _, name := range []string{"A100 40GB", "A30", "RTX PRO 6000"} {
		p := product(t, name)
		legal := brute(p)
		placed := 0
		for range 400 {
			beside := read(t, legal[random.IntN(len(legal))])
			beside = beside[:random.IntN(len(beside)+1)]
			var wanted []string
			for range 1 + random.IntN(3) {
				wanted = append(wanted, p.Profiles[random.IntN(len(p.Profiles))].Name)
			}
			got, err := p.Place(beside, wanted...)
			best := bestByBruteForce(t, p, beside, wanted)
			if (err == nil) != (best != nil) {
				t.Fatalf("%s: placing %v beside %v: %v, %v; brute force leaves %v", name, wanted, beside, got, err, best)
			}
			if err != nil {
				continue
			}
			placed++
			all := slices.Concat(beside, got)
			if err := p.Check(all); err != nil || !bruteLegal(p, all) {
				t.Errorf("%s: placing %v beside %v: %v is not legal: %v", name, wanted, beside, got, err)
			}
			if left := leftByBruteForce(p, all); !slices.Equal(left, best) {
				t.Errorf("%s: placing %v beside %v: %v leaves %v, possible is %v", name, wanted, beside, got, left, best)
			}
		}
		if placed < 50 {
			t.Errorf("%s: only %d of 400 wishes could be placed", name, placed)
		}
	}
}

func bestByBruteForce(t *testing.T, p Product, beside []Instance, wanted []string) []int {
	t.Helper()
	var best []int
	var try func(layout []Instance, rest []string)
	try = func(layout []Instance, rest []string) {
		if len(rest) == 0 {
			if left := leftByBruteForce(p, layout); best == nil || slices.Compare(left, best) > 0 {
				best = left
			}
			return
		}
		for start := range p.Units {
			profile, _ := p.Profile(rest[0])
			if next := append(slices.Clone(layout), Instance{profile.Name, start}); slices.Contains(profile.Starts, start) && bruteLegal(p, next) {
				try(next, rest[1:])
			}
		}
	}
	try(beside, wanted)
	return best
}

// leftByBruteForce tries all subsets of the starts to count how many more instances of each profile fit.
func leftByBruteForce(p Product, layout []Instance) []int {
	left := make([]int, len(p.Profiles))
	for i, profile := range p.Profiles {
		for subset := range 1 << len(profile.Starts) {
			next, n := slices.Clone(layout), 0
			for bit, start := range profile.Starts {
				if subset>>bit&1 == 1 {
					next, n = append(next, Instance{profile.Name, start}), n+1
				}
			}
			if n > left[i] && bruteLegal(p, next) {
				left[i] = n
			}
		}
	}
	return left
}

func TestCheckSaysWhyALayoutIsNotLegal(t *testing.T) {
	p := product(t, "A100 40GB")
	for layout, want := range map[string]string{
		"3g.20gb@2":           "placing 3g.20gb at 2: on A100 40GB it can begin at [0 4]",
		"1g.6gb@0":            "placing 1g.6gb: A100 40GB has no such profile",
		"3g.20gb@0 4g.20gb@0": "placing 4g.20gb at 0 on A100 40GB: no room on one card",
	} {
		if err := p.Check(read(t, layout)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", layout, err, want)
		}
	}
}

// LeastCards is a lower bound: fewer cards cannot hold the instances. Brute force on one card checks this.
func TestLeastCardsIsNeverMoreThanWhatHoldsTheInstances(t *testing.T) {
	p := product(t, "H100 80GB")
	for _, text := range brute(p) {
		set := map[string]int{}
		for _, instance := range read(t, text) {
			set[instance.Profile]++
		}
		if n, err := p.LeastCards(set); err != nil || n > 1 {
			t.Fatalf("%s lies on one card, LeastCards says %d, %v", text, n, err)
		}
	}
	for wanted, set := range map[int]map[string]int{8: {"1g.10gb": 56}, 9: {"1g.10gb": 57}, 2: {"3g.40gb": 3}, 0: {}} {
		if n, err := p.LeastCards(set); err != nil || n != wanted {
			t.Errorf("%v: %d cards, %v; want %d", set, n, err, wanted)
		}
	}
	if _, err := p.LeastCards(map[string]int{"1g.5gb": 1}); err == nil {
		t.Error("an H100 has no 1g.5gb, and nothing was said")
	}
}
