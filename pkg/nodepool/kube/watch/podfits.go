package watch

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/binpack"
	"heliostat.dev/heliostat/pkg/nodepool/kube/finding"
	"heliostat.dev/heliostat/pkg/nodepool/kube/rayobject"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/nodepool/pools"
	"heliostat.dev/heliostat/pkg/nodepool/raylabels"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Codes of findings about nodes.
const (
	// WorkerNodeLost: a worker is bound to a node that is gone or not ready.
	WorkerNodeLost = "worker-node-lost"
	// NodesForbidden: this process may not read nodes, so the two above are not detected.
	NodesForbidden = "nodes-forbidden"
	// PodsUnknown: the pods of all namespaces are unknown, so nodes count as empty.
	PodsUnknown = "pods-unknown"
)

// fitCache keeps which nodes fit the groups of each RayCluster while neither the spec nor the nodes change: a cycle
// runs up to ten times a second, and there may be thousands of nodes.
type fitCache struct {
	reader nodegpu.Reader // how nodes are read; never changes

	mu    sync.Mutex
	byKey map[nodepool.ClusterKey]clusterFits // guarded by mu
}

type clusterFits struct {
	uid        string
	generation int64
	facts      int64
	list       []podfit.Fit
	gpus       []*nodepool.ReportedGPUs
	slices     [][]podfit.SliceAnswer
	// pools are the pods that each group could have in each pool, without Bound.
	pools [][]pools.Pods
	// announces is what is known about the labels of each group's new pods.
	announces [][]raylabels.Announced
	// verdicts say where a pod of each group can run.
	verdicts []pools.Verdict
	// kinds are the groups' pods. places is where they may run, and pods are the kinds with the constraints between
	// pods, by the stock and the own pods that they were made of.
	kinds  []pools.Kind
	places []binpack.Place
	pods   []binpack.Pod
	stock  *pools.Stock
	own    ownWorkers
	// visible are the nodes on which each group's pods could see GPUs that they did not request.
	visible []visibleOn
}

// visibleOn is the first of some nodes, and their number.
type visibleOn struct {
	first string
	count int
}

func newFitCache() fitCache { return fitCache{byKey: map[nodepool.ClusterKey]clusterFits{}} }

// of returns what the nodes mean for the groups of a cluster, in the order of its groups.
func (l *fitCache) of(cluster *nodepool.Cluster, view *nodeView) clusterFits {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.byKey[cluster.Key]; known.facts == view.facts && known.uid == cluster.UID &&
		known.generation == cluster.Generation {
		return known
	}
	now := clusterFits{uid: cluster.UID, generation: cluster.Generation, facts: view.facts}
	for i := range cluster.Groups {
		group := &cluster.Groups[i]
		places := view.places.For(&group.Pod)
		judge := pools.Judge{
			Rooms: view.rooms, Places: places, Complete: view.complete, NodePools: view.nodePools,
			PoolLabel: l.reader.PoolLabel,
		}
		now.verdicts = append(now.verdicts, judge.Of(&group.Pod))
		now.list = append(now.list, group.Pod.Fit(places))
		now.gpus = append(now.gpus, nodepool.Reported(l.reader, group, places))
		now.slices = append(now.slices, podfit.SlicesOf(l.reader, &group.Pod, places))
		byPool := pools.PodsOf(&group.Pod, view.rooms, places)
		if view.nodePools {
			byPool = pools.WithDeletedPool(&group.Pod, byPool, view.rooms)
		}
		now.pools = append(now.pools, byPool)
		now.announces = append(now.announces, raylabels.Of(l.reader, group.NewWorker(cluster.RayVersion),
			raylabels.Nodes{Places: places, Rooms: view.rooms, Pods: byPool}))
		now.kinds = append(now.kinds, view.stock.KindOf(group.Name, &group.Pod))
		first, count := podfit.SeesGPUs(l.reader, &group.Pod, places)
		now.visible = append(now.visible, visibleOn{first, count})
	}
	l.byKey[cluster.Key] = now
	return now
}

func (l *fitCache) drop(key nodepool.ClusterKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byKey, key)
}

// placesOf returns where pods of the cluster's groups may run. Its own workers count where nobody says what pods take
// of their node.
func (l *fitCache) placesOf(
	cluster *nodepool.Cluster, view *nodeView, known clusterFits,
) ([]binpack.Place, []binpack.Pod) {
	own, same := known.own.now(cluster.Workers)
	cluster.Stock, cluster.OnNodes = view.stock, own.byNode
	if known.stock == view.stock && same {
		return known.places, known.pods
	}
	known.stock, known.own = view.stock, own
	known.places, known.pods = view.stock.Places(known.kinds, own.byNode)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byKey[cluster.Key] = known
	return known.places, known.pods
}

