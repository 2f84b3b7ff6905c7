package controller

import (
	"cmp"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/addon/capacity"
	"heliostat.dev/heliostat/internal/addon/consolidation"
	"heliostat.dev/heliostat/internal/addon/departures"
	"heliostat.dev/heliostat/internal/addon/giveback"
	"heliostat.dev/heliostat/internal/addon/nodeguard"
	"heliostat.dev/heliostat/internal/addon/provisioning"
	"heliostat.dev/heliostat/internal/addon/reclaim"
)

// features are the settings of optional features.
type features struct {
	protectBusy bool
	// market is one that several worlds share; nil for none.
	market *reclaim.Market
}

// addons has the rows of cmd/autoscaler/engine, in their order.
func (f features) addons(kube *fakeKube, config *Config) []addon.Addon {
	kube.desk = giveback.New(kube)
	market := cmp.Or(f.market, reclaim.New(kube.desk, reclaim.Settings{}))
	return []addon.Addon{
		nodeguard.New(kube, nodeguard.Settings{Write: f.protectBusy, JoinTime: config.AllocationTimeout}),
		provisioning.New(kube),
		departures.New(),
		consolidation.New(consolidation.Settings{After: 10 * time.Minute}),
		kube.desk.Addon(),
		market.Addon(),
		capacity.New(kube, cmp.Or(config.Form, Fleet) == Sidecar),
	}
}

// with begins anew with these features.
func (w *world) with(f features, config Config) *world {
	w.t.Helper()
	w.features = f
	w.restart(config)
	w.settle()
	return w
}
