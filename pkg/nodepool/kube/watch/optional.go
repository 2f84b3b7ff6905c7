package watch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/ceilings"
	"heliostat.dev/heliostat/pkg/nodepool/kube/events"
	"heliostat.dev/heliostat/pkg/nodepool/kube/namespaces"
	"heliostat.dev/heliostat/pkg/nodepool/kube/nodeobject"
	"heliostat.dev/heliostat/pkg/nodepool/kube/timing"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// Optional holds what a deployment may or may not have the right to read: nodes with their pods and devices, the
// ceilings of their pools, NodeClaims, Events of node autoscalers and namespaces. The caches that the manager waits for
// do not contain them: without a right, everything else works, and a finding says what is unknown.
type Optional struct {
	nodes      *nodes
	ceilings   *ceilings.Watch
	claims     *claimWatch
	events     *events.Autoscalers
	nodeEvents *events.Nodes
	namespaces *namespaces.Watch
}

// Config says what an Optional reads and how.
type Config struct {
	Core      corev1client.CoreV1Interface
	Dynamic   dynamic.Interface
	Discovery discovery.ServerResourcesInterface
	// Namespaces are those whose RayClusters are served; empty means all.
	Namespaces []string
	// NodeAutoscalers are Event sources of node autoscalers in addition to the known ones.
	NodeAutoscalers []string
	// StatusNamespace is where the Cluster Autoscaler writes its status.
	StatusNamespace string
	// GPUs says how nodes are read, and Pools what is configured about their pools.
	GPUs  sharing.Reader
	Pools landing.Config
	// Changed is called after something changed for the RayClusters of a namespace, or of all for "".
	Changed func(namespace string)
	Logger  *slog.Logger
}

// New prepares the reads; Start begins them.
func New(c Config) *Optional {
	o := &Optional{nodes: newNodes(c.Core.Nodes(), c.Logger, func() { c.Changed("") })}
	o.nodes.configure(c.GPUs, c.Pools)
	o.nodes.readUse(c.Core.Pods(metav1.NamespaceAll), newNodeDevices(
		c.Dynamic,
		serves(c.Discovery, resourcev1.SchemeGroupVersion.String(), "resourceslices"),
		c.Logger,
		o.nodes.touchDevices,
	))
	o.ceilings = ceilings.New(
		c.Core.ConfigMaps(c.StatusNamespace),
		c.Dynamic.Resource(nodeobject.NodePoolResource),
		c.Logger,
		o.nodes.setCeilings,
	)
	o.events = events.NewAutoscalers(func(namespace string) events.Client { return c.Core.Events(namespace) },
		c.Namespaces, c.NodeAutoscalers, c.Logger)
	o.nodeEvents = events.NewNodes(c.Core.Events(metav1.NamespaceDefault), c.Logger)
	o.claims = newClaimWatch(
		c.Dynamic.Resource(nodeobject.NodeClaimResource),
		serves(
			c.Discovery,
			nodeobject.NodeClaimResource.GroupVersion().String(),
			nodeobject.NodeClaimResource.Resource,
		),
		c.Logger,
	)
	o.claims.failedLaunch = o.ceilings.ReadAgain
	o.namespaces = namespaces.New(c.Core.Namespaces(), c.Namespaces, c.Logger, c.Changed)
	return o
}

// Start reads until ctx ends.
func (o *Optional) Start(ctx context.Context) error {
	var reads sync.WaitGroup
	for _, read := range []interface{ Start(context.Context) error }{
		o.nodes, o.nodes.use.pods, o.nodes.use.devices, o.ceilings, o.claims, o.events, o.nodeEvents,
		o.namespaces,
	} {
		reads.Go(func() { _ = read.Start(ctx) }) // they end with ctx alone
	}
	reads.Wait()
	return nil
}

// NeedLeaderElection reports false: a candidate for leadership reads as well.
func (o *Optional) NeedLeaderElection() bool { return false }

// AddTo adds to a cluster what is known of its nodes, of the nodes to come for its pods and of its namespace, with
// findings about what is unknown.
func (o *Optional) AddTo(cluster *nodepool.Cluster) {
	poolsSince := o.poolsSince()      // before the pools are read, so that these are as new or newer
	o.claims.addTo(cluster, o.events) // first: no group lacks a node while one is being added
	o.nodes.addTo(cluster)
	o.ceilings.AddTo(cluster)
	o.events.AddTo(cluster)
	o.claims.addFailures(cluster, poolsSince)
	o.markGoing(cluster) // last: it reads which nodes are gone
	o.namespaces.AddTo(cluster)
}

// poolsSince returns a moment after which no NodePool has come that the pools of clusters lack; zero if NodePools are
// not all known.
func (o *Optional) poolsSince() time.Time {
	if at := o.ceilings.NodePoolsSince(); o.nodes.showsNodePools() {
		return at
	}
	return time.Time{}
}

// BoundsUsed returns how much of each bound is in use, from 0 to 1: of the Events of the fullest source, and of the
// names of nodes and namespaces that are gone.
func (o *Optional) BoundsUsed() map[string]float64 {
	return map[string]float64{
		"events": o.events.Used(), "absent_nodes": o.nodes.absentUsed(), "absent_namespaces": o.namespaces.AbsentUsed(),
	}
}

// AddNamespace adds to a cluster what its namespace sets.
func (o *Optional) AddNamespace(cluster *nodepool.Cluster) { o.namespaces.AddTo(cluster) }

// Await returns when the API server has responded about namespaces, pods and devices once, or after a while. The first
// cycles then know the modes that namespaces set, and do not count nodes as empty.
func (o *Optional) Await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, timing.RequestTimeout)
	defer cancel()
	o.namespaces.Await(ctx)
	o.nodes.awaitUse(ctx)
}

// RefreshNamespace reads one namespace from the API server.
func (o *Optional) RefreshNamespace(ctx context.Context, name string) {
	o.namespaces.Refresh(ctx, name)
}

// Forget drops what is kept about a RayCluster that is gone.
func (o *Optional) Forget(key nodepool.ClusterKey) {
	o.nodes.fits.drop(key)
	o.claims.forget(key)
}
