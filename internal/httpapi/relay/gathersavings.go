package relay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
)

// gatherSavings answers with the changes of all shards.
func (r *Relay) gatherSavings(c *gin.Context) { gather(r, c, joinedSavings) }

// joinedSavings joins the changes of shards, those first that would have saved most.
func joinedSavings(answers []partial) (all apiv1.Savings, err error) {
	for i, a := range answers {
		var savings apiv1.Savings
		if err := json.Unmarshal(a.text, &savings); err != nil {
			return all, fmt.Errorf("reading the savings of a shard: %w", err)
		}
		if i == 0 {
			all = savings
			continue
		}
		all.Items = append(all.Items, savings.Items...)
	}
	slices.SortStableFunc(all.Items, func(a, b apiv1.SavingItem) int {
		return cmp.Or(cmp.Compare(b.Saves, a.Saves), cmp.Compare(b.SavedGpuSeconds, a.SavedGpuSeconds))
	})
	return all, nil
}
