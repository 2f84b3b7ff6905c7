package api

import (
	"cmp"
	"slices"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/api/apiv1"
)

// gatherCosts answers with the sum of the costs of all shards. An owner can have RayClusters in several shards.
func (r *relay) gatherCosts(c *gin.Context) { gather(r, c, joinedCosts) }

// joinedCosts adds up the costs of shards. All of them count since the latest of their times.
func joinedCosts(answers []partial) (apiv1.Costs, error) {
	all, err := readParts[apiv1.Costs](answers, "costs")
	if err != nil {
		return apiv1.Costs{}, err
	}
	sum := all[0]
	for _, more := range all[1:] {
		if more.Since.After(sum.Since) {
			sum.Since = more.Since
		}
		sum.Items = append(sum.Items, more.Items...)
		sum.Idle = append(sum.Idle, more.Idle...)
	}
	sum.Items = summedCosts(sum.Items)
	slices.SortStableFunc(sum.Idle, func(a, b apiv1.CostIdle) int {
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Cluster, b.Cluster))
	})
	return sum, nil
}

// summedCosts sorts items, and adds up those of the same.
func summedCosts(items []apiv1.CostItem) []apiv1.CostItem {
	compare := func(a, b apiv1.CostItem) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Cluster, b.Cluster),
			cmp.Compare(a.Group, b.Group), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Job, b.Job),
			cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Why, b.Why))
	}
	slices.SortStableFunc(items, compare)
	sums := []apiv1.CostItem{}
	for _, item := range items {
		if n := len(sums); n > 0 && compare(sums[n-1], item) == 0 {
			last := &sums[n-1]
			last.PodSeconds += item.PodSeconds
			last.GpuSeconds += item.GpuSeconds
			last.Cost += item.Cost
			last.UnpricedPodSeconds += item.UnpricedPodSeconds
			continue
		}
		sums = append(sums, item)
	}
	return sums
}
