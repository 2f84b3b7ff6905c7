package publish

import (
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/savings"
)

// Savings provides what other settings would have cost to the REST server.
type Savings struct {
	// Decisions returns the last decision of each RayCluster, whose settings are those of now.
	Decisions func() []*decision.Decision
	History   *savings.History
}

// Savings returns the changes to all RayClusters, by what was recorded since a moment.
func (s Savings) Savings(since time.Time) []apiv1.SavingItem {
	var all []savings.Advice
	for _, d := range s.Decisions() {
		now := savings.Situation{Cluster: &d.Kube, Mode: d.Mode}
		for _, record := range s.History.Since(d.Cluster, since) {
			all = append(all, now.Advise(record)...)
		}
	}
	savings.Sort(all)
	items := make([]apiv1.SavingItem, len(all))
	for i := range all {
		items[i] = savingItemOf(&all[i])
	}
	return items
}

func savingItemOf(a *savings.Advice) apiv1.SavingItem {
	saves := a.Saves()
	return apiv1.SavingItem{
		Namespace: a.Cluster.Namespace, Cluster: a.Cluster.Name, Group: a.Group, Kind: string(a.Kind), From: a.From,
		To: a.To, Since: time.Unix(a.Record.From, 0).UTC(), Cost: a.Observed.Money(), WouldCost: a.Outcome.Cost.Money(),
		Saves: saves.Money(), SavedGpuSeconds: saves.GPUSeconds(), SavedPodSeconds: saves.PodSeconds(),
		UnpricedPodSeconds: a.Observed.UnpricedPodSeconds(), MoreStarts: a.Outcome.Starts,
		MoreWaitedSeconds: a.Waited, StartAssumed: a.Assumed, Why: a.Why, Change: a.Change,
	}
}
