package gpuinfo

import (
	"fmt"
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

// TestCountsOfLayoutsAreThePublishedOnes compares the tables with counts derived from NVIDIA's documents.
func TestCountsOfLayoutsAreThePublishedOnes(t *testing.T) {
	for _, test := range []struct {
		product string
		only    func(Profile) bool
		want    int
	}{
		{"A100 40GB", plain, 37}, {"H200", plain, 37}, {"A100 40GB", Profile.Plain, 77}, {"A30", Profile.Plain, 9}, {"RTX PRO 6000", Profile.Plain, 9},
	} {
		p := product(t, test.product)
		p.Profiles = slices.DeleteFunc(slices.Clone(p.Profiles), func(profile Profile) bool { return !test.only(profile) })
		sets := map[string]bool{}
		for _, text := range brute(p) {
			var names []string
			for _, instance := range read(t, text) {
				names = append(names, instance.Profile)
			}
			slices.Sort(names)
			sets[strings.Join(names, " ")] = true
		}
		if len(sets)-1 != test.want {
			t.Errorf("%s with %d profiles: %d sets, want %d", test.product, len(p.Profiles), len(sets)-1, test.want)
		}
	}
}

// TestALayoutIsLegalExactlyIfBruteForceSaysSo adds every instance to every legal layout.
func TestALayoutIsLegalExactlyIfBruteForceSaysSo(t *testing.T) {
	for _, name := range []string{"A100 40GB", "A30", "RTX PRO 5000"} {
		p := product(t, name)
		for _, text := range brute(p) {
			layout := read(t, text)
			for _, profile := range p.Profiles {
				for _, start := range profile.Starts {
					longer := append(slices.Clone(layout), Instance{profile.Name, start})
					if err := p.Check(longer); (err == nil) != bruteLegal(p, longer) {
						t.Fatalf("%s: %s: %v", name, written(longer), err)
					}
				}
			}
		}
	}
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
