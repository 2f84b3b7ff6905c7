package search

import (
	"math"
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/packing"
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// together proposes launches, in addition to those given, for the demand that the best plan so far launches for, its
// unserved requests and some of its unserved gangs, in one program. Gangs that are placed one after the other may each
// get a small node where a large one would hold several. Bundles are packed independently; those of a strictly packed
// gang count as one. A round that is given the launches then shows whether the gangs fit. It reports false if there is
// nothing to pack together.
func (p *Search) together(given []int64, best *contender, left []*fleet.Gang) ([]int64, bool) {
	w := p.gather(&best.out, left)
	if len(w.Items) == 0 || len(w.Items) > placing.MaxProgramItems || p.Steps > placing.MaxPlanSteps {
		return nil, false
	}
	l := p.Open(p.Base, given)
	p.LaunchMinimum(l, given)
	groups, bins := p.OpenBins(l, &placing.Batch{}, &w.Demand)
	if len(bins) == 0 || len(bins) > placing.MaxProgramBins {
		return nil, false
	}
	proposal := slices.Clone(given)
	for i, n := range l.Launched {
		proposal[i] += n
		if n > 0 {
			bins = append(bins, p.minimumBin(i, n, &w.Demand))
		}
	}
	found, steps := packing.Cover(&w.Demand, bins, l.Spare)
	p.Steps += steps
	for _, f := range found.Fillings {
		if f.Bin < len(groups) {
			proposal[groups[f.Bin]] += f.Count * p.Groups[groups[f.Bin]].Hosts
		}
	}
	p.WithinShared(p.CeilingsNow(), proposal, given)
	return proposal, true
}

// gathered is demand of several batches in one program.
type gathered struct {
	packing.Demand
	index map[bundleOf]int
}

// bundleOf distinguishes gathered items: what they ask for, and how they depend on others.
type bundleOf struct {
	key    string
	apart  int64
	within fleet.Domain
}

// gather adds up the demand that a plan's pods are launched for, the unserved requests, and some unserved gangs. It
// leaves out request_resources, which also counts nodes in use.
func (p *Search) gather(out *Outcome, left []*fleet.Gang) *gathered {
	w := &gathered{index: map[bundleOf]int{}}
	from := map[*vector.Item]placing.Run{}
	for _, r := range out.Runs {
		for _, it := range r.Gangs[0].Options[r.Option].Items {
			from[it] = r
		}
	}
	for _, e := range out.Log {
		if r, ok := from[e.Item]; ok {
			w.addGang(e.Item, e.Count, r)
		} else if e.Purpose == "" {
			w.add(bundleOf{key: e.Item.Key}, e.Item, e.Count)
		}
	}
	for i, n := range out.Unserved {
		w.add(bundleOf{key: p.Requests[i].Key}, p.Requests[i], n)
	}
	for gangs := left; len(gangs) > 0; {
		var front []*fleet.Gang
		front, gangs = fleet.CutIdentical(gangs)
		for _, it := range front[0].Options[0].Items {
			if front[0].TopologyLabel == "" && !front[0].Held {
				w.addGang(it, it.Request.Count*int64(len(front)), placing.Run{Gangs: front})
			}
		}
	}
	return w
}

func (w *gathered) addGang(it *vector.Item, n int64, r placing.Run) {
	b := bundleOf{key: it.Key, within: r.Within}
	if r.Gangs[0].Strategy == raydemand.StrictSpread {
		b.apart = int64(len(r.Gangs))
	}
	w.add(b, it, n)
}

func (w *gathered) add(b bundleOf, it *vector.Item, n int64) {
	if n == 0 || it.Trivial() {
		return
	}
	at, known := w.index[b]
	if !known {
		at = len(w.Items)
		w.index[b] = at
		most := int64(math.MaxInt64)
		if b.apart > 0 {
			most = b.apart
		}
		w.Items, w.Left, w.At, w.Most = append(
			w.Items,
			fleet.Inside(it, b.within),
		), append(
			w.Left,
			0,
		), append(
			w.At,
			at,
		), append(
			w.Most,
			most,
		)
	}
	w.Left[at] = min(w.Left[at]+n, vector.MaxCount)
}

// minimumBin returns the pods that a group's minimum launches in any case. It costs almost nothing more, so it is used
// first.
func (p *Search) minimumBin(group int, pods int64, w *packing.Demand) packing.Bin {
	const share = 1e-3
	g := &p.Groups[group]
	admits, _ := placing.AdmittedBy(w, &placing.NodeClass{Shape: g.Shape, Free: g.Shape.Total})
	return packing.Bin{
		Free:     g.Shape.Total,
		Cost:     p.Costs.PerReplica[group] / float64(g.Hosts) * share,
		Hosts:    1,
		Limit:    pods,
		Existing: true,
		Admits:   admits,
	}
}
