package main

import (
	"fmt"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/forecast"
)

// method decides how many workers to keep, slot by slot.
type method struct {
	name string
	// keep holds the workers for each slot.
	keep []int
	ask  func(m *moment) int
	// idleTimeout replaces that of the group if it is not zero.
	idleTimeout time.Duration
}

// moment is what a method knows at the beginning of a slot.
type moment struct {
	question forecast.Question
	series   forecast.Series
	winters  *holtWinters
	group    forecast.Group
}

// methods are all that are compared.
func methods() []method {
	nothing := func(*moment) int { return 0 }
	list := []method{{name: "none", ask: nothing}}
	for _, timeout := range []time.Duration{5 * time.Minute, 15 * time.Minute, time.Hour} {
		list = append(list, method{name: fmt.Sprintf("none, idle timeout %.0f min", timeout.Minutes()), ask: nothing,
			idleTimeout: timeout})
	}
	for _, n := range []int{1, 2, 4, 8} {
		list = append(list, method{name: fmt.Sprintf("always %d", n), ask: func(*moment) int { return n }})
	}
	for _, q := range []float64{0.5, 0.8, 0.9, 0.98} {
		list = append(list, method{name: fmt.Sprintf("Holt-Winters %.2f", q),
			ask: func(m *moment) int { return m.winters.keep(q) }})
	}
	seasonal := func(name string, q float64, ask func(forecast.Series, forecast.Question) forecast.Forecast) {
		list = append(list, method{name: fmt.Sprintf("%s %.2f", name, q), ask: func(m *moment) int {
			m.question.Quantile = q
			return ask(m.series, m.question).Workers
		}})
	}
	for _, q := range []float64{0.25, 0.5, 0.75, 0.9} {
		seasonal("daily", q, func(s forecast.Series, q forecast.Question) forecast.Forecast {
			return s.In(forecast.Daily, q)
		})
	}
	for _, q := range []float64{0.25, 0.5, 0.75} {
		seasonal("weekly", q, forecast.Series.Ahead)
	}
	for _, ratio := range []float64{1, 3, 10, 30} {
		list = append(list, chosen(ratio))
	}
	return list
}

// chosen is what Heliostat does: the quantile that would have cost least in the week before, chosen anew every day,
// where an hour of waiting counts as some hours of a worker.
func chosen(ratio float64) method {
	var choice forecast.Choice
	asked := 0
	return method{name: fmt.Sprintf("chosen, waiting × %g", ratio), ask: func(m *moment) int {
		if asked%season == 0 {
			choice = m.series.Choose(m.group, forecast.CostsOf(1, ratio))
		}
		asked++
		return m.series.Keep(m.question.At, m.group, choice).Workers
	}}
}

const perSlot = int(forecast.Slot / step)

// plan lets every method decide about every slot. Each knows what was before the slot, as a history in Heliostat keeps
// it.
func plan(t trace, group forecast.Group, learn time.Duration) []method {
	list := methods()
	slots := (len(t.demand) + perSlot - 1) / perSlot
	most := make([]float64, slots)
	for i, n := range t.demand {
		most[i/perSlot] = max(most[i/perSlot], float64(n))
	}
	ahead := int((group.Start + 2*forecast.Slot - 1) / forecast.Slot)
	learned := most[:int(learn/forecast.Slot)]
	m := moment{winters: fitted(learned, ahead), group: group}
	var line forecast.Line
	for slot := range slots {
		at := t.begins.Add(time.Duration(slot) * forecast.Slot)
		m.question = forecast.Question{At: at, Start: group.Start}
		m.series = line.Series()
		for i := range list {
			list[i].keep = append(list[i].keep, list[i].ask(&m))
		}
		for i := slot * perSlot; i < min((slot+1)*perSlot, len(t.demand)); i++ {
			line.Observe(t.begins.Add(time.Duration(i)*step), int(t.demand[i]))
		}
		m.winters.observe(most[slot])
	}
	return list
}

// result is what each method made of the part of a trace that counts.
type result struct {
	trace    trace
	methods  []method
	outcomes []forecast.Outcome // the first is that of none
}

func replay(t trace, o options) result {
	from := int(o.learn / step)
	r := result{trace: t, methods: plan(t, o.group, o.learn)}
	for _, m := range r.methods {
		group := o.group
		if m.idleTimeout > 0 {
			group.IdleTimeout = m.idleTimeout
		}
		keep := func(i int) int { return m.keep[(from+i)/perSlot] }
		r.outcomes = append(r.outcomes, forecast.Replay(step, t.demand[from:], group, keep))
	}
	return r
}

// table returns all that each method cost and saved.
func (r result) table(o options) string {
	var out strings.Builder
	none := r.outcomes[0]
	fmt.Fprintf(&out, "%s: %s to %s, %.0f worker-hours needed, start %v, idle timeout %v, price %.2f\n\n",
		r.trace.name, r.trace.begins.Add(o.learn).Format(time.DateOnly),
		r.trace.begins.Add(time.Duration(len(r.trace.demand))*step).Format(time.DateOnly), none.Needed, o.group.Start,
		o.group.IdleTimeout, o.price)
	out.WriteString("| method and quantile | cost | more than none | waited, h | less than none | " +
		"paid per hour saved | starts |\n|---|---|---|---|---|---|---|\n")
	for i, m := range r.methods {
		o1 := r.outcomes[i]
		more := o1.Minus(none)
		rate := "–"
		if more.Waited < 0 {
			rate = fmt.Sprintf("%.1f", more.Paid*o.price/-more.Waited)
		}
		fmt.Fprintf(&out, "| %s | %.0f | %+.1f %% | %.1f | %.0f %% | %s | %d |\n", m.name, o1.Paid*o.price,
			100*more.Paid/none.Paid, o1.Waited, 100*(1-o1.Waited/none.Waited), rate, o1.Starts)
	}
	return out.String()
}

// curves returns the curve of cost against waiting for all traces: how much more each method costs than none, how much
// less demand waits, and what is paid for an hour less.
func curves(results []result, o options) string {
	var out strings.Builder
	out.WriteString("| method and quantile |")
	for _, r := range results {
		fmt.Fprintf(&out, " %s |", r.trace.name)
	}
	out.WriteString("\n|---|" + strings.Repeat("---|", len(results)) + "\n")
	for i, m := range results[0].methods[1:] {
		fmt.Fprintf(&out, "| %s |", m.name)
		for _, r := range results {
			none, more := r.outcomes[0], r.outcomes[i+1].Minus(r.outcomes[0])
			fmt.Fprintf(&out, " %+.1f %%, %.0f %% less", 100*more.Paid/none.Paid, -100*more.Waited/none.Waited+0)
			if more.Waited < 0 {
				fmt.Fprintf(&out, ", %.1f", more.Paid*o.price/-more.Waited)
			}
			out.WriteString(" |")
		}
		out.WriteString("\n")
	}
	return out.String()
}
