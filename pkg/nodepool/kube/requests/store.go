package requests

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"heliostat.dev/heliostat/api/v1alpha1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// allNamespaces stands for the watch of all namespaces at once.
const allNamespaces = metav1.NamespaceAll

// Store holds the ResourceRequests of all RayClusters as they are watched, or as this process wrote them if that is
// newer. The caches that the manager waits for do not contain them: their CRD may not be installed, and then there are
// none.
type Store struct {
	client dynamic.NamespaceableResourceInterface
	// known asks discovery whether there are ResourceRequests; nil means no response.
	known func(context.Context) *bool
	now   func() time.Time
	// uptime is how long the process has run, whatever happens to its clock.
	uptime     func() time.Duration
	namespaces []string // watched one by one; none means all at once
	log        *slog.Logger
	// changed is called after a request for a RayCluster changed in more than its status.
	changed func(nodepool.ClusterKey)

	mu sync.Mutex
	// Guarded by mu. objects is by namespace, then by name; names lists those of each RayCluster.
	objects map[string]map[string]*nodepool.OwnedRequest
	names   map[nodepool.ClusterKey]map[string]bool
	// gone has recently deleted requests, by UID. Watches and responses to writes may still report them.
	gone   map[string]removal
	pruned time.Time // when old entries of gone were removed
	// readings is the state of each watch, by namespace.
	readings map[string]*reading
}

// removal is how a request went. final: the API server reported it gone, so that everything that arrives later is
// older. Otherwise this process deleted it, and finalizers may still keep the object.
type removal struct {
	at    time.Time
	final bool
}

// removalsLast is how long removals are remembered: longer than any response to a write takes.
const removalsLast = time.Minute

// Config says what a store reads, and which functions it calls.
type Config struct {
	Client    dynamic.NamespaceableResourceInterface
	Discovery discovery.ServerResourcesInterface
	// Namespaces are watched one by one; empty means all at once.
	Namespaces []string
	// Changed is called after a request for a RayCluster changed in more than its status.
	Changed func(nodepool.ClusterKey)
	Logger  *slog.Logger
}

// New prepares a store; Start begins to watch.
func New(c Config) *Store {
	return newStore(c, reflector.Serves(c.Discovery, v1alpha1.Resource))
}

func newStore(c Config, known func(context.Context) *bool) *Store {
	begun := time.Now()
	s := &Store{
		client:     c.Client,
		known:      known,
		now:        time.Now,
		uptime:     func() time.Duration { return time.Since(begun) },
		namespaces: c.Namespaces,
		log:        c.Logger,
		changed:    c.Changed,
		objects:    map[string]map[string]*nodepool.OwnedRequest{},
		names:      map[nodepool.ClusterKey]map[string]bool{},
		gone:       map[string]removal{},
		readings:   map[string]*reading{},
	}
	if len(s.namespaces) == 0 {
		s.namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range s.namespaces {
		s.readings[namespace] = &reading{why: notReadYet}
	}
	return s
}

// Start watches until ctx ends.
func (s *Store) Start(ctx context.Context) error {
	reflector.Each(slices.Values(s.namespaces), func(namespace string) { s.follow(ctx, namespace) })
	return nil
}

// available returns nil, or nodepool.ErrNoRequests with the reason why requests in a namespace cannot be kept. Known
// requests can be read and changed while no news of them arrives.
func (s *Store) available(namespace string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if namespace != allNamespaces || s.readings[allNamespaces] != nil {
		return s.readingOf(namespace).unavailable(len(s.names))
	}
	var err error
	for _, r := range s.readings {
		if err = r.unavailable(len(s.names)); err == nil {
			return nil
		}
	}
	return err
}

// Of lists the requests for one RayCluster by name.
func (s *Store) Of(key nodepool.ClusterKey) []nodepool.OwnedRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []nodepool.OwnedRequest
	for _, name := range slices.Sorted(maps.Keys(s.names[key])) {
		all = append(all, s.withGrace(*s.objects[key.Namespace][name]))
	}
	return all
}

// clusterOf returns the RayCluster of a request; empty if there is no such request.
func (s *Store) clusterOf(key requestKey) nodepool.ClusterKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.objects[key.namespace][key.name]; known != nil {
		return known.Cluster
	}
	return nodepool.ClusterKey{}
}

// Clusters lists the RayClusters that requests are for, whether they exist or not.
func (s *Store) Clusters() []nodepool.ClusterKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.names))
}

