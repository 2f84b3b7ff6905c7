package requests

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// namespaceStore is the store of the watch of one namespace. Its lists contain names alone, so it is not a
// reflector.Store.
type namespaceStore struct {
	*Store
	namespace string
}

// Transformer takes each object of a streamed list as it arrives, so that the reflector holds names alone until the
// list is complete.
func (w *namespaceStore) Transformer() toolscache.TransformFunc {
	return func(object any) (any, error) {
		o, ok := object.(*unstructured.Unstructured)
		if !ok {
			return object, nil
		}
		return w.take(o), nil
	}
}

// take keeps an object, as far as it fits into the memory budget, and returns its name and version.
func (w *namespaceStore) take(o *unstructured.Unstructured) *takenRequest {
	if !w.knows(o) {
		w.Set(Decode(o))
	}
	taken := &takenRequest{}
	taken.Namespace, taken.Name = o.GetNamespace(), o.GetName()
	taken.UID, taken.ResourceVersion = o.GetUID(), o.GetResourceVersion()
	return taken
}

// Add keeps an object that was added.
func (w *namespaceStore) Add(object any) error { return w.Update(object) }

// Update keeps an object.
func (w *namespaceStore) Update(object any) error {
	if o, ok := object.(*unstructured.Unstructured); ok {
		w.take(o)
	}
	return nil
}

// Delete forgets an object.
func (w *namespaceStore) Delete(object any) error {
	if o, ok := reflector.Deleted(object).(*unstructured.Unstructured); ok {
		w.lost(o.GetNamespace(), o.GetName(), string(o.GetUID()))
	}
	return nil
}

// Replace takes a whole list: the first one, or the one after a watch broke. What this process wrote after the list was
// made stays.
func (w *namespaceStore) Replace(list []any, version string) error {
	there := map[requestKey]bool{}
	for _, object := range list {
		if o, ok := object.(*unstructured.Unstructured); ok {
			object = w.take(o)
		}
		if taken, ok := object.(*takenRequest); ok {
			there[requestKey{taken.Namespace, taken.Name}] = true
		}
	}
	w.mu.Lock()
	late := w.readings[w.namespace].succeed(w.uptime())
	var changed []nodepool.ClusterKey
	for key, r := range w.objects {
		mine := w.namespace == metav1.NamespaceAll || key.namespace == w.namespace
		if mine && !there[key] && !reflector.Older(version, r.ResourceVersion) {
			changed = append(changed, r.Cluster)
			w.noteRemoval(r.UID, true)
			w.remove(key)
		} else if mine && late {
			changed = append(changed, r.Cluster) // no cycle has seen it before the list was complete
		}
	}
	w.budget.divideAgain()
	w.mu.Unlock()
	if late {
		w.log.Info("ResourceRequests are readable", "namespace", w.namespace, "requests", len(list))
	}
	w.notify(distinctKeys(changed))
	return nil
}

// Resync does nothing: the store is always complete.
func (w *namespaceStore) Resync() error { return nil }
