package api

import (
	"sync"

	"heliostat.dev/heliostat/internal/api/clusterview"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// movingFleet is a fleet of one cluster that tests change.
type movingFleet struct {
	mu   sync.Mutex
	view clusterview.View
}

func (f *movingFleet) set(view clusterview.View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view = view
}

func (f *movingFleet) Views() []clusterview.View {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []clusterview.View{f.view}
}

func (f *movingFleet) View(key nodepool.ClusterKey) (clusterview.View, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view, f.view.Key == key
}

// growingFleet is a fleet to which tests add clusters.
type growingFleet struct {
	mu    sync.Mutex
	views fakeFleet
}

func (f *growingFleet) add(view clusterview.View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.views[view.Key] = view
}

func (f *growingFleet) Views() []clusterview.View {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.views.Views()
}

func (f *growingFleet) View(key nodepool.ClusterKey) (clusterview.View, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.views.View(key)
}
