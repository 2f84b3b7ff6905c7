package planner

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Demand of very many shapes is placed by classes of shapes that are nearly alike. A class asks for the most that any of its members
// asks for, of each resource, so wherever a bundle of the class fits each of them does: no limit and no promise depends on
// it, only some room is left over. All work is then bounded by the number of classes.

const (
	// shapeWork bounds the square of the number of shapes times the number of groups. A round fills a new node of each group about
	// as often as there are shapes, and each time looks at all of them; a plan takes some tens of rounds.
	shapeWork   = 100_000_000
	leastShapes = 300
	mostShapes  = 2000
	// finest is into how many equal parts classes divide the amounts from one power of two to the next at first: members differ by
	// a thousandth.
	finest = 1024
	// mostCuts bounds how many sizes of nodes classes keep to, beside those of groups.
	mostCuts = 256
)

// maxShapes is how many shapes of one demand are placed one by one.
func (r *roster) maxShapes() int {
	most := int(math.Sqrt(float64(shapeWork / max(len(r.groups), 1))))
	return min(max(most, leastShapes), mostShapes)
}

// coarsen returns the items themselves where they are few, or else classes of them. The classes depend on the demand and on the
// sizes of groups and nodes alone, so the next plan makes the same.
func (r *roster) coarsen(items []*item) []*item {
	most := r.maxShapes()
	if len(items) <= most {
		return items
	}
	cuts := r.cuts()
	var classes []*item
	for parts := int64(finest); ; parts = parts * 4 / 5 {
		if classes = r.classes(items, cuts, parts, most); len(classes) <= most || parts == 0 {
			break
		}
	}
	slices.SortFunc(classes, largestFirst)
	if len(classes) > most {
		put := r.deferred(classes[most:])
		classes = append(classes[:most:most], put)
	}
	return classes
}

// cuts lists by resource the amounts that groups' pods and nodes have in total. No class has members on both sides of one, so a
// class fits into an empty node if its members do.
func (r *roster) cuts() [][]raydemand.Amount {
	cuts := make([][]raydemand.Amount, len(r.names))
	for resource := range cuts {
		var own, others []raydemand.Amount
		for i := range r.groups {
			own = append(own, r.groups[i].shape.total[resource])
		}
		for i := range r.nodes {
			if n := &r.nodes[i]; n.shape != nil && (n.group < 0 || n.shape != r.groups[n.group].shape) {
				others = append(others, n.shape.total[resource])
			}
		}
		slices.Sort(others)
		if others = slices.Compact(others); len(others) <= mostCuts {
			own = append(own, others...)
		}
		slices.Sort(own)
		cuts[resource] = slices.Compact(own)
	}
	return cuts
}

// classes joins items that may go to the same places and ask for the same resources, of each nearly as much. It ends early, with
// too many, unless there are no parts to join any more.
func (r *roster) classes(items []*item, cuts [][]raydemand.Amount, parts int64, most int) []*item {
	index := map[string]int{}
	var classes []*item
	var key []byte
	for _, it := range items {
		key = appendClass(it, key[:0], cuts, parts)
		at, known := index[string(key)]
		if !known {
			if len(classes) > most && parts > 0 {
				return classes
			}
			index[string(key)] = len(classes)
			class := *it
			class.need, class.members = slices.Clone(it.need), []*item{it}
			classes = append(classes, &class)
			continue
		}
		class := classes[at]
		class.members = append(class.members, it)
		class.request.Count = min(class.request.Count+it.request.Count, maxCount)
		for i, t := range it.need {
			class.need[i].amount = max(class.need[i].amount, t.amount)
		}
	}
	for _, class := range classes {
		settleClass(class, r.catalog)
	}
	return classes
}

// settleClass completes a class whose members are known.
func settleClass(it *item, c *catalog) {
	it.worth = 0
	it.request.Bundle = make(raydemand.Bundle, len(it.need))
	for i, t := range it.need {
		it.need[i] = c.term(t.resource, t.amount)
		it.worth += c.worth(t.resource, t.amount)
		it.request.Bundle[c.names[t.resource]] = t.amount
	}
	it.key = string(appendKey(nil, it.need, it.request.Selectors, it.request.Slice))
}

