package nodes

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// nodeUse is what pods take of each node. It computes that again only for nodes that changed or whose pods changed.
type nodeUse struct {
	pods    *nodePods
	devices *nodeDevices
	// byNode is nil while pods are unknown.
	byNode map[string]usedNode
}

// usedNode is what the pods and the devices of these versions take of a node.
type usedNode struct {
	object  *corev1.Node
	version useVersion
	use     *landing.Use
	// workers are the worker pods among the node's pods, sorted.
	workers []*decode.BoundPod
}

type useVersion struct{ pods, devices int64 }

// count sets what these pods take of the node, and claims of its devices.
func (u *usedNode) count(
	reader sharing.Reader, node *keptNode, pods []*decode.BoundPod, devices devicesOfNode,
) {
	object := node.forGPUs()
	object.Devices = devices.list
	u.use = decode.Use(reader, object, pods)
	supplied := node.Node
	supplied.Use = u.use
	devices.supply.AddTo(&supplied)
	u.workers = slices.DeleteFunc(pods, func(pod *decode.BoundPod) bool { return pod.Group == "" })
}

// refresh computes what pods take of these nodes now. The reader's time is the present.
func (u *nodeUse) refresh(reader sharing.Reader, nodes []keptNode) {
	versions := u.pods.versions()
	if versions == nil {
		u.byNode = nil
		return
	}
	devices, _ := u.devices.now()
	fresh := make(map[string]usedNode, len(nodes))
	for i := range nodes {
		node := &nodes[i]
		used, known := u.byNode[node.Name]
		version := useVersion{versions[node.Name], devices[node.Name].version}
		if !known || used.object != node.object || used.version != version {
			used = usedNode{object: node.object, version: version}
			used.count(reader, node, u.pods.on(node.Name), devices[node.Name])
		}
		fresh[node.Name] = used
	}
	u.byNode = fresh
}

// on returns what pods take of a node, nil while pods are unknown.
func (u *nodeUse) on(node string) *landing.Use { return u.byNode[node].use }

// awaitUse returns when a view is whole, or after a while.
func (n *nodes) awaitUse(ctx context.Context) {
	_ = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, reflector.RequestTimeout, true,
		func(context.Context) (bool, error) {
			view := n.view.Load()
			return view != nil && view.whole, nil
		})
}

// withUse returns the view with what pods take of its nodes now. It does not change the given view, and shares
// everything else with it.
func (n *nodes) withUse(facts *nodeView) *nodeView {
	view := *facts
	if n.use.pods == nil {
		return &view
	}
	view.whole = n.use.pods.answered() && n.use.devices.answered() && (facts.known || facts.forbidden)
	if !facts.known {
		return &view
	}
	reader := n.fits.reader
	reader.At = time.Now()
	n.use.refresh(reader, facts.kept)
	view.nodes = slices.Clone(facts.nodes)
	view.podsForbidden, view.claimsForbidden = n.use.pods.mayNotRead(), n.use.devices.mayNotRead()
	for i := range view.nodes {
		node := &view.nodes[i]
		if node.Use = n.use.on(node.Name); node.Use != nil && node.Use.Unrecorded != nil && node.GPUs != nil {
			view.unrecorded = append(view.unrecorded, node)
		}
	}
	view.stock, view.used = facts.stock.With(view.nodes), n.use.byNode
	return &view
}

// counts reports whether what pods take of a worker's node includes the worker. The worker comes from another watch,
// which may be ahead: a pod that counts as bound before it takes its part of the node would leave room for one more.
func (v *nodeView) counts(namespace string, w *nodepool.Worker) bool {
	used, known := v.used[w.Node]
	if !known {
		return true
	}
	_, counts := slices.BinarySearchFunc(used.workers, w.Pod, func(pod *decode.BoundPod, name string) int {
		return pod.Compare(namespace, name)
	})
	return counts
}

// reportUnknownUse reports what this process may not read of the use of nodes, if it matters: pods to a group that fits
// a node, and claims to one that requests GPUs, too.
func reportUnknownUse(report *decode.Report, cluster *nodepool.Cluster, view *nodeView) {
	groups := cluster.Groups
	switch {
	case view.podsForbidden:
		if slices.ContainsFunc(groups, func(g nodepool.WorkerGroup) bool { return g.MayLand() }) {
			report.All = append(report.All, unread(cluster.Key, PodsUnknown, ""))
		}
	case view.claimsForbidden &&
		slices.ContainsFunc(groups, func(g nodepool.WorkerGroup) bool { return g.MayLandOnGPUs() }):
		report.All = append(report.All, unread(cluster.Key, ClaimsUnknown, ""))
	}
}
