package engine

import (
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/addon/capacity"
	"heliostat.dev/heliostat/internal/addon/consolidation"
	"heliostat.dev/heliostat/internal/addon/departures"
	"heliostat.dev/heliostat/internal/addon/giveback"
	"heliostat.dev/heliostat/internal/addon/nodeguard"
	"heliostat.dev/heliostat/internal/addon/provisioning"
	"heliostat.dev/heliostat/internal/addon/reclaim"
	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/nodepool/price"
)

type features struct {
	protectBusy bool
	// consolidateAfter is how long a worker must be used a little before it is drained because others have room for
	// its work.
	consolidateAfter time.Duration
	// reclaim says whether RayClusters of higher priority take GPUs from others, and how many.
	reclaim reclaim.Settings
}

// addons are the optional features of the loop, in the order in which they run at the same place of a cycle. The
// comment of each row is the reason for its place. Without its row, a feature is gone from the loop.
func (o *options) addons(manager *kube.Manager, book *price.Book) []addon.Addon {
	o.giveBack = giveback.New(manager)
	o.features.reclaim.Deadline = o.loop.DrainDeadline
	market := reclaim.New(o.giveBack, o.features.reclaim)
	return []addon.Addon{
		// First: a worker with work is in danger as long as it has no guard.
		nodeguard.New(manager, nodeguard.Settings{Write: o.features.protectBusy, JoinTime: o.loop.AllocationTimeout}),
		// After guards: a launch that waits for nodes waits for minutes anyway.
		provisioning.New(manager),
		// A machine that goes leaves little time.
		departures.New(),
		// After all that makes room or ends workers, because it only judges a RayCluster in which nothing moves.
		consolidation.New(consolidation.Settings{After: o.features.consolidateAfter, Prices: book}),
		// After consolidation, which may drain a worker only while nothing else goes.
		o.giveBack.Addon(),
		// After give-back, by which it takes GPUs: what was agreed in this cycle is known then.
		market.Addon(),
		// Nodes without workers serve work that may come, so they wait for everything that serves work that is there.
		// The end of a RayCluster comes after all that shows whether it has work.
		capacity.New(manager, o.loop.Form == controller.Sidecar),
		// It changes nothing, so all others go first.
	}
}
