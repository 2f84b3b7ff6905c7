package search

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// refine divides the result for classes among their members. The smallest members get most of the unserved bundles, and
// the first members get the bundles that are served soonest.
func (p *Search) refine(out *Outcome) {
	dealers := map[*vector.Item]*dealer{}
	p.Requests, out.Unserved = dealOut(dealers, p.Requests, out.Unserved)
	for i := range p.Claims {
		left := out.LeftOf(i, p.Claims[i])
		p.Claims[i].Items, left = dealOut(dealers, p.Claims[i].Items, left)
		if at := slices.Index(out.Claims, i); at >= 0 {
			out.claimed[at] = left
		}
	}
	if len(dealers) == 0 {
		return
	}
	var waits []placing.Wait
	for _, w := range out.Waits {
		if d := dealers[w.Item]; d != nil {
			d.deal(w.Count, func(it *vector.Item, n int64) {
				waits = append(waits, placing.Wait{Item: it, Count: n, Since: w.Since})
			})
			continue
		}
		waits = append(waits, w)
	}
	var log []placing.Entry
	for _, e := range out.Log {
		if d := dealers[e.Item]; d != nil {
			d.deal(e.Count, func(it *vector.Item, n int64) {
				log = append(log, placing.Entry{Group: e.Group, Purpose: e.Purpose, Item: it, Count: n})
			})
			continue
		}
		log = append(log, e)
	}
	out.Waits, out.Log = waits, log
}

// dealer divides the bundles of a class among its members, starting with the last one.
type dealer struct {
	members []*vector.Item
	left    int64 // bundles of the last of them
}

func (d *dealer) deal(n int64, to func(*vector.Item, int64)) {
	for n > 0 && len(d.members) > 0 {
		last := d.members[len(d.members)-1]
		own := min(n, d.left)
		if own > 0 {
			to(last, own)
		}
		n -= own
		if d.left -= own; d.left == 0 {
			if d.members = d.members[:len(d.members)-1]; len(d.members) > 0 {
				d.left = d.members[len(d.members)-1].Request.Count
			}
		}
	}
}

// dealOut replaces classes by their members, with the unserved bundles of each.
func dealOut(dealers map[*vector.Item]*dealer, items []*vector.Item, unserved []int64) ([]*vector.Item, []int64) {
	if !slices.ContainsFunc(items, func(it *vector.Item) bool { return it.Members != nil }) {
		return items, unserved
	}
	left := map[*vector.Item]int64{}
	var all []*vector.Item
	for i, it := range items {
		if it.Members == nil {
			all, left[it] = append(all, it), unserved[i]
			continue
		}
		members := slices.Clone(it.Members)
		slices.SortFunc(members, vector.LargestFirst)
		all = append(all, members...)
		d := &dealer{members, members[len(members)-1].Request.Count}
		var more int64 // more than a class can count
		for _, member := range members {
			more += member.Request.Count
		}
		d.deal(more-it.Request.Count+unserved[i], func(it *vector.Item, n int64) { left[it] = n })
		dealers[it] = d
	}
	slices.SortFunc(all, vector.LargestFirst)
	rest := make([]int64, len(all))
	for i, it := range all {
		rest[i] = left[it]
	}
	return all, rest
}
