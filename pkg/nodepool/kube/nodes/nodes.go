package nodes

import (
	"context"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/dra"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// nodesPause is the least time between two cycles of all RayClusters because of nodes. A starting pool of machines
// changes many times a second, and each change affects all RayClusters.
const nodesPause = time.Second

// nodes holds the nodes of the Kubernetes cluster in the form of package landing.
type nodes struct {
	client reflector.Client[*corev1.NodeList]
	log    *slog.Logger
	// changed is called, from one goroutine, after a new view is available.
	changed func()
	// dirty has a token while something differs from the last view.
	dirty chan struct{}
	view  atomic.Pointer[nodeView]
	// views counts them.
	views atomic.Int64

	mu sync.Mutex
	// Guarded by mu. byName is nil until the first list, and after the right to read nodes is lost.
	byName    map[string]keptNode
	forbidden bool
	ceilings  []landing.Ceiling
	// nodePools: the ceilings have all of Karpenter's NodePools.
	nodePools bool

	// absent are nodes that do not exist although pods are bound to them.
	absent absentNodes

	// pools is the configuration of pools, declared are their shapes; both never change.
	pools    landing.Config
	declared []landing.Node

	// stale: more than what pods take of nodes differs from the last view. Guarded by mu.
	stale bool
	// use is what pods take of the nodes; only the goroutine that publishes views reads it.
	use nodeUse

	fits fitCache
}

// keptNode is a node with its class, which is expensive to compute.
type keptNode struct {
	landing.Node
	// object is set for nodes with GPUs; it never changes.
	object *corev1.Node
	// going is what says that the node is about to go, or nil; it never changes. goes is when it was first certain, by
	// this process; zero if it is not.
	going *departure.Notice
	goes  time.Time
	// reclaimed is when this process first saw that the cloud takes the machine back; zero if it does not.
	reclaimed time.Time
}

// same reports whether nothing that is kept differs.
func (k *keptNode) same(other *keptNode) bool {
	sameEnd := k.going == other.going || k.going != nil && other.going != nil && *k.going == *other.going
	return sameEnd && k.Node.Equal(other.Node)
}

func kept(node landing.Node) keptNode { return keptNode{Node: node.Classed()} }

// forGPUs returns what the node shows about its GPUs.
func (k *keptNode) forGPUs() sharing.NodeObject {
	if k.object == nil {
		return k.Object()
	}
	return decode.ForGPUs(k.object)
}

// keep converts a node as it is now. The caller does not hold mu.
func (n *nodes) keep(object *corev1.Node) keptNode {
	reader := n.fits.reader
	reader.At = time.Now()
	node := kept(decode.ForPodFit(reader, object))
	if node.GPUs != nil {
		node.object = object
	}
	n.mu.Lock()
	reclaimed := n.byName[object.Name].reclaimed
	n.mu.Unlock()
	if reclaimed.IsZero() {
		reclaimed = reader.At
	}
	if node.going = decode.Departure(object, reclaimed); node.going != nil && node.going.Reclaimed {
		node.reclaimed = reclaimed
	}
	return node
}

// nodeView is what is known at one moment; it never changes.
type nodeView struct {
	// nodes is sorted by name; it means nothing unless known is set.
	nodes []landing.Node
	known bool
	// kept are the same nodes, without what pods take of them.
	kept []keptNode
	// badGPUs are the signs of bad GPUs.
	badGPUs badGPUs
	// facts is equal for views that differ only in what pods take of nodes.
	facts int64
	// used is what pods take of the nodes, by name; nil while pods are unknown.
	used map[string]usedNode
	// unrecorded are nodes with a pod that uses part of a card of which no annotation says which it is.
	unrecorded []*landing.Node
	// podsForbidden: this process may not read the pods of all namespaces.
	podsForbidden bool
	// claimsForbidden: this process may not read ResourceSlices or ResourceClaims.
	claimsForbidden bool
	claims          dra.Claims
	// stock is the nodes as they are free for pods, and all pools. Without the right to read nodes it has the pools
	// alone; it is nil while neither is known.
	stock *landing.Nodes
	// forbidden: this process may not read nodes.
	forbidden bool
	// whole: the API server has responded about nodes, pods and devices.
	whole bool
}

func newNodes(client reflector.Client[*corev1.NodeList], log *slog.Logger, changed func()) *nodes {
	return &nodes{client: client, log: log, changed: changed, dirty: make(chan struct{}, 1), fits: newFitCache()}
}

// configure sets how nodes are read and what is configured about pools. Call it before Start.
func (n *nodes) configure(reader sharing.Reader, pools landing.Config) {
	n.fits.reader, n.pools, n.declared = reader, pools, pools.Shapes(reader)
}

// readUse makes views include what pods take of the nodes, and ResourceClaims of their devices. Call it before Start.
func (n *nodes) readUse(pods podClient, devices *nodeDevices) {
	n.use.pods, n.use.devices = newNodePods(pods, n.log, n.touchUse), devices
}

// setCeilings sets how far pools can grow, and whether that has all of Karpenter's NodePools.
func (n *nodes) setCeilings(ceilings []landing.Ceiling, nodePools bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	same := nodePools == n.nodePools && reflect.DeepEqual(ceilings, n.ceilings)
	n.ceilings, n.nodePools = ceilings, nodePools
	if !same && (n.byName != nil || n.forbidden) {
		n.touch()
	}
}

// Start reads nodes until ctx ends.
func (n *nodes) Start(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { n.publish(ctx) })
	source := reflector.Of("nodes", &corev1.Node{}, n.client, metav1.ListOptions{}, n.log)
	source.Forbidden, source.Failed = n.forbid, n.failed
	source.Into(ctx, &reflector.Store[*corev1.Node]{
		Put: n.update, Remove: n.remove, ReplaceAll: n.replace, Strip: decode.Strip,
	})
	wg.Wait()
	return nil
}

