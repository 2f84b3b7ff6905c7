package watch

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"sync"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/finding"
	"heliostat.dev/heliostat/pkg/nodepool/kube/nodeobject"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// nodeDevices holds the GPUs that ResourceSlices offer on nodes, and which of them ResourceClaims have. Each process
// reads them once, for all RayClusters. Clusters without Dynamic Resource Allocation have neither.
type nodeDevices struct {
	slices, claims claimClient
	served         func(context.Context) *bool // whether the API server serves ResourceSlices; nil if that is unknown
	log            *slog.Logger
	// changed is called after something changed.
	changed func()

	mu sync.Mutex
	// Guarded by mu. forbidden are the kinds that this process may not read, heard those about which the API server has
	// responded once.
	devices          nodeobject.Devices
	stale            bool
	forbidden, heard map[string]bool
	byNode           map[string]devicesOfNode
	newest           int64 // version

	// answered is closed when the API server has responded about both kinds.
	answered chan struct{}
}

// devicesOfNode are the devices of one node. version differs after each change.
type devicesOfNode struct {
	list    []sharing.DRADevice
	version int64
}

func newNodeDevices(
	client dynamic.Interface, served func(context.Context) *bool, log *slog.Logger, changed func(),
) *nodeDevices {
	resource := func(name string) claimClient {
		return client.Resource(resourcev1.SchemeGroupVersion.WithResource(name))
	}
	return devicesFrom(resource("resourceslices"), resource("resourceclaims"), served, log, changed)
}

func devicesFrom(
	slices, claims claimClient, served func(context.Context) *bool, log *slog.Logger, changed func(),
) *nodeDevices {
	return &nodeDevices{
		slices: slices, claims: claims, served: served, log: log, changed: changed,
		forbidden: map[string]bool{}, heard: map[string]bool{}, answered: make(chan struct{}),
	}
}

// Start reads ResourceSlices and ResourceClaims until ctx ends.
func (d *nodeDevices) Start(ctx context.Context) error {
	var reads sync.WaitGroup
	reads.Go(func() {
		readDevices(ctx, d, d.slices, deviceKind[resourcev1.ResourceSlice]{
			name: "ResourceSlices", clear: d.devices.ClearSlices, put: d.devices.PutSlice,
			drop: func(name types.NamespacedName) bool { return d.devices.DropSlice(name.Name) },
		})
	})
	reads.Go(func() {
		readDevices(ctx, d, d.claims, deviceKind[resourcev1.ResourceClaim]{
			name: "ResourceClaims", clear: d.devices.ClearClaims, put: d.devices.PutClaim, drop: d.devices.DropClaim,
			known: d.devices.KnowClaims,
		})
	})
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
	// known notes that the objects are known, even if there are none; it may be nil.
	known func()
}

// readDevices keeps the devices up to date with the objects of a kind until ctx ends.
func readDevices[T any](ctx context.Context, d *nodeDevices, client claimClient, kind deviceKind[T]) {
	put := func(u *unstructured.Unstructured) bool {
		object := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object); err != nil {
			d.log.Warn("an object cannot be read", "kind", kind.name, "namespace", u.GetNamespace(),
				"name", u.GetName(), "reason", err)
			return false
		}
		return kind.put(object)
	}
	reflector.Source{
		Name: kind.name, Kind: &unstructured.Unstructured{}, Watch: client.Watch,
		List: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		Forbidden: func(err error) { d.forbid(ctx, kind.name, kind.clear, err) },
		Absent:    func() { d.change(kind.name, kind.clear) },
		Failed:    func(err error) { d.log.Debug("reading "+kind.name+" failed; retrying", "reason", err) },
	}.Into(ctx, &reflector.Store[*unstructured.Unstructured]{
		Put: func(u *unstructured.Unstructured) { d.change(kind.name, func() bool { return put(u) }) },
		Remove: func(u *unstructured.Unstructured) {
			name := types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
			d.change(kind.name, func() bool { return kind.drop(name) })
		},
		ReplaceAll: func(list []*unstructured.Unstructured, _ string) {
			d.change(kind.name, func() bool {
				kind.clear()
				if kind.known != nil {
					kind.known()
				}
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
	first := !d.heard[kind] || d.forbidden[kind]
	changed := apply() || first
	d.stale = d.stale || changed
	delete(d.forbidden, kind)
	d.hear(kind)
	d.mu.Unlock()
	if changed {
		d.changed()
	}
}

// forbid notes that this process may not read a kind, and forgets its objects, which would become out of date. The API
// server forbids kinds that it does not serve too.
func (d *nodeDevices) forbid(ctx context.Context, kind string, clear func() bool, err error) {
	if served := d.served(ctx); served != nil && !*served {
		d.change(kind, clear)
		return
	}
	d.mu.Lock()
	before := d.forbidden[kind]
	clear()
	d.stale, d.forbidden[kind] = true, true
	d.hear(kind)
	d.mu.Unlock()
	if !before {
		d.log.Info(kind+" are forbidden; devices that ResourceClaims have count as free", "reason", err)
		d.changed()
	}
}

// hear notes that the API server has responded about a kind. The caller holds mu.
func (d *nodeDevices) hear(kind string) {
	if d.heard[kind] = true; len(d.heard) == 2 {
		select {
		case <-d.answered:
		default:
			close(d.answered)
		}
	}
}

// now returns the devices of each node that has some. Nodes whose devices did not change keep their version.
func (d *nodeDevices) now() map[string]devicesOfNode {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.stale {
		return d.byNode
	}
	d.newest++
	fresh := map[string]devicesOfNode{}
	for node, list := range d.devices.ByNode() {
		on := devicesOfNode{list, d.newest}
		if before := d.byNode[node]; reflect.DeepEqual(before.list, list) {
			on.version = before.version
		}
		fresh[node] = on
	}
	d.byNode, d.stale = fresh, false
	return fresh
}

// mayNotRead reports whether this process may not read one of the two kinds.
func (d *nodeDevices) mayNotRead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.forbidden) > 0
}

// reportClaimsUnknown reports that devices of ResourceClaims count as free because this process may not read them. It
// matters to a group that requests GPUs and fits a node.
func reportClaimsUnknown(report *finding.List, cluster *nodepool.Cluster) {
	if !slices.ContainsFunc(cluster.Groups, func(g nodepool.WorkerGroup) bool { return g.MayLandOnGPUs() }) {
		return
	}
	report.Add(
		raydemand.Info,
		ClaimsUnknown,
		"",
		"",
		"this process may not list and watch ResourceSlices and ResourceClaims, so devices that claims have count as "+
			"free; it may launch pods on GPUs that are in use",
		"grant it list and watch on resourceslices and resourceclaims of resource.k8s.io by a ClusterRole",
	)
}
