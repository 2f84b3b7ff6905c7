package relay

import (
	"cmp"
	"slices"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
)

// gatherSavings answers with the changes of all shards.
func (r *Relay) gatherSavings(c *gin.Context) { gather(r, c, joinedSavings) }

// joinedSavings joins the changes of shards, those first that would have saved most, as in the answer of one shard.
func joinedSavings(answers []partial) (apiv1.Savings, error) {
	all, err := read[apiv1.Savings](answers, "savings")
	if err != nil {
		return apiv1.Savings{}, err
	}
	sum := all[0]
	for _, more := range all[1:] {
		sum.Items = append(sum.Items, more.Items...)
	}
	slices.SortStableFunc(sum.Items, func(a, b apiv1.SavingItem) int {
		return cmp.Or(cmp.Compare(b.Saves, a.Saves), cmp.Compare(b.SavedGpuSeconds, a.SavedGpuSeconds),
			cmp.Compare(b.SavedPodSeconds, a.SavedPodSeconds), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Group, b.Group))
	})
	return sum, nil
}