// publish makes a new view at once when something changed, and then not again before nodesPause. If only pods changed,
// the next cycle of each RayCluster uses it, which comes soon: pods of a large cluster change all the time.
func (n *nodes) publish(ctx context.Context) {
	var facts *nodeView
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.dirty:
		}
		n.mu.Lock()
		stale := n.stale
		n.stale = false
		n.mu.Unlock()
		if stale || facts == nil {
			facts = n.viewNow()
		}
		n.view.Store(n.withUse(facts))
		if stale {
			n.changed()
		}
		if !reflector.Sleep(ctx, nodesPause) {
			return
		}
	}
}

// viewNow returns what is known now. It visits all nodes, once for all RayClusters.
func (n *nodes) viewNow() *nodeView {
	n.mu.Lock()
	known, forbidden, ceilings, nodePools := n.byName != nil, n.forbidden, n.ceilings, n.nodePools
	sorted := slices.SortedFunc(
		maps.Values(n.byName),
		func(a, b keptNode) int { return strings.Compare(a.Name, b.Name) },
	)
	n.mu.Unlock()
	shapes := slices.Clone(n.declared) // with what DeviceClasses may supply there
	if n.use.devices != nil {
		supply := n.use.devices.onNewNodes()
		for i := range shapes {
			supply.AddTo(&shapes[i])
		}
	}
	if !known {
		view := &nodeView{forbidden: forbidden}
		if forbidden {
			view.stock = n.stockOf(nil, shapes, ceilings, nodePools)
		}
		return view
	}
	view := &nodeView{
		known: true, nodes: make([]landing.Node, len(sorted)), kept: sorted,
		facts: n.views.Add(1),
	}
	if n.use.devices != nil {
		view.claims = n.use.devices.claims()
	}
	for i := range sorted {
		if view.nodes[i] = sorted[i].Node; n.use.devices == nil {
			continue
		}
		if n.addDevices(&view.nodes[i], &sorted[i]); !view.nodes[i].Equal(sorted[i].Node) {
			view.nodes[i] = view.nodes[i].Classed()
		}
	}
	if before := n.view.Load(); before != nil {
		view.badGPUs = before.badGPUs
	}
	view.badGPUs = view.badGPUs.of(view.nodes, time.Now())
	view.stock = n.stockOf(view.nodes, shapes, ceilings, nodePools)
	return view
}

