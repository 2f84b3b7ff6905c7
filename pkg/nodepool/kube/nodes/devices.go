package nodes

import (
	"context"
	"log/slog"
	"maps"
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
	clients map[string]untypedClient    // by resource
	served  func(context.Context) *bool // whether the API server serves ResourceSlices; nil if that is unknown
	log     *slog.Logger
	// changed is called after something changed, with whether it is more than what claims have.
	changed func(facts bool)

	mu sync.Mutex
	// Guarded by mu. forbidden has the kinds about which the API server has responded once, true for those that this
	// process may not read.
	devices   dra.Objects
	stale     bool
	forbidden map[string]bool
	byNode    map[string]devicesOfNode
	others    dra.Supply // on nodes that are not in byNode
	newest    int64      // version
}

// devicesOfNode are the devices of one node, and what they supply. version differs after each change.
type devicesOfNode struct {
	list    []sharing.DRADevice
	supply  dra.Supply
	version int64
}

// deviceKinds are the kinds that are read, by resource. Devices are known with slices and claims.
var deviceKinds = map[string]string{dra.ResourceSlices: "ResourceSlice", dra.ResourceClaims: "ResourceClaim",
	dra.DeviceClasses: "DeviceClass", dra.ResourceClaimTemplates: "ResourceClaimTemplate"}

// deviceClientsOf returns the clients of the resources that are read.
func deviceClientsOf(client dynamic.Interface) map[string]untypedClient {
	clients := map[string]untypedClient{}
	for name := range deviceKinds {
		clients[name] = client.Resource(resourcev1.SchemeGroupVersion.WithResource(name))
	}
	return clients
}

func newNodeDevices(
	clients map[string]untypedClient, served func(context.Context) *bool, log *slog.Logger, changed func(facts bool),
) *nodeDevices {
	return &nodeDevices{
		clients: clients, served: served, log: log, changed: changed,
		forbidden: map[string]bool{},
	}
}

// Start reads the objects until ctx ends.
func (d *nodeDevices) Start(ctx context.Context) error {
	reflector.Each(maps.Keys(deviceKinds), func(resource string) { d.read(ctx, resource) })
	return nil
}

// read keeps the devices up to date with the objects of a resource until ctx ends.
func (d *nodeDevices) read(ctx context.Context, resource string) {
	put := func(u *unstructured.Unstructured) bool {
		object := dra.New(deviceKinds[resource])
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object); err != nil {
			d.log.Warn("an object cannot be read", "kind", resource, "namespace", u.GetNamespace(),
				"name", u.GetName(), "reason", err)
			return false
		}
		return d.devices.Put(object)
	}
	empty := func() (differs bool) {
		unknown, some := d.devices.Know(resource), d.devices.Clear(resource)
		d.devices.Know(resource)
		return unknown || some
	}
	source := reflector.Of(resource, &unstructured.Unstructured{}, d.clients[resource], metav1.ListOptions{}, d.log)
	source.Served = d.served
	source.Forbidden = func(err error) { d.forbid(resource, err) }
	source.Absent = func(error) { d.change(resource, empty) }
	source.Into(ctx, &reflector.Store[*unstructured.Unstructured]{
		Put: func(u *unstructured.Unstructured) { d.change(resource, func() bool { return put(u) }) },
		Remove: func(u *unstructured.Unstructured) {
			name := types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
			d.change(resource, func() bool { return d.devices.Drop(resource, name) })
		},
		ReplaceAll: func(list []*unstructured.Unstructured, _ string) {
			d.change(resource, func() bool {
				empty()
				for _, u := range list {
					put(u)
				}
				return true
			})
		},
	})
}

// change applies a change of a kind that may be read, which reports whether it changes something.
func (d *nodeDevices) change(kind string, apply func() bool) {
	d.mu.Lock()
	wasForbidden, heard := d.forbidden[kind]
	changed := apply() || wasForbidden || !heard
	d.stale = d.stale || changed
	d.forbidden[kind] = false
	d.mu.Unlock()
	if changed {
		d.changed(kind != dra.ResourceClaims)
	}
}

// forbid notes that this process may not read a kind, and forgets its objects, which would become out of date.
func (d *nodeDevices) forbid(kind string, err error) {
	d.mu.Lock()
	before := d.forbidden[kind]
	d.devices.Clear(kind)
	d.stale = true
	d.forbidden[kind] = true
	d.mu.Unlock()
	if !before {
		d.log.Info(kind+" are forbidden, so plans do not count what they say about devices", "reason", err)
		d.changed(true)
	}
}

// answered reports whether the API server has responded about all kinds.
func (d *nodeDevices) answered() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.forbidden) == len(deviceKinds)
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
	return d.forbidden[dra.ResourceSlices] || d.forbidden[dra.ResourceClaims]
}
