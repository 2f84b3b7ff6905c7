package kube

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// newestObjects remembers the newest RayCluster that this process has seen in a response to a write or a fresh read, so
// that no decision is based on an older state than the last action. Caches lag; without this, a launch would be
// requested twice.
type newestObjects struct {
	mu     sync.Mutex
	newest map[nodepool.ClusterKey]*unstructured.Unstructured // guarded by mu
}

func newNewestObjects() *newestObjects {
	return &newestObjects{newest: map[nodepool.ClusterKey]*unstructured.Unstructured{}}
}

func keyOf(object *unstructured.Unstructured) nodepool.ClusterKey {
	return nodepool.ClusterKey{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// remember remembers an object unless a newer one is known.
func (f *newestObjects) remember(object *unstructured.Unstructured) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := keyOf(object)
	if known := f.newest[key]; known == nil || !older(object, known) {
		f.newest[key] = object
	}
}

// newer returns the newer of the cached object and the remembered one, which it forgets once the cache has caught up. A
// cached nil means that the RayCluster is gone.
func (f *newestObjects) newer(key nodepool.ClusterKey, cached *unstructured.Unstructured) *unstructured.Unstructured {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.newest[key]
	if known == nil {
		return cached
	}
	if cached == nil || !older(cached, known) {
		delete(f.newest, key)
		return cached
	}
	return known
}

func (f *newestObjects) drop(key nodepool.ClusterKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.newest, key)
}

// older compares resource versions. The API server gives them to all objects of a kind from one growing counter,
// including objects that were deleted and recreated. Versions that are not numbers have no order, and the cache wins.
func older(a, b *unstructured.Unstructured) bool {
	return reflector.Older(a.GetResourceVersion(), b.GetResourceVersion())
}
