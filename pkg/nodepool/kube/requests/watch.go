package requests

import (
	"context"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"heliostat.dev/heliostat/api/v1alpha1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// Page is how many objects a page of a list has. The process holds the decoded objects of one page at a time.
const Page = 50

// store takes what is read of a namespace. Its lists contain names alone: each object is taken as it arrives, so that
// the reflector never holds the objects of a whole list.
func (s *Store) store(namespace string) *reflector.Store[runtime.Object] {
	return &reflector.Store[runtime.Object]{
		Put: func(object runtime.Object) { s.take(object) },
		Remove: func(object runtime.Object) {
			if o, ok := object.(*unstructured.Unstructured); ok {
				s.lost(o.GetNamespace(), o.GetName(), string(o.GetUID()))
			}
		},
		ReplaceAll: func(list []runtime.Object, version string) { s.replace(namespace, list, version) },
		Strip:      func(object any) (any, error) { return s.take(object), nil },
	}
}

// listNames takes all objects of a namespace page by page, and returns their names.
func (s *Store) listNames(ctx context.Context, namespace string) (runtime.Object, error) {
	all := &metav1.PartialObjectMetadataList{}
	for from := ""; ; from = all.Continue {
		page, err := s.client.Namespace(namespace).List(ctx, metav1.ListOptions{Limit: Page, Continue: from})
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			all.Items = append(all.Items, *s.take(&page.Items[i]).(*metav1.PartialObjectMetadata))
		}
		all.ResourceVersion, all.Continue = page.GetResourceVersion(), page.GetContinue()
		if all.Continue == "" {
			return all, nil
		}
	}
}

// take keeps an object, and returns its name and version. It returns everything else as it is.
func (s *Store) take(object any) any {
	o, whole := object.(*unstructured.Unstructured)
	if !whole {
		return object
	}
	if !s.knows(o) {
		s.Set(Decode(o))
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()}}
}

// replace takes a whole list: the first one, or the one after a watch broke. What this process wrote after the list was
// made stays.
func (s *Store) replace(namespace string, list []runtime.Object, version string) {
	there := map[requestKey]bool{}
	for _, object := range list {
		if taken, ok := s.take(object).(*metav1.PartialObjectMetadata); ok {
			there[requestKey{taken.Namespace, taken.Name}] = true
		}
	}
	s.mu.Lock()
	late := s.readings[namespace].succeed(s.uptime())
	var changed []nodepool.ClusterKey
	s.each(namespace, func(key requestKey, r *nodepool.OwnedRequest) {
		switch {
		case !there[key] && !reflector.Older(version, r.ResourceVersion):
			changed = append(changed, r.Cluster)
			s.noteRemoval(r.UID, true)
			s.remove(key)
		case late:
			changed = append(changed, r.Cluster) // no cycle has seen it before the list was complete
		}
	})
	s.mu.Unlock()
	if late {
		s.log.Info("ResourceRequests are readable", "namespace", namespace, "requests", len(list))
	}
	s.notify(distinct(changed))
}

// follow watches one namespace. If there are no ResourceRequests, or they are forbidden, it retries soon.
func (s *Store) follow(ctx context.Context, namespace string) {
	kind := &unstructured.Unstructured{}
	kind.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
	missed := func(err error) { s.miss(ctx, namespace, err) }
	client := s.client.Namespace(namespace)
	reflector.Source{
		Name: "resourcerequests", Kind: kind, Forbidden: missed, Absent: missed, Failed: missed,
		Pause: func() time.Duration { return s.pauseOf(namespace) },
		List: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			return s.listNames(ctx, namespace)
		},
		Watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			stream, err := client.Watch(ctx, options)
			if err == nil && options.SendInitialEvents == nil {
				s.resume(namespace)
			}
			return stream, err
		},
	}.Into(ctx, s.store(namespace))
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
	s.each(namespace, func(key requestKey, kept *nodepool.OwnedRequest) {
		lost = append(lost, kept.Cluster)
		if why == notInstalled {
			s.remove(key)
		}
	})
	news := before != why || settled != r.settled
	settled = r.settled
	s.mu.Unlock()
	if !news {
		return
	}
	s.log.Info("cannot read ResourceRequests", "namespace", namespace, "reason", why, "nothingIsTakenAway", !settled)
	s.notify(distinct(lost))
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

// each calls f with each request that the watch of a namespace covers; f may remove it. The caller holds mu.
func (s *Store) each(namespace string, f func(requestKey, *nodepool.OwnedRequest)) {
	for of, objects := range s.objects {
		if namespace != allNamespaces && of != namespace {
			continue
		}
		for name, r := range objects {
			f(requestKey{of, name}, r)
		}
	}
}

func distinct(keys []nodepool.ClusterKey) []nodepool.ClusterKey {
	set := map[nodepool.ClusterKey]bool{}
	for _, key := range keys {
		set[key] = true
	}
	return slices.Collect(maps.Keys(set))
}
