// Package fairshare divides a budget by max-min fairness. A demand below an equal share is met in full, and the rest is
// divided equally among the other demands. The budget is divided first among groups, and then among the owners in each
// group. The package must not keep state: equal input gives equal output, so a result changes only if demand changes.
package fairshare

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Item is one request for a part of the budget. It is admitted as a whole or not at all.
type Item struct {
	// Group and Owner identify the owner. Owners with the same name in two groups are different owners.
	Group, Owner string
	// Size is the part of the budget that the item needs. It is at least 0.
	Size int64
}

// Admit reports for each item whether the budget has room for it. The total size of admitted items never exceeds the
// budget. If all items of an owner fit into its share, all of them are admitted. Otherwise Admit takes the owner's
// items in list order and skips an item that does not fit into the rest of the share.
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

// shares returns the part of the budget that each owner can use.
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

// MaxMin divides a budget among demands. The share of a demand is at most the demand, and at least the smaller of the
// demand and an equal share of the budget. The undivided rest is less than one unit for each demand.
func MaxMin(wanted map[string]int64, budget int64) map[string]int64 {
	names := slices.SortedFunc(maps.Keys(wanted), func(a, b string) int {
		return cmp.Or(cmp.Compare(wanted[a], wanted[b]), strings.Compare(a, b))
	})
	shares := make(map[string]int64, len(wanted))
	left := max(budget, 0)
	for i, name := range names {
		// The smallest demands come first, so an equal share of the rest never decreases.
		shares[name] = min(wanted[name], left/int64(len(names)-i))
		left -= shares[name]
	}
	return shares
}
