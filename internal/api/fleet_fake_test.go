package api

import (
	"sync"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// movingFleet is a fleet of one cluster that tests change.
type movingFleet struct {
	mu   sync.Mutex
	view View
}

func (f *movingFleet) set(view View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view = view
}

func (f *movingFleet) Views() []View {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []View{f.view}
}

func (f *movingFleet) View(key nodepool.ClusterKey) (View, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view, f.view.Cluster == key
}

// growingFleet is a fleet to which tests add clusters.
type growingFleet struct {
	mu    sync.Mutex
	views fakeFleet
}

func (f *growingFleet) add(view View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.views[view.Cluster] = view
}

func (f *growingFleet) Views() []View {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.views.Views()
}

func (f *growingFleet) View(key nodepool.ClusterKey) (View, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.views.View(key)
}
