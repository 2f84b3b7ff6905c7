package nodes

import (
	"context"
	"log/slog"
	"sync"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/dra"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// Watch holds nodes with their pods and devices, the ceilings of their pools, NodeClaims, and Events of node
// autoscalers. A deployment may not have the right to read them, so the caches that the manager waits for do not
// contain them: without a right, everything else works, and a finding says what is unknown.
type Watch struct {
	nodes    *nodes
	ceilings *ceilingWatch
	claims   *claimWatch
	events   *autoscalerEvents
}

// Config says what a Watch reads and how.
type Config struct {
	Core      corev1client.CoreV1Interface
	Dynamic   dynamic.Interface
	Discovery discovery.ServerResourcesInterface
	// Namespaces are those whose RayClusters are served; empty means all.
	Namespaces []string
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
func New(c Config) *Watch {
	w := &Watch{nodes: newNodes(c.Core.Nodes(), c.Logger, func() { c.Changed("") })}
	w.nodes.configure(c.GPUs, c.Pools)
	w.nodes.readUse(c.Core.Pods(metav1.NamespaceAll), newNodeDevices(
		deviceClientsOf(c.Dynamic),
		reflector.Serves(c.Discovery, resourcev1.SchemeGroupVersion.WithResource(dra.ResourceSlices)),
		c.Logger,
		w.nodes.touchDevices,
	))
	w.ceilings = newCeilingWatch(
		c.Core.ConfigMaps(c.StatusNamespace),
		c.Dynamic.Resource(decode.NodePoolResource),
		c.Logger,
		w.nodes.setCeilings,
	)
	w.events = newAutoscalerEvents(func(namespace string) eventClient { return c.Core.Events(namespace) },
		c.Namespaces, c.Logger)
	w.claims = newClaimWatch(
		c.Dynamic.Resource(decode.NodeClaimResource),
		reflector.Serves(c.Discovery, decode.NodeClaimResource),
		c.Logger,
	)
	return w
}

// Start reads until ctx ends.
func (w *Watch) Start(ctx context.Context) error {
	var reads sync.WaitGroup
	for _, read := range []interface{ Start(context.Context) error }{
		w.nodes, w.nodes.use.pods, w.nodes.use.devices, w.ceilings, w.claims, w.events,
	} {
		reads.Go(func() { _ = read.Start(ctx) }) // they end with ctx alone
	}
	reads.Wait()
	return nil
}

// AddTo adds to a cluster what is known of its nodes and of the nodes to come for its pods, with findings
// about what is unknown.
func (w *Watch) AddTo(cluster *nodepool.Cluster) {
	w.claims.addTo(cluster, w.events.LaunchFailed) // first: no group lacks a node while one is being added
	w.nodes.addTo(cluster)
	w.ceilings.AddTo(cluster)
	w.events.AddTo(cluster)
	w.markGoing(cluster) // last: it reads which nodes are gone
}

// Await returns when the API server has responded about pods and devices once, or after a while. The first cycles
// then do not count nodes as empty.
func (w *Watch) Await(ctx context.Context) {
	w.nodes.awaitUse(ctx)
}

// Forget drops what is kept about a RayCluster that is gone.
func (w *Watch) Forget(key nodepool.ClusterKey) {
	w.nodes.fits.drop(key)
	w.claims.forget(key)
}