// all lists the requests of a namespace, or of all of them, by namespace and name.
func (s *Store) all(namespace string) []nodepool.OwnedRequest {
	var all []nodepool.OwnedRequest
	s.mu.Lock()
	s.each(namespace, func(_ requestKey, r *nodepool.OwnedRequest) { all = append(all, s.withGrace(*r)) })
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b nodepool.OwnedRequest) int {
		return cmp.Or(cmp.Compare(a.Cluster.Namespace, b.Cluster.Namespace), cmp.Compare(a.ID, b.ID))
	})
	return all
}

func (s *Store) get(namespace, name string) (nodepool.OwnedRequest, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.objects[namespace][name]; r != nil {
		return s.withGrace(*r), true
	}
	return nodepool.OwnedRequest{}, false
}

// Set keeps a request unless a newer one is known or it is gone. Watches lag behind the writes of this process.
func (s *Store) Set(r *nodepool.OwnedRequest) {
	namespace := r.Cluster.Namespace
	s.mu.Lock()
	known := s.objects[namespace][r.ID]
	s.noteRenewal(r, known)
	left, gone := s.gone[r.UID]
	if gone && (left.final || !r.Deleting) ||
		known != nil && (sameReading(known, r) || reflector.Older(r.ResourceVersion, known.ResourceVersion)) {
		s.mu.Unlock()
		return
	}
	var of []nodepool.ClusterKey
	if known != nil && known.Cluster != r.Cluster {
		of = append(of, known.Cluster)
		delete(s.names[known.Cluster], r.ID)
	}
	if s.objects[namespace] == nil {
		s.objects[namespace] = map[string]*nodepool.OwnedRequest{}
	}
	s.objects[namespace][r.ID] = r
	if s.names[r.Cluster] == nil {
		s.names[r.Cluster] = map[string]bool{}
	}
	s.names[r.Cluster][r.ID] = true
	news := known == nil || !statusAlone(known, r)
	s.mu.Unlock()
	if news {
		s.notify(append(of, r.Cluster))
	}
}

// keep sets what the API server returned, and returns it as get does.
func (s *Store) keep(r *nodepool.OwnedRequest) nodepool.OwnedRequest {
	s.Set(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.withGrace(*r)
}

// sameReading reports whether both are the same version of one object, from its watch and from the response to its
// write.
func sameReading(a, b *nodepool.OwnedRequest) bool {
	return a.ResourceVersion != "" && a.UID == b.UID && a.ResourceVersion == b.ResourceVersion
}

// statusAlone reports whether two readings of one object differ in nothing that affects plans: the API server sets a
// new generation for each new spec, and for an object that is being deleted.
func statusAlone(before, now *nodepool.OwnedRequest) bool {
	return before.UID == now.UID && now.Generation != 0 && before.Generation == now.Generation &&
		before.Deleting == now.Deleting &&
		before.Cluster == now.Cluster && before.ClusterUID == now.ClusterUID
}

// deleted forgets a request that this process has deleted, whatever watches still report of it for a while.
func (s *Store) deleted(r *nodepool.OwnedRequest) { s.leave(r, false) }

// lost forgets a request that the API server reports gone. The response to a write of it may arrive later, and must not
// restore it: nothing would ever report it gone again.
func (s *Store) lost(r *nodepool.OwnedRequest) { s.leave(r, true) }

func (s *Store) leave(r *nodepool.OwnedRequest, final bool) {
	key := requestKey{r.Cluster.Namespace, r.ID}
	s.mu.Lock()
	s.noteRemoval(r.UID, final)
	known := s.objects[key.namespace][key.name]
	is := known != nil && known.UID == r.UID // another object of the same name stays
	if is {
		s.remove(key)
	}
	s.mu.Unlock()
	if is {
		s.changed(known.Cluster)
	}
}

// noteRemoval remembers a removal. The caller holds mu.
func (s *Store) noteRemoval(uid string, final bool) {
	now := time.Now()
	if now.Sub(s.pruned) > removalsLast {
		maps.DeleteFunc(s.gone, func(_ string, d removal) bool { return now.Sub(d.at) > removalsLast })
		s.pruned = now
	}
	s.gone[uid] = removal{now, final || s.gone[uid].final}
}

// remove forgets an object. The caller holds mu.
func (s *Store) remove(key requestKey) {
	of := s.objects[key.namespace][key.name].Cluster
	delete(s.objects[key.namespace], key.name)
	if delete(s.names[of], key.name); len(s.names[of]) == 0 {
		delete(s.names, of)
	}
	if len(s.objects[key.namespace]) == 0 {
		delete(s.objects, key.namespace)
	}
}

// notify reports that the requests of RayClusters changed.
func (s *Store) notify(clusters []nodepool.ClusterKey) {
	for _, key := range clusters {
		s.changed(key)
	}
}
