package requests

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"

	"heliostat.dev/heliostat/api/v1alpha1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// store takes what is read of a namespace.
func (s *Store) store(namespace string) *reflector.Store[*nodepool.OwnedRequest] {
	return &reflector.Store[*nodepool.OwnedRequest]{
		Put:        s.Set,
		Remove:     s.lost,
		ReplaceAll: func(list []*nodepool.OwnedRequest, version string) { s.replace(namespace, list, version) },
		Strip: func(object any) (any, error) {
			if o, whole := object.(*unstructured.Unstructured); whole {
				return Decode(o), nil
			}
			return object, nil
		},
	}
}

// replace takes a whole list: the first one, or the one after a watch broke. What this process wrote after the list was
// made stays.
func (s *Store) replace(namespace string, list []*nodepool.OwnedRequest, version string) {
	there := map[requestKey]bool{}
	for _, r := range list {
		s.Set(r)
		there[requestKey{r.Cluster.Namespace, r.ID}] = true
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
	s.notify(sets.New(changed...).UnsortedList())
}

// follow watches one namespace. If there are no ResourceRequests, or they are forbidden, it retries soon.
func (s *Store) follow(ctx context.Context, namespace string) {
	kind := &unstructured.Unstructured{}
	kind.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
	missed := func(err error) { s.miss(ctx, namespace, err) }
	source := reflector.Of("resourcerequests", kind, s.client.Namespace(namespace), metav1.ListOptions{}, s.log)
	source.Forbidden, source.Absent, source.Failed = missed, missed, missed
	source.Pause = retryPause
	read := source.Watch
	source.Watch = func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		stream, err := read(ctx, options)
		if err == nil && options.SendInitialEvents == nil {
			s.resume(namespace)
		}
		return stream, err
	}
	source.Into(ctx, s.store(namespace))
}

// miss notes that a namespace could not be read. The known requests stay, unless it is proven that there are none.
func (s *Store) miss(ctx context.Context, namespace string, err error) {
	absent := false
	if apierrors.IsNotFound(err) {
		known := s.known(ctx)
		absent = known != nil && !*known
	}
	s.mu.Lock()
	r := s.readings[namespace]
	before, settled := r.why, r.settled
	r.fail(s.now(), err, absent)
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
	s.notify(sets.New(lost...).UnsortedList())
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
