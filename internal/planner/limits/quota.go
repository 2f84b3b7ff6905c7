package limits

import (
	"fmt"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
)

// quotaLimit reports that a quota has no room for another replica of a group.
func (w *Writer) quotaLimit(i int, given []int64) (model.Reason, bool) {
	g := &w.Groups[i]
	if w.QuotaRoom(i, given) >= g.Hosts {
		return model.Reason{}, false
	}
	return model.Reason{
		Code:    model.CodeQuota,
		Message: fmt.Sprintf("group %s is at its quota: %s", g.Name, w.quotaOf(i, given)),
	}, true
}

// quotaOf describes the quota that leaves the least room for pods of a group.
func (w *Writer) quotaOf(i int, given []int64) string {
	quota, left, takes, _ := w.Quotas.Tightest(i, given)
	needs, all := phrase.Pair(quota.Resource, takes, quota.Amount)
	free, _ := phrase.Pair(quota.Resource, max(left, 0), quota.Amount)
	text := fmt.Sprintf("%s has %s %s, of which %s left; one pod takes %s", quota.Name, all, quota.Resource,
		isOrAre(free), needs)
	if quota.Why != "" {
		text += " (" + quota.Why + ")"
	}
	return text
}

func isOrAre(amount string) string {
	if amount == "1" {
		return "1 is"
	}
	return amount + " are"
}
