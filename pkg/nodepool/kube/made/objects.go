// Package made reads the objects of one kind that Heliostat made for RayClusters, such as CapacityBuffers, and keeps
// them by RayCluster. It gives new ones the metadata by which it knows them. It must not write, or know what the
// objects are for.
package made

import (
	"context"
	"log/slog"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// Label is the label that all such objects have, with the value By.
const Label, By = "app.kubernetes.io/managed-by", "heliostat"

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

// Kind says which objects are read, and how.
type Kind[T comparable] struct {
	Served   reflector.Served
	Resource string
	// Read reads an object; false for one that Heliostat did not make for a RayCluster.
	Read func(*unstructured.Unstructured) (Object[T], bool)
}

// Object is what is known of an object. Cluster is the RayCluster that owns it, and UID that of this RayCluster.
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
		unread := func(why string) { o.Replace(namespace, nil, State{Unknown: why, Tried: true}) }
		reads.Go(func() {
			source := o.kind.Served.Source(o.kind.Resource, namespace, Label+"="+By, unread)
			source.Into(ctx, &reflector.Store[*unstructured.Unstructured]{
				Put: o.put, Remove: o.remove,
				ReplaceAll: func(list []*unstructured.Unstructured, _ string) {
					o.Replace(namespace, list, State{Tried: true})
				},
			})
		})
	}
	reads.Wait()
	return nil
}

// NeedLeaderElection reports false: a candidate for leadership reads as well.
func (o *Objects[T]) NeedLeaderElection() bool { return false }

// put keeps an object. One whose owner or annotations somebody has removed is no longer Heliostat's.
func (o *Objects[T]) put(object *unstructured.Unstructured) {
	now, ours := o.kind.Read(object)
	o.mu.Lock()
	before, was := o.drop(object)
	if ours {
		o.keep(object.GetName(), now)
	}
	o.mu.Unlock()
	if was && (!ours || before.Cluster != now.Cluster) {
		o.config.Changed(before.Cluster)
	}
	if ours && before != now {
		o.config.Changed(now.Cluster)
	}
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

// Replace takes a whole list of a namespace, or of all: the first one, the one after a watch broke, or none if they
// cannot be read.
func (o *Objects[T]) Replace(namespace string, list []*unstructured.Unstructured, state State) {
	changed := map[nodepool.ClusterKey]bool{}
	o.mu.Lock()
	for key := range o.all {
		if namespace == metav1.NamespaceAll || key.Namespace == namespace {
			changed[key] = true
			delete(o.all, key)
		}
	}
	o.state[namespace] = state
	for _, object := range list {
		if now, ours := o.kind.Read(object); ours {
			o.keep(object.GetName(), now)
			changed[now.Cluster] = true
		}
	}
	o.mu.Unlock()
	for key := range changed {
		o.config.Changed(key)
	}
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