func (n *nodes) stockOf(nodes, shapes []landing.Node, ceilings []landing.Ceiling, nodePools bool) *landing.Nodes {
	return landing.NodesOf(nodes, landing.Pools{
		Rooms: landing.Rooms(nodes, n.pools, ceilings), Shapes: shapes, Complete: n.pools.Complete,
		NodePools: nodePools, PoolLabel: n.fits.reader.PoolLabel,
	})
}

// addDevices reads the GPUs of a node with the devices that ResourceSlices offer there, and adds what these supply.
// What claims have of the devices is use of the node, like what pods take.
func (n *nodes) addDevices(node *landing.Node, from *keptNode) {
	on := n.use.devices.on(node.Name)
	if len(on.list) > 0 {
		object := from.forGPUs()
		object.Devices = slices.Clone(on.list)
		for i := range object.Devices {
			object.Devices[i].Allocated = nil
		}
		reader := n.fits.reader
		reader.At = time.Now()
		node.GPUs = decode.GPUsOf(reader, object)
	}
	on.supply.AddTo(node)
}

// touch requests a new view of nodes and pools, and cycles of all RayClusters. The caller holds mu.
func (n *nodes) touch() {
	n.stale = true
	n.touchUse()
}

// touchDevices requests a view of what devices supply now, and what claims take of it.
func (n *nodes) touchDevices(facts bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stale = n.stale || facts && (n.byName != nil || n.forbidden)
	n.touchUse()
}

// touchUse requests a view of what pods take of nodes now.
func (n *nodes) touchUse() {
	select {
	case n.dirty <- struct{}{}:
	default:
	}
}

// update keeps a node. A heartbeat of the kubelet, at least every five minutes, changes nothing, unless data of the
// node has expired.
func (n *nodes) update(node *corev1.Node) {
	now := n.keep(node)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.absent.unread = false
	n.put(now)
}

// put keeps a node, and requests a new view if the node changed. The caller holds mu.
func (n *nodes) put(now keptNode) {
	before, known := n.byName[now.Name]
	if n.byName == nil {
		n.byName = map[string]keptNode{}
	}
	n.nodeSeen(now.Name)
	if now.going != nil && now.going.Certain {
		if now.goes = before.goes; now.goes.IsZero() {
			now.goes = time.Now()
		}
	}
	n.byName[now.Name] = now // the object may say the same at a later time
	if !known || !before.same(&now) {
		n.touch()
	}
}

// remove forgets a node.
func (n *nodes) remove(node *corev1.Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.absent.unread = false
	if _, known := n.byName[node.Name]; known {
		delete(n.byName, node.Name)
		n.nodeDeleted(node.Name)
		n.touch()
	}
}

// replace takes a whole list: the first one, or the one after a watch broke.
func (n *nodes) replace(list []*corev1.Node, _ string) {
	fresh := make(map[string]keptNode, len(list))
	for _, node := range list {
		fresh[node.Name] = n.keep(node)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	same := n.byName != nil && maps.EqualFunc(n.byName, fresh, func(a, b keptNode) bool { return a.same(&b) })
	for name := range n.byName {
		if _, there := fresh[name]; !there {
			n.nodeDeleted(name)
		}
	}
	for name := range fresh {
		n.nodeSeen(name)
	}
	n.byName, n.forbidden, n.absent.unread = fresh, false, false
	if !same {
		n.touch()
	}
}

// forbid notes that this process may not read nodes, and forgets the known ones, which would become out of date.
func (n *nodes) forbid(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.forbidden {
		return
	}
	n.log.Info("nodes are forbidden", "reason", err)
	n.byName, n.forbidden, n.absent = nil, true, absentNodes{}
	n.touch()
}
