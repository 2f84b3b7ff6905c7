package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// watchedRequests is the store of the watch of one namespace.
type watchedRequests struct {
	*ownedRequests
	namespace string
}

// Transformer keeps an object as it is; it is decoded at once.
func (w *watchedRequests) Transformer() toolscache.TransformFunc { return nil }

// Add keeps an object that was added.
func (w *watchedRequests) Add(object any) error { return w.Update(object) }

// Update keeps an object as it is now.
func (w *watchedRequests) Update(object any) error {
	if o, ok := object.(*unstructured.Unstructured); ok && !w.knows(o) {
		w.set(decodeRequest(o))
	}
	return nil
}

// Delete forgets an object.
func (w *watchedRequests) Delete(object any) error {
	if o, ok := underTombstone(object).(*unstructured.Unstructured); ok {
		w.drop(o.GetNamespace(), o.GetName(), string(o.GetUID()))
	}
	return nil
}

// Replace takes a whole list, the first one or the one after a broken watch. What this process wrote after the list was made stays.
func (w *watchedRequests) Replace(list []any, version string) error {
	there := map[requestKey]bool{}
	for _, object := range list {
		if o, ok := object.(*unstructured.Unstructured); ok {
			there[requestKey{o.GetNamespace(), o.GetName()}] = true
			if !w.knows(o) {
				w.set(decodeRequest(o))
			}
		}
	}
	w.mu.Lock()
	late := w.readings[w.namespace].succeed(w.uptime())
	var lost []nodepool.ClusterKey
	for key, r := range w.objects {
		mine := w.namespace == metav1.NamespaceAll || key.namespace == w.namespace
		if mine && !there[key] && !olderVersion(version, r.ResourceVersion) {
			lost = append(lost, r.Cluster)
			w.remove(key)
		}
	}
	w.mu.Unlock()
	if late {
		w.log.Info("requests of owners are read", "namespace", w.namespace, "requests", len(list))
	}
	w.tell(lost)
	return nil
}

// Resync has nothing to do: what is kept is always whole.
func (w *watchedRequests) Resync() error { return nil }
