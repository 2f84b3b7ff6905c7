package main

import (
	"math"
	"math/rand/v2"
	"time"

	"heliostat.dev/heliostat/internal/forecast"
)

// generatedWeeks is how long a generated trace is: as much as methods learn from, and four weeks that count.
const generatedWeeks = 2 * forecast.Weeks

// generated returns traces that are drawn, each of another kind of use. They are no measurements of anybody's work.
func generated(seed uint64) []trace {
	monday := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	var traces []trace
	for i, kind := range []struct {
		name string
		draw func(d *drawing)
	}{
		{"office hours", office},
		{"nightly batch", nightly},
		{"no season", seasonless},
		{"office hours that move", moving},
	} {
		d := &drawing{random: rand.New(rand.NewPCG(seed, uint64(i))),
			demand: make([]int32, generatedWeeks*7*24*60)}
		kind.draw(d)
		traces = append(traces, trace{"generated: " + kind.name, monday, d.demand})
	}
	return traces
}

// drawing is a trace that is being drawn, in minutes.
type drawing struct {
	random *rand.Rand
	demand []int32
}

// add adds workers from a minute on, for some minutes.
func (d *drawing) add(from, minutes float64, workers int32) {
	for at := max(int(from), 0); at < min(int(from+minutes), len(d.demand)); at++ {
		d.demand[at] += workers
	}
}

// about returns a number that is normally distributed.
func (d *drawing) about(middle, deviation float64) float64 {
	return middle + deviation*d.random.NormFloat64()
}

// office: twelve people work on weekdays and come at nine, give or take twenty minutes. Each runs sessions of about an
// hour, with breaks of a quarter of that. One in seven is away on a day.
func office(d *drawing) { d.people(12, func(int) float64 { return 9 }) }

// moving is office, but from the sixth week on everybody comes at noon.
func moving(d *drawing) {
	d.people(12, func(day int) float64 {
		if day >= 5*7 {
			return 12
		}
		return 9
	})
}

func (d *drawing) people(n int, begin func(day int) float64) {
	for day := range generatedWeeks * 7 {
		for range n {
			if day%7 >= 5 || d.random.IntN(7) == 0 {
				continue
			}
			at, end := d.about(60*begin(day), 20), d.about(60*(begin(day)+9), 30)
			for at < end {
				session := 60 * d.random.ExpFloat64()
				d.add(float64(day*24*60)+at, min(session, end-at), 1)
				at += session + 15*d.random.ExpFloat64()
			}
		}
	}
}

// nightly: a pipeline begins at two at night, give or take eight minutes, takes about 90 minutes and needs 6 to 10
// workers; on Mondays twice as many.
func nightly(d *drawing) {
	for day := range generatedWeeks * 7 {
		workers := int32(6 + d.random.IntN(5))
		if day%7 == 0 {
			workers *= 2
		}
		d.add(float64(day*24*60)+d.about(120, 8), math.Max(d.about(90, 15), 20), workers)
	}
}

// seasonless: jobs come at random, one in 40 minutes, and take two hours on average.
func seasonless(d *drawing) {
	for at := 0.0; at < float64(len(d.demand)); at += 40 * d.random.ExpFloat64() {
		d.add(at, 120*d.random.ExpFloat64(), 1)
	}
}
