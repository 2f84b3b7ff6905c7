package forecast

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Season says which earlier moments are like one that comes.
type Season string

const (
	// Weekly looks at the same time of the same day of the last weeks.
	Weekly Season = "weekly"
	// Daily looks at the same time of the last days.
	Daily Season = "daily"
)

// alike are the seasons: how far apart its moments are, how many are looked at, and how many must be known.
var alike = map[Season]struct {
	every       time.Duration
	most, least int
}{
	Weekly: {7 * 24 * time.Hour, Weeks, 3},
	Daily:  {24 * time.Hour, 7, 2},
}

// Question asks how many workers of a group to have ready one start time ahead.
type Question struct {
	At time.Time
	// Start is how long a worker takes to start.
	Start time.Duration
	// Quantile is which share of the earlier moments would have had enough workers; see Choose.
	Quantile float64
}

// window returns the slots for which the answer counts. What is started now is there one start time ahead, and the next
// answer comes a slot later; a worker that is needed before that must not go meanwhile.
func (q Question) window() (from, to int64) {
	from = slotOf(q.At)
	return from, max(slotOf(q.At.Add(q.Start+Slot-time.Nanosecond)), from) + 1
}

// Forecast is an answer: how many workers of a group to have ready, those in use included.
type Forecast struct {
	Workers int
	// From and To are the time for which it counts.
	From, To time.Time
	// Season is how earlier moments were chosen; empty if the history is too short. Samples is how many there are,
	// and Reached how many of them needed that many workers, or one worker if Workers is 0.
	Season           Season
	Samples, Reached int
	Quantile         float64
	// Why is a sentence without a full stop.
	Why string
}

// Ahead answers from the weeks before. While fewer are known than a weekly season needs, it answers from the days
// before.
func (s Series) Ahead(q Question) Forecast {
	if season, samples := s.best(q); season != "" {
		return q.answer(season, samples)
	}
	f := q.answer("", nil)
	f.Why = fmt.Sprintf("the history is too short: a forecast needs the same time of %d of the last %d days",
		alike[Daily].least, alike[Daily].most)
	return f
}

// In answers from one season, whether enough of it is known or not.
func (s Series) In(season Season, q Question) Forecast { return q.answer(season, s.samples(q, season)) }

// best returns the samples of the first season of which enough is known; none if there is no such season.
func (s Series) best(q Question) (Season, []int) {
	for _, season := range []Season{Weekly, Daily} {
		if samples := s.samples(q, season); len(samples) >= alike[season].least {
			return season, samples
		}
	}
	return "", nil
}

// samples returns the most workers that were needed in each earlier window of a season. A window counts if at least
// half of its slots are known.
func (s Series) samples(q Question, season Season) []int {
	from, to := q.window()
	every := int64(alike[season].every / Slot)
	var samples []int
	for i := int64(1); i <= int64(alike[season].most); i++ {
		begin, end := from-i*every, to-i*every
		end = min(end, from) // what comes now is not known yet, however long a start takes
		if workers, known := s.most(begin, end); known > 0 && int64(2*known) >= end-begin {
			samples = append(samples, workers)
		}
	}
	return samples
}

// answer returns the quantile of samples, which it sorts.
func (q Question) answer(season Season, samples []int) Forecast {
	from, to := q.window()
	f := Forecast{From: slotStart(from), To: slotStart(to), Season: season, Samples: len(samples), Quantile: q.Quantile}
	if len(samples) == 0 {
		return f
	}
	slices.Sort(samples)
	needed := neededOf(len(samples), q.Quantile)
	f.Workers = samples[len(samples)-needed]
	for _, n := range samples {
		if n >= max(f.Workers, 1) {
			f.Reached++
		}
	}
	f.Why = f.sentence(needed)
	return f
}

// neededOf returns how many of some samples must need a worker for it to be kept: the share 1 - quantile of them.
func neededOf(samples int, quantile float64) int {
	const rounding = 1e-9
	return min(max(int(math.Ceil((1-quantile)*float64(samples)-rounding)), 1), samples)
}

// sentence says why a number of workers is kept; needed is how many samples must have needed it.
func (f Forecast) sentence(needed int) string {
	days := "days"
	if f.Season == Weekly {
		days = f.From.Weekday().String() + "s"
	}
	looked := fmt.Sprintf("of the last %d %s from %s to %s UTC, ", f.Samples, days, f.From.Format("15:04"),
		f.To.Format("15:04"))
	switch {
	case f.Workers > 1:
		return looked + fmt.Sprintf("%d needed at least %d workers", f.Reached, f.Workers)
	case f.Workers == 1:
		return looked + fmt.Sprintf("%d needed a worker", f.Reached)
	case f.Reached == 0:
		return looked + "none needed a worker"
	}
	return looked + fmt.Sprintf("%d needed a worker, and a worker pays from %d", f.Reached, needed)
}
