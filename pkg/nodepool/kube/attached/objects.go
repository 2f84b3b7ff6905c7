// Package attached reads the objects that belong to RayClusters, and keeps them by RayCluster: CapacityPolicies, which
// users write, and ProvisioningRequests and CapacityBuffers, which Heliostat makes and writes. A kind, or the right to
// read it, may be missing; then there are no such objects, and a line of the log or a finding says so. The package
// writes only to objects that Heliostat made for the RayCluster, and must not decide anything.
package attached

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// Config says where objects are read, and who wants to know.
type Config struct {
	Client    dynamic.Interface
	Discovery discovery.ServerResourcesInterface
	// Namespaces are those whose RayClusters are served; empty means all.
	Namespaces []string
	// Changed is called after something changed for a RayCluster.
	Changed func(nodepool.ClusterKey)
	Logger  *slog.Logger
}

// Served finds a kind of an API group.
func (c Config) Served(group string, versions ...string) reflector.Served {
	return reflector.Served{
		Client: c.Client, Discovery: c.Discovery, Group: group, Versions: versions, Logger: c.Logger,
	}
}

// Kind says which objects are read, and how.
type Kind[T comparable] struct {
	Served   reflector.Served
	Resource string
	// Selector selects objects by label; empty means all.
	Selector string
	// Read reads an object; false for one that is not for a RayCluster.
	Read func(*unstructured.Unstructured) (Object[T], bool)
	// Same reports whether two readings of an object mean the same; nil compares them.
	Same func(before, now T) bool
	// Unread is called with the reason if the objects of a namespace cannot be read; nil if that needs no action.
	Unread func(namespace, why string)
}

// Object is what is known of an object. Cluster is the RayCluster that it is for, and UID that of this RayCluster, or
// empty if the object has only the name.
type Object[T comparable] struct {
	Cluster nodepool.ClusterKey
	UID     string
	Value   T
}

// State says what is known of the objects of a namespace. Unknown says why they are unknown; it is empty if they are
// known. Tried: they have been read, or cannot be.
type State struct {
	Unknown string
	Tried   bool
}

// Objects are the objects of one kind.
type Objects[T comparable] struct {
	config Config
	kind   Kind[T]

	mu sync.Mutex
	// Guarded by mu. all are the objects by RayCluster and name, state says by namespace what is known of them.
	all   map[nodepool.ClusterKey]map[string]Object[T]
	state map[string]State
}

// New prepares the reads; Start begins them.
func New[T comparable](c Config, kind Kind[T]) *Objects[T] {
	if len(c.Namespaces) == 0 {
		c.Namespaces = []string{metav1.NamespaceAll}
	}
	o := &Objects[T]{config: c, kind: kind, all: map[nodepool.ClusterKey]map[string]Object[T]{},
		state: map[string]State{}}
	for _, namespace := range c.Namespaces {
		o.state[namespace] = State{Unknown: "they have not been read yet"}
	}
	return o
}

// Start reads until ctx ends.
func (o *Objects[T]) Start(ctx context.Context) error {
	var reads sync.WaitGroup
	for _, namespace := range o.config.Namespaces {
		unread := func(why string) { o.Unread(namespace, why) }
		reads.Go(func() {
			o.kind.Served.Source(o.kind.Resource, namespace, o.kind.Selector, unread).Into(ctx, o.Store(namespace))
		})
	}
	reads.Wait()
	return nil
}

// Store takes what is read of a namespace, or of all.
func (o *Objects[T]) Store(namespace string) *reflector.Store[*unstructured.Unstructured] {
	return &reflector.Store[*unstructured.Unstructured]{
		Put: o.put, Remove: o.remove,
		ReplaceAll: func(list []*unstructured.Unstructured, _ string) {
			o.replace(namespace, list, State{Tried: true})
		},
	}
}

// Unread notes why the objects of a namespace, or of all, cannot be read.
func (o *Objects[T]) Unread(namespace, why string) {
	news := o.replace(namespace, nil, State{Unknown: why, Tried: true})
	if news && o.kind.Unread != nil {
		o.kind.Unread(namespace, why)
	}
}

// put keeps an object. One that is no longer for a RayCluster, because its owner was removed, is forgotten.
func (o *Objects[T]) put(object *unstructured.Unstructured) {
	now, is := o.kind.Read(object)
	o.mu.Lock()
	before, was := o.drop(object)
	if is {
		o.keep(object.GetName(), now)
	}
	o.mu.Unlock()
	if was && (!is || before.Cluster != now.Cluster) {
		o.config.Changed(before.Cluster)
	}
	if is && !(was && o.same(before, now)) {
		o.config.Changed(now.Cluster)
	}
}

func (o *Objects[T]) same(before, now Object[T]) bool {
	if o.kind.Same == nil {
		return before == now
	}
	return before.Cluster == now.Cluster && before.UID == now.UID && o.kind.Same(before.Value, now.Value)
}

func (o *Objects[T]) remove(object *unstructured.Unstructured) {
	o.mu.Lock()
	before, was := o.drop(object)
	o.mu.Unlock()
	if was {
		o.config.Changed(before.Cluster)
	}
}

// keep keeps an object. The caller holds mu.
func (o *Objects[T]) keep(name string, now Object[T]) {
	if o.all[now.Cluster] == nil {
		o.all[now.Cluster] = map[string]Object[T]{}
	}
	o.all[now.Cluster][name] = now
}

// drop forgets an object, and returns what was known of it. The caller holds mu.
func (o *Objects[T]) drop(object *unstructured.Unstructured) (before Object[T], was bool) {
	for key, objects := range o.all {
		if key.Namespace != object.GetNamespace() {
			continue
		}
		if before, was = objects[object.GetName()]; was {
			delete(objects, object.GetName())
			if len(objects) == 0 {
				delete(o.all, key)
			}
			return before, true
		}
	}
	return before, false
}

// replace takes a whole list of a namespace, or of all: the first one, the one after a watch broke, or none if they
// cannot be read. It reports whether the state is another one.
func (o *Objects[T]) replace(namespace string, list []*unstructured.Unstructured, state State) (news bool) {
	changed := map[nodepool.ClusterKey]bool{}
	o.mu.Lock()
	for key := range o.all {
		if namespace == metav1.NamespaceAll || key.Namespace == namespace {
			changed[key] = true
			delete(o.all, key)
		}
	}
	news = o.state[namespace] != state
	o.state[namespace] = state
	for _, object := range list {
		if now, is := o.kind.Read(object); is {
			o.keep(object.GetName(), now)
			changed[now.Cluster] = true
		}
	}
	o.mu.Unlock()
	for key := range changed {
		o.config.Changed(key)
	}
	return news
}

// Clusters lists the RayClusters, existing or not, that have objects.
func (o *Objects[T]) Clusters() []nodepool.ClusterKey {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.all))
}

// Of returns the objects of exactly this RayCluster, in no order, and what is known of those of its namespace.
func (o *Objects[T]) Of(key nodepool.ClusterKey, uid string) (values []T, state State) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, object := range o.all[key] {
		if object.UID == uid {
			values = append(values, object.Value)
		}
	}
	for _, namespace := range []string{key.Namespace, metav1.NamespaceAll} {
		if state, known := o.state[namespace]; known {
			return values, state
		}
	}
	return values, State{Unknown: "this process does not serve namespace " + key.Namespace, Tried: true}
}