// appendClass writes what members of a class have in common.
func appendClass(it *item, key []byte, cuts [][]raydemand.Amount, parts int64) []byte {
	for _, t := range it.need {
		above, _ := slices.BinarySearch(cuts[t.resource], t.amount)
		key = binary.AppendVarint(key, int64(t.resource))
		key = binary.AppendVarint(key, int64(above))
		key = appendPart(key, int64(t.amount), parts)
	}
	key = append(key, 0xff, 0xff)
	for _, rank := range it.rank {
		key = binary.AppendVarint(key, int64(rank))
	}
	key = binary.AppendVarint(key, int64(it.alternatives))
	key = binary.AppendVarint(key, int64(it.constraints))
	return fmt.Appendf(key, "%v %v", it.trivial(), it.slice)
}

// appendPart writes in which part an amount lies: its power of two, and the part of the way to the next. Of no parts there is one for
// all.
func appendPart(key []byte, amount, parts int64) []byte {
	if parts == 0 {
		return append(key, 0)
	}
	power := bits.Len64(uint64(amount)) - 1
	const precise = 40 // binary digits, so that the product below does not overflow
	drop := max(power-precise, 0)
	rest := amount>>drop - 1<<(power-drop)
	key = binary.AppendVarint(key, int64(power))
	return binary.AppendVarint(key, rest*parts>>(power-drop))
}

// deferred puts off what is of too many kinds even so: it is planned for when others are served.
func (r *roster) deferred(classes []*item) *item {
	put := *classes[0]
	put.members, put.rank = nil, make([]int, len(r.sets))
	for set := range put.rank {
		put.rank[set] = noMatch
	}
	put.request.Count = 0
	for _, class := range classes {
		put.request.Count = min(put.request.Count+class.request.Count, maxCount)
		for _, it := range class.members {
			it.deferred = true
			put.members = append(put.members, it)
		}
	}
	return &put
}

// refine deals out to the members of classes what was planned for the classes. Of what is not served the smallest members have
// most; of the rest those in front are served soonest.
func (p *planning) refine(out *outcome) {
	dealers := map[*item]*dealer{}
	p.requests, out.unserved = dealOut(dealers, p.requests, out.unserved)
	for i := range p.claims {
		left := out.leftOf(i, p.claims[i])
		p.claims[i].items, left = dealOut(dealers, p.claims[i].items, left)
		if at := slices.Index(out.claims, i); at >= 0 {
			out.claimed[at] = left
		}
	}
	if len(dealers) == 0 {
		return
	}
	var waits []wait
	for _, w := range out.waits {
		if d := dealers[w.item]; d != nil {
			d.deal(w.count, func(it *item, n int64) { waits = append(waits, wait{it, n, w.since}) })
			continue
		}
		waits = append(waits, w)
	}
	var log []entry
	for _, e := range out.log {
		if d := dealers[e.item]; d != nil {
			d.deal(e.count, func(it *item, n int64) { log = append(log, entry{e.group, e.purpose, it, n}) })
			continue
		}
		log = append(log, e)
	}
	out.waits, out.log = waits, log
}

// dealer deals the bundles of a class to its members, from the last one on.
type dealer struct {
	members []*item
	left    int64 // of the last of them
}

func (d *dealer) deal(n int64, to func(*item, int64)) {
	for n > 0 && len(d.members) > 0 {
		last := d.members[len(d.members)-1]
		own := min(n, d.left)
		if own > 0 {
			to(last, own)
		}
		n -= own
		if d.left -= own; d.left == 0 {
			if d.members = d.members[:len(d.members)-1]; len(d.members) > 0 {
				d.left = d.members[len(d.members)-1].request.Count
			}
		}
	}
}

// dealOut lists the members in the place of classes, with what of each is not served.
func dealOut(dealers map[*item]*dealer, items []*item, unserved []int64) ([]*item, []int64) {
	if !slices.ContainsFunc(items, func(it *item) bool { return it.members != nil }) {
		return items, unserved
	}
	left := map[*item]int64{}
	var all []*item
	for i, it := range items {
		if it.members == nil {
			all, left[it] = append(all, it), unserved[i]
			continue
		}
		members := slices.Clone(it.members)
		slices.SortFunc(members, largestFirst)
		all = append(all, members...)
		d := &dealer{members, members[len(members)-1].request.Count}
		var more int64 // beyond what a class can count
		for _, member := range members {
			more += member.request.Count
		}
		d.deal(more-it.request.Count+unserved[i], func(it *item, n int64) { left[it] = n })
		dealers[it] = d
	}
	slices.SortFunc(all, largestFirst)
	rest := make([]int64, len(all))
	for i, it := range all {
		rest[i] = left[it]
	}
	return all, rest
}
