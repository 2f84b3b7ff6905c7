package landing

import (
	"slices"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Quota is what the pods of some groups may have together of one resource. Pods that exist count.
type Quota struct {
	// Name names it, for example "flavor spot of ClusterQueue research".
	Name     string           `json:"name"`
	Resource string           `json:"resource"`
	Amount   raydemand.Amount `json:"amount"`
	// PodTakes is what one pod takes, by group; other groups are not bound.
	PodTakes raydemand.Bundle `json:"podTakes"`
	// Why says more about it, for example the message of the one that grants it.
	Why string `json:"why,omitempty"`
}

// Quotas bound what the pods of groups may have together of a resource. They are nil if nothing bounds a group.
type Quotas struct {
	all []Quota
	// takes is what one pod takes, by quota and group.
	takes [][]raydemand.Amount
	// free is what the pods that exist or are on their way leave, by quota; negative if they exceed it.
	free []raydemand.Amount
}

func newQuotas(quotas []Quota, groups []Tenant) *Quotas {
	if len(quotas) == 0 {
		return nil
	}
	q := &Quotas{all: quotas}
	for _, quota := range quotas {
		takes := make([]raydemand.Amount, len(groups))
		free := quota.Amount
		for i := range groups {
			takes[i] = quota.PodTakes[groups[i].Name]
			free = free.Plus(-takes[i].Times(groups[i].Current))
		}
		q.takes, q.free = append(q.takes, takes), append(q.free, free)
	}
	return q
}

// Left returns what is left of each quota with the given pods on their way.
func (q *Quotas) Left(given []int64) []raydemand.Amount {
	if q == nil {
		return nil
	}
	left := slices.Clone(q.free)
	for i, n := range given {
		q.Take(left, i, n)
	}
	return left
}

// Take takes pods of a group from what is left.
func (q *Quotas) Take(left []raydemand.Amount, i int, pods int64) {
	for k := range left {
		left[k] = left[k].Plus(-q.takes[k][i].Times(pods))
	}
}

// Shared reports whether a quota bounds both groups.
func (q *Quotas) Shared(i, k int) bool {
	return q != nil && slices.ContainsFunc(q.takes, func(takes []raydemand.Amount) bool {
		return takes[i] > 0 && takes[k] > 0
	})
}

// Room returns how many more pods of a group fit into what is left.
func (q *Quotas) Room(left []raydemand.Amount, i int) int64 {
	room := int64(Unbounded)
	for k := range left {
		if takes := q.takes[k][i]; takes > 0 {
			room = min(room, int64(max(left[k], 0)/takes))
		}
	}
	return room
}

// Tightest returns the quota that has room for the fewest more pods of a group, what is left of it, and what one pod
// takes; ok is false if none bounds the group.
func (q *Quotas) Tightest(i int, given []int64) (quota Quota, left, takes raydemand.Amount, ok bool) {
	lefts := q.Left(given)
	for k := range lefts {
		each := q.takes[k][i]
		if each > 0 && (!ok || max(lefts[k], 0)/each < max(left, 0)/takes) {
			quota, left, takes, ok = q.all[k], lefts[k], each, true
		}
	}
	return quota, left, takes, ok
}
