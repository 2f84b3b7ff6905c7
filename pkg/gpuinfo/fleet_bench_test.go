package gpuinfo

import (
	"fmt"
	"slices"
	"testing"
)

// thousand is 1,000 cards of a product, part-filled at random, and 10,000 mixed requests of profiles without attributes,
// small ones more often: a profile of half the size is asked for twice as often.
func thousand(tb testing.TB, name string) (Product, [][]Instance, []string) {
	p, known := ProductNamed(name)
	if !known {
		tb.Fatalf("no product %s", name)
	}
	p = p.Only(Profile.Plain)
	random := seeded(1)
	var urn []string
	for _, profile := range p.Profiles {
		urn = append(urn, slices.Repeat([]string{profile.Name}, p.Units/profile.Size)...)
	}
	wanted := make([]string, 10_000)
	for i := range wanted {
		wanted[i] = urn[random(len(urn))]
	}
	return p, partFilled(p, 1000, random), wanted
}

// ways are the placers that are compared. The first two know nothing of a request before it comes, the last two know all.
var ways = []struct {
	name  string
	place func(tb testing.TB, p Product, cards [][]Instance, wanted []string) []Assignment
}{
	{"first fit, as they come", func(_ testing.TB, p Product, cards [][]Instance, wanted []string) []Assignment {
		return firstFit(p, cards, wanted)
	}},
	{"least lost, as they come", oneByOne},
	{"first fit, largest first", func(_ testing.TB, p Product, cards [][]Instance, wanted []string) []Assignment {
		sorted := slices.Clone(wanted)
		slices.SortStableFunc(sorted, func(a, b string) int {
			i, _ := p.index(a)
			j, _ := p.index(b)
			return i - j
		})
		return firstFit(p, cards, sorted)
	}},
	{"PlaceAll", func(tb testing.TB, p Product, cards [][]Instance, wanted []string) []Assignment {
		return placeAll(tb, p, cards, wanted)
	}},
}

// oneByOne places each request by the rule of PlaceAll without knowledge of the next.
func oneByOne(tb testing.TB, p Product, cards [][]Instance, wanted []string) []Assignment {
	f, err := p.fleet(cards)
	if err != nil {
		tb.Fatal(err)
	}
	assignments := make([]Assignment, len(wanted))
	for i, name := range wanted {
		profile, _ := p.index(name)
		assignments[i] = Assignment{NoCard, Instance{Profile: name}}
		if m, ok := f.cheapest(profile, nil); ok {
			assignments[i] = Assignment{f.take(m, profile), Instance{name, m.start}}
		}
	}
	return assignments
}

// BenchmarkPlaceAll places up to 10,000 requests on 1,000 cards, and tells what each way of placing serves and wastes.
func BenchmarkPlaceAll(b *testing.B) {
	for _, load := range []struct {
		product  string
		requests int
	}{{"A100 80GB", 750}, {"A100 80GB", 1_500}, {"A100 80GB", 10_000}, {"A30", 10_000}} {
		p, cards, wanted := thousand(b, load.product)
		for _, way := range ways {
			b.Run(fmt.Sprintf("%s/%d/%s", load.product, load.requests, way.name), func(b *testing.B) {
				var assignments []Assignment
				for b.Loop() {
					assignments = way.place(b, p, cards, wanted[:load.requests])
				}
				report(b, p, cards, assignments)
			})
		}
	}
}

// report adds to the time what was served and what is wasted. units-usable is the most memory that any instances could have
// taken, whole-cards-left how many cards have no instance afterwards.
func report(b *testing.B, p Product, cards [][]Instance, assignments []Assignment) {
	filled := filledBy(cards, assignments)
	free, err := p.Waste(cards)
	if err != nil {
		b.Fatal(err)
	}
	left, err := p.Waste(filled)
	if err != nil {
		b.Fatal(err)
	}
	units, instances := served(p, assignments)
	whole := 0
	for _, layout := range filled {
		if len(layout) == 0 {
			whole++
		}
	}
	b.ReportMetric(float64(units), "units")
	b.ReportMetric(float64(free.Units-free.StrandedUnits), "units-usable")
	b.ReportMetric(float64(len(assignments)-instances), "unplaced")
	b.ReportMetric(float64(left.StrandedUnits), "stranded-units")
	b.ReportMetric(float64(left.StrandedSlices), "stranded-slices")
	b.ReportMetric(float64(whole), "whole-cards-left")
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/op")
}
