// Package fairshare divides a budget by max-min fairness: a demand below an equal share is met in full, and what it
// leaves is divided equally among the others. It divides on two levels, first among groups and then among the owners in
// each group. It keeps no state: equal input gives equal output, so a result changes only when demand changes.
package fairshare

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Item is one thing that takes a part of the budget, as a whole or not at all.
type Item struct {
	// Group and Owner identify the owner. Owners of the same name in two groups are two owners.
	Group, Owner string
	// Size is its part of the budget, at least 0.
	Size int64
}

// Admit reports for each item whether the budget has room for it. Together, admitted items never exceed the budget. If
// all items of an owner are within its share, all of them are admitted. Otherwise the owner's items are admitted in the
// order of the list; an item that does not fit into the rest of the share is skipped.
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

// MaxMin divides a budget among demands. No demand gets more than it wants, or less than min(what it wants, an equal
// share). Less than one unit for each demand may stay undivided.
func MaxMin(wanted map[string]int64, budget int64) map[string]int64 {
	names := slices.SortedFunc(maps.Keys(wanted), func(a, b string) int {
		return cmp.Or(cmp.Compare(wanted[a], wanted[b]), strings.Compare(a, b))
	})
	shares := make(map[string]int64, len(wanted))
	left := max(budget, 0)
	for i, name := range names {
		// The smallest come first, so an equal share of the rest only grows.
		shares[name] = min(wanted[name], left/int64(len(names)-i))
		left -= shares[name]
	}
	return shares
}
