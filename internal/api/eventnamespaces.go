package api

import (
	"slices"
	"sync"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// review returns for each namespace whether the caller may see its clusters, and whether they may see all namespaces,
// future ones included.
type review func(namespaces []string) (everywhere bool, visible map[string]bool, err error)

// namespaceFilter holds which namespaces a caller may see. It reviews a namespace when it first appears, and all of
// them again with each heartbeat, so it notices new namespaces and revoked rights.
type namespaceFilter struct {
	fleet Fleet
	ask   review
	// unknown has a token while a namespace waits for review.
	unknown chan struct{}

	mu sync.Mutex // guards the fields below
	// everywhere means that no namespace needs a review. visible has the results of reviews; waiting has the namespaces
	// without one.
	everywhere bool
	visible    map[string]bool
	waiting    map[string]bool
}

// newNamespaceFilter reviews the namespaces that have clusters now.
func newNamespaceFilter(fleet Fleet, ask review) (*namespaceFilter, error) {
	f := &namespaceFilter{
		fleet: fleet, ask: ask, unknown: make(chan struct{}, 1), visible: map[string]bool{}, waiting: map[string]bool{},
	}
	_, err := f.review(true)
	return f, err
}

// includes reports whether the caller may see a cluster. It notes unknown namespaces for review.
func (f *namespaceFilter) includes(key nodepool.ClusterKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.everywhere {
		return true
	}
	visible, known := f.visible[key.Namespace]
	if !known {
		f.waiting[key.Namespace] = true
		signal(f.unknown)
	}
	return visible
}

// review reviews the namespaces that wait, or all, and returns those that have become visible.
func (f *namespaceFilter) review(all bool) (gained map[string]bool, err error) {
	everywhere, visible, err := f.ask(f.due(all))
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	gained = map[string]bool{}
	for namespace, allowed := range visible {
		if allowed && !f.everywhere && !f.visible[namespace] {
			gained[namespace] = true
		}
		f.visible[namespace] = allowed
	}
	f.everywhere = everywhere
	return gained, nil
}

// due returns the namespaces to review: those of the fleet and those with a result, or those that wait.
func (f *namespaceFilter) due(all bool) []string {
	var namespaces []string
	if all {
		for _, view := range f.fleet.Views() {
			namespaces = append(namespaces, view.Key.Namespace)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if all {
		for namespace := range f.visible {
			namespaces = append(namespaces, namespace)
		}
		return namespaces
	}
	for namespace := range f.waiting {
		namespaces = append(namespaces, namespace)
	}
	clear(f.waiting)
	slices.Sort(namespaces)
	return namespaces
}