// addTo adds to a cluster what the nodes say about it, and nothing before there is a view.
func (n *nodes) addTo(cluster *nodepool.Cluster) {
	view := n.view.Load()
	if view == nil || !view.known {
		for i := range cluster.Groups {
			group := &cluster.Groups[i]
			group.Slices = podfit.SlicesOf(n.fits.reader, &group.Pod, nil)
			group.Announces = raylabels.Of(n.fits.reader, group.NewWorker(cluster.RayVersion), raylabels.Nodes{})
		}
	}
	if view == nil {
		return
	}
	report := &finding.List{Object: "RayCluster " + cluster.Key.String()}
	switch {
	case view.forbidden:
		report.Add(
			raydemand.Info,
			NodesForbidden,
			"",
			"",
			"this process may not list and watch nodes, so it cannot detect where the groups could run or that a "+
				"worker's node is lost",
			"grant it list and watch on nodes by a ClusterRole",
		)
	case view.known:
		known := n.fits.of(cluster, view)
		places, pods := n.fits.placesOf(cluster, view, known)
		cluster.Pools, cluster.Places = view.rooms, places
		for i, fit := range known.list {
			group := &cluster.Groups[i]
			group.Fit, group.Reported, group.Slices = &fit, known.gpus[i], known.slices[i]
			group.PoolPods, group.Announces = slices.Clone(known.pools[i]), known.announces[i]
			group.Judge(known.verdicts[i], time.Now())
			if found, no := group.NoNode(); no {
				found.Object = report.Object
				report.All = append(report.All, found)
			}
			group.Kind = &pods[i]
			reportSlices(report, group, known.visible[i])
		}
		if view.podsForbidden {
			reportPodsUnknown(report, cluster)
		}
		n.markGone(cluster, view)
		reportWorkers(report, cluster, view)
	}
	cluster.Findings = append(cluster.Findings, report.All...)
}

// reportSlices reports resources that mean different things on different nodes, and nodes where pods could see the GPUs
// of others.
func reportSlices(report *finding.List, group *nodepool.WorkerGroup, visible visibleOn) {
	for _, slice := range group.Slices {
		if finding, differ := slice.DifferFinding(); differ {
			rayobject.ReportTemplate(report, group, finding)
		}
	}
	if visible.count > 0 && group.Max > 0 && !group.Suspended {
		rayobject.ReportTemplate(report, group, podfit.VisibleFinding(visible.first, visible.count))
	}
}

// reportWorkers reports workers on a node that is gone or not ready, and counts each group's pods on the nodes of each
// pool.
func reportWorkers(report *finding.List, cluster *nodepool.Cluster, view *nodeView) {
	groups := make(map[string]*nodepool.WorkerGroup, len(cluster.Groups))
	for i := range cluster.Groups {
		groups[cluster.Groups[i].Name] = &cluster.Groups[i]
	}
	for i := range cluster.Workers {
		w := &cluster.Workers[i]
		if w.Node == "" || w.Failed {
			continue
		}
		node, there := view.find(w.Node)
		if !there || !node.Ready {
			report.All = append(report.All, nodeLost(cluster.Key, w, there))
		}
		w.Counted = there && view.counts(cluster.Key.Namespace, w)
		if group := groups[w.Group]; w.Counted && group != nil && !w.Terminating {
			group.CountBound(node)
		}
	}
}

// nodeLost returns the finding about a worker on a node that is gone or not ready. It includes terminating pods:
// without its kubelet a pod does not end.
func nodeLost(key nodepool.ClusterKey, w *nodepool.Worker, there bool) raydemand.Finding {
	state := "is gone"
	if there {
		state = "is not ready"
	}
	return raydemand.Finding{
		Code:     WorkerNodeLost,
		Severity: raydemand.Warning,
		Object:   "Pod " + key.Namespace + "/" + w.Pod,
		Field:    "spec.nodeName",
		Seen:     w.Node,
		Why: fmt.Sprintf(
			"the node %s, so the worker of group %s may be lost with its work, and its pod cannot end by itself",
			state,
			w.Group,
		),
		Fix: "check the node; if it will not come back, delete its Node object, and Kubernetes removes its pods",
	}
}
