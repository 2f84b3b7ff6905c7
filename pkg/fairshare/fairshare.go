// Package fairshare divides a budget among those who want parts of it, by max-min fairness: whoever wants less than an
// equal share gets all of it, and what it leaves is divided equally among the others. It divides on two levels, first
// among groups and then among the owners of each group. It keeps no state: equal input gives equal output, so an answer
// changes only when what is wanted changes.
package fairshare

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Item is one thing that takes a part of the budget as a whole or not at all.
type Item struct {
	// Group and Owner say whose it is. Owners of the same name in two groups are two owners.
	Group, Owner string
	// Size is its part of the budget, at least 0.
	Size int64
}

// Admit reports for each item whether the budget has room for it. Together, admitted items never exceed the budget. An
// owner whose items together are within its share has all of them admitted. Of another owner's items, those that come
// first in the list go first; an item that does not fit into what is left of its owner's share is passed over.
func Admit(items []Item, budget int64) []bool {
	left := shares(items, budget)
	admitted := make([]bool, len(items))
	for i, item := range items {
		owner := owner{item.Group, item.Owner}
		if item.Size <= left[owner] {
			left[owner] -= item.Size
			admitted[i] = true
		}
	}
	return admitted
}

type owner struct{ group, name string }

// shares are the parts of the budget that owners may use.
func shares(items []Item, budget int64) map[owner]int64 {
	groups, owners := map[string]int64{}, map[string]map[string]int64{}
	for _, item := range items {
		if owners[item.Group] == nil {
			owners[item.Group] = map[string]int64{}
		}
		groups[item.Group] += item.Size
		owners[item.Group][item.Owner] += item.Size
	}
	all := map[owner]int64{}
	for group, share := range MaxMin(groups, budget) {
		for name, part := range MaxMin(owners[group], share) {
			all[owner{group, name}] = part
		}
	}
	return all
}

// MaxMin divides a budget among those who want parts of it. Nobody gets more than it wants, or less than min(what it
// wants, an equal share). Less than one unit for each may stay undivided.
func MaxMin(wanted map[string]int64, budget int64) map[string]int64 {
	names := slices.SortedFunc(maps.Keys(wanted), func(a, b string) int {
		return cmp.Or(cmp.Compare(wanted[a], wanted[b]), strings.Compare(a, b))
	})
	shares := make(map[string]int64, len(wanted))
	left := max(budget, 0)
	for i, name := range names {
		// The smallest come first, so an equal share of what is left only grows.
		shares[name] = min(wanted[name], left/int64(len(names)-i))
		left -= shares[name]
	}
	return shares
}
