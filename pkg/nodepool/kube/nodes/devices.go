package nodes

import (
	"context"
	"log/slog"
	"reflect"
	"sync"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"heliostat.dev/heliostat/pkg/nodepool/kube/dra"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// nodeDevices holds the devices that ResourceSlices offer on nodes, which of them ResourceClaims have, and what
// DeviceClasses and ResourceClaimTemplates make of them. Each process reads them once, for all RayClusters. Clusters
// without Dynamic Resource Allocation have none.
type nodeDevices struct {
	clients deviceClients
	served  func(context.Context) *bool // whether the API server serves ResourceSlices; nil if that is unknown
	log     *slog.Logger
	// changed is called after something changed, with whether it is more than what claims have.
	changed func(facts bool)

	mu sync.Mutex
	// Guarded by mu. forbidden are the kinds that this process may not read, heard those about which the API server has
	// responded once.
	devices          dra.Objects
	stale            bool
	forbidden, heard map[string]bool
	byNode           map[string]devicesOfNode
	others           dra.Supply // on nodes that are not in byNode
	newest           int64      // version

	// answered is closed when the API server has responded about all kinds.
	answered chan struct{}
}

// deviceClients read the kinds.
type deviceClients struct{ slices, claims, classes, templates untypedClient }

// devicesOfNode are the devices of one node, and what they supply. version differs after each change.
type devicesOfNode struct {
	list    []sharing.DRADevice
	supply  dra.Supply
	version int64
}

func newNodeDevices(
	client dynamic.Interface, served func(context.Context) *bool, log *slog.Logger, changed func(facts bool),
) *nodeDevices {
	resource := func(name string) untypedClient {
		return client.Resource(resourcev1.SchemeGroupVersion.WithResource(name))
	}
	return devicesFrom(deviceClients{resource("resourceslices"), resource("resourceclaims"),
		resource("deviceclasses"), resource("resourceclaimtemplates")}, served, log, changed)
}

func devicesFrom(
	clients deviceClients, served func(context.Context) *bool, log *slog.Logger, changed func(facts bool),
) *nodeDevices {
	return &nodeDevices{
		clients: clients, served: served, log: log, changed: changed,
		forbidden: map[string]bool{}, heard: map[string]bool{}, answered: make(chan struct{}),
	}
}

// The kinds that are read. Devices are known with the first two.
const (
	sliceKind    = "ResourceSlices"
	claimKind    = "ResourceClaims"
	classKind    = "DeviceClasses"
	templateKind = "ResourceClaimTemplates"
	deviceKinds  = 4
)

// Start reads the objects until ctx ends.
func (d *nodeDevices) Start(ctx context.Context) error {
	o, bare := &d.devices, func(drop func(string) bool) func(types.NamespacedName) bool {
		return func(name types.NamespacedName) bool { return drop(name.Name) }
	}
	var reads sync.WaitGroup
	reads.Go(readsDevices(ctx, d, d.clients.slices, deviceKind[resourcev1.ResourceSlice]{
		sliceKind, o.ClearSlices, o.PutSlice, bare(o.DropSlice), o.KnowSlices}))
	reads.Go(readsDevices(ctx, d, d.clients.claims, deviceKind[resourcev1.ResourceClaim]{
		claimKind, o.ClearClaims, o.PutClaim, o.DropClaim, o.KnowClaims}))
	reads.Go(readsDevices(ctx, d, d.clients.classes, deviceKind[resourcev1.DeviceClass]{
		classKind, o.ClearClasses, o.PutClass, bare(o.DropClass), o.KnowClasses}))
	reads.Go(readsDevices(ctx, d, d.clients.templates, deviceKind[resourcev1.ResourceClaimTemplate]{
		templateKind, o.ClearTemplates, o.PutTemplate, o.DropTemplate, nil}))
	reads.Wait()
	return nil
}

// deviceKind is how objects of one kind change the devices.
type deviceKind[T any] struct {
	name string
	// clear forgets all objects, put keeps one, and drop forgets one. They report whether that changes something.
	clear func() bool
	put   func(*T) bool
	drop  func(types.NamespacedName) bool
	// known notes that the objects are known, even if there are none, and reports whether they were not; it may be nil.
	known func() bool
}

// empty notes that there are no objects.
func (k deviceKind[T]) empty() (differs bool) {
	if k.known == nil {
		return k.clear()
	}
	unknown, some := k.known(), k.clear()
	k.known()
	return unknown || some
}

// readsDevices returns what keeps the devices up to date with the objects of a kind until ctx ends.
func readsDevices[T any](ctx context.Context, d *nodeDevices, client untypedClient, kind deviceKind[T]) func() {
	put := func(u *unstructured.Unstructured) bool {
		object := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object); err != nil {
			d.log.Warn("an object cannot be read", "kind", kind.name, "namespace", u.GetNamespace(),
				"name", u.GetName(), "reason", err)
			return false
		}
		return kind.put(object)
	}
	source := reflector.Of(kind.name, &unstructured.Unstructured{}, client, metav1.ListOptions{})
	source.Forbidden = func(err error) { d.forbid(ctx, kind.name, kind.clear, kind.empty, err) }
	source.Absent = func(error) { d.change(kind.name, kind.empty) }
	source.Failed = func(err error) { d.log.Debug("reading "+kind.name+" failed; retrying", "reason", err) }
	store := &reflector.Store[*unstructured.Unstructured]{
		Put: func(u *unstructured.Unstructured) { d.change(kind.name, func() bool { return put(u) }) },
		Remove: func(u *unstructured.Unstructured) {
			name := types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
			d.change(kind.name, func() bool { return kind.drop(name) })
		},
		ReplaceAll: func(list []*unstructured.Unstructured, _ string) {
			d.change(kind.name, func() bool {
				kind.empty()
				for _, u := range list {
					put(u)
				}
				return true
			})
		},
	}
	return func() { source.Into(ctx, store) }
}

