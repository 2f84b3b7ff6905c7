package forecast

import (
	"fmt"
	"slices"
	"time"
)

// Costs are what an hour of one worker costs, and what an hour costs in which demand for one worker waits, in one
// currency.
type Costs struct {
	Worker, Waiting float64
	// Assumed: one of them is not known, and an hour of waiting counts as AssumedRatio hours of a worker.
	Assumed bool
}

// AssumedRatio is how many hours of a worker an hour of waiting counts as if nobody has said what it costs. A person
// who waits costs about that many times a GPU, and one missing worker of a gang keeps the others waiting.
const AssumedRatio = 10

// CostsOf returns the costs of a group; zero is not known.
func CostsOf(worker, waiting float64) Costs {
	if worker > 0 && waiting > 0 {
		return Costs{Worker: worker, Waiting: waiting}
	}
	if !(worker > 0) {
		worker = 1
	}
	return Costs{Worker: worker, Waiting: AssumedRatio * worker, Assumed: true}
}

// Of returns what an outcome costs.
func (c Costs) Of(o Outcome) float64 { return o.Paid*c.Worker + o.Waited*c.Waiting }

// quantiles are those that Choose compares. Of four weeks, they ask for four, three, two and one.
var quantiles = []float64{0, 0.25, 0.5, 0.75, 0.9}

// Choice is the quantile that would have cost least lately, waiting included.
type Choice struct {
	Quantile float64
	// Pays: it would have cost less than to start workers only when they are needed.
	Pays bool
	// From and To are the time that was replayed; both are zero if the history is too short for that.
	From, To time.Time
	// Without is what happens by the model of Replay if only demand starts workers, With if forecasts with this
	// quantile do too. Neither is what happened.
	Without, With Outcome
	// Timeout is an idle timeout that would have cost less than With, without any forecast; zero if there is none.
	Timeout     time.Duration
	WithTimeout Outcome
	// Why is a sentence without a full stop.
	Why string
}

// timeouts are longer idle timeouts, which often save as much: work that comes again soon needs no forecast.
var timeouts = []time.Duration{5 * time.Minute, 15 * time.Minute, time.Hour}

const (
	// replayed is how far back Choose looks at most. Before it, the forecasts need weeks of their own.
	replayed = 7 * 24 * time.Hour
	// leastReplayed is the shortest time from which it chooses.
	leastReplayed = 24 * time.Hour
)

// Choose replays the last week with each quantile. Each forecast in it knows only what was before it. A formula such as
// the newsvendor's would keep too much: the demand that it expects comes once, and the worker that waits for it costs
// money again in every slot until then.
func (s Series) Choose(g Group, c Costs) Choice {
	from := max(0, s.Len()-int(replayed/Slot))
	kept := make([][]int, len(quantiles))
	for i := from; i < s.Len(); i++ {
		season, samples := s.best(Question{At: s.Start(i), Start: g.Start})
		if season == "" && len(kept[0]) == 0 {
			from++ // the history begins here
			continue
		}
		slices.Sort(samples)
		for k, q := range quantiles {
			workers := 0
			if season != "" {
				workers = samples[len(samples)-neededOf(len(samples), q)]
			}
			kept[k] = append(kept[k], workers)
		}
	}
	if time.Duration(s.Len()-from)*Slot < leastReplayed {
		return Choice{Why: fmt.Sprintf("the history is too short: it begins on %s, and forecasts need the two days "+
			"before the time on which they are tried, and a day of that", s.Start(0).Format("2006-01-02 15:04 UTC"))}
	}
	best := Choice{From: s.Start(from), To: s.Start(s.Len()), Without: Replay(Slot, s.workers[from:], g, nil)}
	best.With = best.Without
	for k, q := range quantiles {
		with := Replay(Slot, s.workers[from:], g, func(i int) int { return kept[k][i] })
		if c.Of(with) < c.Of(best.With) {
			best.Quantile, best.With, best.Pays = q, with, true
		}
	}
	least := c.Of(best.With)
	for _, timeout := range timeouts {
		longer := g
		longer.IdleTimeout = timeout
		if timeout <= g.IdleTimeout {
			continue
		}
		if o := Replay(Slot, s.workers[from:], longer, nil); c.Of(o) < least {
			least, best.Timeout, best.WithTimeout = c.Of(o), timeout, o
		}
	}
	best.Why = best.sentence(c)
	return best
}

func (c Choice) sentence(costs Costs) string {
	over := fmt.Sprintf("from %s to %s, ", c.From.Format("2006-01-02"), c.To.Format("2006-01-02"))
	ratio := fmt.Sprintf("where an hour of waiting counts as %.3g hours of a worker", costs.Waiting/costs.Worker)
	if c.Timeout > 0 {
		more := c.WithTimeout.Minus(c.Without)
		ratio += fmt.Sprintf("; an idle timeout of %s alone would have cost less: it saves %.1f hours of waiting for "+
			"%.1f more hours of workers", minutes(c.Timeout), -more.Waited, more.Paid)
	}
	if !c.Pays {
		return over + fmt.Sprintf("workers kept ready would have cost more than the %.1f hours of waiting that they "+
			"would have saved at most, %s", c.Without.Waited, ratio)
	}
	more := c.With.Minus(c.Without)
	return over + fmt.Sprintf("this would have saved %.1f of %.1f hours of waiting for %.1f more hours of workers, %s",
		-more.Waited, c.Without.Waited, more.Paid, ratio)
}

// minutes writes a duration of whole minutes.
func minutes(d time.Duration) string { return fmt.Sprintf("%.0f min", d.Minutes()) }

// Keep answers with the quantile of a choice. Where no quantile pays, it keeps nothing.
func (s Series) Keep(at time.Time, g Group, c Choice) Forecast {
	f := s.Ahead(Question{At: at, Start: g.Start, Quantile: c.Quantile})
	if !c.Pays {
		f.Workers = 0
		if f.Season != "" {
			f.Why = c.Why
		}
	}
	f.Workers = max(g.within(f.Workers), 0)
	return f
}
