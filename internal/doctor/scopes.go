package doctor

import (
	"heliostat.dev/heliostat/internal/doctor/check"
	"heliostat.dev/heliostat/internal/doctor/inventory"
)

// heads examines each head group.
func heads(examine func(*inventory.Inventory, inventory.Group, check.Reporter)) check.Scope {
	return check.Scope{Of: "head groups", Run: func(x *inventory.Inventory, _ string, report check.Reporter) {
		for _, g := range x.Groups {
			if g.Workers == nil {
				examine(x, g, report)
			}
		}
	}}
}

// gpus examines each GPU resource that a container names, in limits or requests.
func gpus(examine func(*inventory.Inventory, inventory.GPURequest, check.Reporter)) check.Scope {
	return check.Scope{Of: "GPU requests", Run: func(x *inventory.Inventory, _ string, report check.Reporter) {
		for _, g := range x.Groups {
			for _, r := range g.GPURequests() {
				examine(x, r, report)
			}
		}
	}}
}

// clusters examines each RayCluster, also those in a RayJob, RayService or RayCronJob.
func clusters(examine func(*inventory.Inventory, *inventory.Object, check.Reporter)) check.Scope {
	return check.Scope{Of: "RayClusters", Run: func(x *inventory.Inventory, _ string, report check.Reporter) {
		for _, o := range x.Clusters {
			examine(x, o, report)
		}
	}}
}