// change applies a change of a kind that may be read, which reports whether it changes something.
func (d *nodeDevices) change(kind string, apply func() bool) {
	d.mu.Lock()
	first := !d.heard[kind] || d.forbidden[kind]
	changed := apply() || first
	d.stale = d.stale || changed
	delete(d.forbidden, kind)
	d.hear(kind)
	d.mu.Unlock()
	if changed {
		d.changed(kind != claimKind)
	}
}

// forbid notes that this process may not read a kind, and forgets its objects, which would become out of date. The API
// server forbids kinds that it does not serve too.
func (d *nodeDevices) forbid(ctx context.Context, kind string, clear, empty func() bool, err error) {
	if served := d.served(ctx); served != nil && !*served {
		d.change(kind, empty)
		return
	}
	d.mu.Lock()
	before := d.forbidden[kind]
	clear()
	d.stale, d.forbidden[kind] = true, true
	d.hear(kind)
	d.mu.Unlock()
	if !before {
		d.log.Info(kind+" are forbidden, so plans do not count what they say about devices", "reason", err)
		d.changed(true)
	}
}

// hear notes that the API server has responded about a kind. The caller holds mu.
func (d *nodeDevices) hear(kind string) {
	if d.heard[kind] = true; len(d.heard) == deviceKinds {
		select {
		case <-d.answered:
		default:
			close(d.answered)
		}
	}
}

// now returns the devices of each node that has some, and what is supplied on the others. Nodes whose devices did not
// change keep their version.
func (d *nodeDevices) now() (map[string]devicesOfNode, dra.Supply) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.stale && d.byNode != nil {
		return d.byNode, d.others
	}
	d.newest++
	fresh := map[string]devicesOfNode{}
	supplies, others := d.devices.ByNode()
	byNode := d.devices.GPUs()
	for node, supply := range supplies {
		on := devicesOfNode{byNode[node], supply, d.newest}
		before := d.byNode[node]
		if reflect.DeepEqual(before.list, on.list) && reflect.DeepEqual(before.supply, supply) {
			on.version = before.version
		}
		fresh[node] = on
	}
	d.byNode, d.others, d.stale = fresh, others, false
	return fresh, others
}

// on returns the devices of a node with what they supply.
func (d *nodeDevices) on(node string) devicesOfNode {
	byNode, others := d.now()
	if on, known := byNode[node]; known {
		return on
	}
	return devicesOfNode{supply: others}
}

// onNewNodes returns what is supplied on nodes that a pool adds.
func (d *nodeDevices) onNewNodes() dra.Supply {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.devices.OnNewNodes()
}

// claims returns what pods ask for by claims.
func (d *nodeDevices) claims() dra.Claims {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.devices.Claims()
}

// mayNotRead reports whether this process may not read slices or claims.
func (d *nodeDevices) mayNotRead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.forbidden[sliceKind] || d.forbidden[claimKind]
}
