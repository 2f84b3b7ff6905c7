package requests

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"heliostat.dev/heliostat/api/v1alpha1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/nodepool/kube/timing"
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

// follow watches one namespace. If there are no ResourceRequests, or they are forbidden, it retries soon.
func (s *Store) follow(ctx context.Context, namespace string) {
	quiet := logr.NewContext(ctx, logr.Discard())
	for {
		attempt, stop := context.WithCancel(quiet)
		heard := func(ctx context.Context, err error) {
			if err == nil || ctx.Err() != nil {
				return
			}
			s.miss(ctx, namespace, err)
			if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
				stop()
			}
		}
		client, store := s.client.Namespace(namespace), &namespaceStore{s, namespace}
		source := &toolscache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
				list, err := store.list(ctx, s.pages)
				heard(ctx, err)
				return list, err
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				stream, err := client.Watch(ctx, options)
				heard(ctx, err)
				if err == nil && options.SendInitialEvents == nil {
					s.resume(namespace)
				}
				return stream, err
			},
		}
		kind := &unstructured.Unstructured{}
		kind.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
		toolscache.NewReflectorWithOptions(source, kind, store, toolscache.ReflectorOptions{Name: "resourcerequests"}).
			RunWithContext(attempt)
		stop()
		if !timing.Sleep(ctx, timing.Jittered(s.pauseOf(namespace))) {
			return
		}
	}
}

func (s *Store) pauseOf(namespace string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readings[namespace].pause()
}

// miss notes that a namespace could not be read. The known requests stay, unless it is proven that there are none.
func (s *Store) miss(ctx context.Context, namespace string, err error) {
	var known *bool
	if apierrors.IsNotFound(err) {
		known = s.known(ctx)
	}
	s.mu.Lock()
	r := s.readings[namespace]
	before, settled := r.why, r.settled
	r.fail(s.now(), err, known)
	why := r.why
	var lost []nodepool.ClusterKey
	for key, kept := range s.objects {
		if mine := namespace == allNamespaces || key.namespace == namespace; !mine {
			continue
		}
		lost = append(lost, kept.Cluster)
		if why == notInstalled {
			s.remove(key)
		}
	}
	news := before != why || settled != r.settled
	settled = r.settled
	s.budget.divideAgain()
	s.mu.Unlock()
	if !news {
		return
	}
	s.log.Info("cannot read ResourceRequests", "namespace", namespace, "reason", why, "nothingIsTakenAway", !settled)
	s.notify(lost)
}

// resume notes that a watch continues where it broke off, so that it missed nothing.
func (s *Store) resume(namespace string) {
	s.mu.Lock()
	r := s.readings[namespace]
	late := r.read && r.succeed(s.uptime())
	s.mu.Unlock()
	if late {
		s.log.Info("ResourceRequests are readable", "namespace", namespace)
	}
}
