package engine

import (
	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Fleet provides the loop's decisions to the REST server.
type Fleet struct {
	Loop *controller.Controller
	// Shard names this process; empty if it decides about all RayClusters.
	Shard string
}

// Views returns every cluster's last decision.
func (f Fleet) Views() []api.View {
	var views []api.View
	for _, d := range f.Loop.Decisions() {
		views = append(views, api.View{Decision: d, Shard: f.Shard})
	}
	return views
}

// View returns the last decision of one cluster.
func (f Fleet) View(key nodepool.ClusterKey) (api.View, bool) {
	d, known := f.Loop.Decision(key)
	return api.View{Decision: d, Shard: f.Shard}, known
}
