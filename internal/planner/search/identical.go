package search

import (
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// shareAmongIdentical deals out to each of the gangs that were placed together what was booked under the items of the first: what is there already to
// those in front, what is to be launched to those at the end.
func (o *Outcome) shareAmongIdentical() {
	for _, r := range o.Runs {
		if len(r.Gangs) < 2 {
			continue
		}
		for i, it := range r.Gangs[0].Options[r.Option].Items {
			o.deal(r, i, it)
		}
	}
}

func (o *Outcome) deal(r placing.Run, i int, it *vector.Item) {
	each := it.Request.Count
	left := each * int64(len(r.Gangs)) // bundles from the last one on that nobody has yet
	deal := func(n int64, to func(own *vector.Item, n int64)) {
		for n > 0 && left > 0 {
			g := (left - 1) / each
			part := min(n, left-g*each)
			to(r.Gangs[g].Options[r.Option].Items[i], part)
			n, left = n-part, left-part
		}
	}
	var log []placing.Entry
	for _, e := range o.Log {
		if e.Item != it {
			log = append(log, e)
			continue
		}
		deal(e.Count, func(own *vector.Item, n int64) {
			log = append(log, placing.Entry{Group: e.Group, Purpose: e.Purpose, Item: own, Count: n})
		})
	}
	var waits []placing.Wait
	for _, w := range o.Waits {
		if w.Item != it {
			waits = append(waits, w)
			continue
		}
		deal(w.Count, func(own *vector.Item, n int64) {
			waits = append(waits, placing.Wait{Item: own, Count: n, Since: w.Since})
		})
	}
	o.Log, o.Waits = log, waits
}
