package nodes

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/dra"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// WorkerNodeLost is the code of the finding that a worker is bound to a node that is gone or not ready.
const WorkerNodeLost = "worker-node-lost"

// fitCache keeps which nodes fit the groups of each RayCluster while neither the spec nor the nodes change: a cycle
// runs up to ten times a second, and there may be thousands of nodes. RayClusters with equal groups share the answers.
type fitCache struct {
	reader sharing.Reader // how nodes are read; never changes

	mu    sync.Mutex
	byKey map[nodepool.ClusterKey]clusterFits // guarded by mu
	// shapes are by the number of the nodes' facts, places by the nodes as they are free.
	shapes shared[int64, landing.Key, shapeFits]
	places shared[*landing.Nodes, landing.Key, []landing.Place]
}

type clusterFits struct {
	uid        string
	generation int64
	facts      int64
	// classes are those of the groups' shapes, shapes what the nodes mean for them.
	classes []landing.Key
	shapes  []*shapeFits
	gpus    []*nodepool.ReportedGPUs
	// announces is what is known about the labels of each group's new pods.
	announces [][]landing.Announced
	// kinds are the groups' pods. places is where they may run, and pods are the kinds with the constraints between
	// pods, by the stock that they were made of.
	kinds  []landing.Kind
	places *[]landing.Place
	pods   []landing.Pod
	stock  *landing.Nodes
}

// shapeFits is what the nodes mean for pods of one shape. It is immutable.
type shapeFits struct {
	landing.Answer
	slices []landing.Slice
	// fitting are the nodes and declared shapes that could hold a pod.
	fitting []landing.Node
	// visible are the nodes on which pods could see GPUs that they did not request.
	visible visibleOn
	// problems are what is wrong with the nodes whose GPUs the pods would use.
	problems []raydemand.Finding
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
	known := l.byKey[cluster.Key]
	same := known.uid == cluster.UID && known.generation == cluster.Generation && known.facts == view.facts
	// What LimitRanges add to requests changes without the RayCluster.
	if same && slices.EqualFunc(known.kinds, cluster.Groups, func(kind landing.Kind, g nodepool.WorkerGroup) bool {
		return maps.Equal(kind.Shape.Requests, g.Pod.Requests)
	}) {
		return known
	}
	now := clusterFits{uid: cluster.UID, generation: cluster.Generation, facts: view.facts, classes: classesOf(cluster)}
	for i := range cluster.Groups {
		group := &cluster.Groups[i]
		shape := l.shapes.of(view.facts, now.classes[i], func() shapeFits { return l.shapeOn(&group.Pod, view) })
		now.shapes = append(now.shapes, shape)
		now.gpus = append(now.gpus, nodepool.Reported(l.reader, group, shape.fitting))
		now.announces = append(now.announces,
			group.NewWorker(cluster.RayVersion).Announces(l.reader, shape.fitting, view.stock.Rooms, shape.Pods))
		kind := view.stock.KindOf(group.Name, &group.Pod)
		kind.Class = now.classes[i]
		now.kinds = append(now.kinds, kind)
	}
	l.byKey[cluster.Key] = now
	return now
}

func classesOf(cluster *nodepool.Cluster) []landing.Key {
	classes := make([]landing.Key, len(cluster.Groups))
	for i := range cluster.Groups {
		classes[i] = landing.KeyOf(&cluster.Groups[i].Pod)
	}
	return classes
}

// shapeOn returns what the nodes mean for pods of a shape.
func (l *fitCache) shapeOn(shape *landing.PodShape, view *nodeView) shapeFits {
	places := view.stock.For(shape)
	now := shapeFits{Answer: view.stock.Where(shape)}
	for _, node := range shape.FittingNodes(places) {
		now.fitting = append(now.fitting, *node)
	}
	now.slices = landing.SlicesOf(l.reader, shape, now.fitting)
	now.problems = shape.NodeProblems(places)
	now.visible.first, now.visible.count = landing.SeesGPUs(l.reader, shape, now.fitting)
	return now
}

func (l *fitCache) drop(key nodepool.ClusterKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byKey, key)
}

// placesOf returns where pods of the cluster's groups may run.
func (l *fitCache) placesOf(
	cluster *nodepool.Cluster, view *nodeView, known clusterFits,
) ([]landing.Place, []landing.Pod) {
	cluster.Stock = view.stock
	if known.stock == view.stock {
		return *known.places, known.pods
	}
	asked := view.stock.Ask(known.kinds)
	known.stock, known.pods = view.stock, asked.Pods
	if key, alike := asked.Key(); alike {
		known.places = l.places.of(view.stock, key, asked.Places)
	} else {
		places := asked.Places()
		known.places = &places
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byKey[cluster.Key] = known
	return *known.places, known.pods
}

// addTo adds to a cluster what the nodes say about it, and nothing before there is a view.
func (n *nodes) addTo(cluster *nodepool.Cluster) {
	view := n.view.Load()
	report := &decode.Report{Object: "RayCluster " + cluster.Key.String()}
	defer func() { cluster.Findings = append(cluster.Findings, report.All...) }()
	var claims dra.Claims
	if view != nil {
		claims = view.claims
	}
	report.All = append(report.All, claims.AddToGroups(cluster)...)
	if shared := cluster.Head.Shape; shared != nil {
		head := *shared
		claims.AddTo(cluster.Key.Namespace, &head)
		cluster.Head.Shape = &head
	}
	if view == nil || !view.known {
		for i := range cluster.Groups {
			group := &cluster.Groups[i]
			group.Slices = landing.SlicesOf(n.fits.reader, &group.Pod, nil)
			group.Announces = group.NewWorker(cluster.RayVersion).Announces(n.fits.reader, nil, nil, nil)
		}
	}
	if view == nil {
		return
	}
	switch {
	case view.forbidden:
		report.All = append(report.All, unread(cluster.Key, NodesForbidden, ""))
		n.addProof(report, cluster, view)
	case view.known:
		n.addKnown(report, cluster, view)
	}
}

// addKnown adds what the nodes mean for the groups and the workers.
func (n *nodes) addKnown(report *decode.Report, cluster *nodepool.Cluster, view *nodeView) {
	known := n.fits.of(cluster, view)
	places, pods := n.fits.placesOf(cluster, view, known)
	cluster.Pools, cluster.Places = view.stock.Rooms, places
	for i, shape := range known.shapes {
		group := &cluster.Groups[i]
		group.Reported, group.Slices = known.gpus[i], shape.slices
		group.PoolPods, group.Announces = slices.Clone(shape.Pods), known.announces[i]
		group.Judge(shape.Answer, time.Now())
		if found, no := group.NoNode(); no {
			found.Object = report.Object
			report.All = append(report.All, found)
		}
		group.Kind = &pods[i]
		reportSlices(report, group, shape.visible)
	}
	reportNodeProblems(report, cluster, known.shapes, view)
	reportUnknownUse(report, cluster, view)
	n.markGone(cluster, view)
	reportWorkers(report, cluster, view)
}

// addProof adds what pools prove about the groups although the nodes are unknown, such as maxNodes 0.
func (n *nodes) addProof(report *decode.Report, cluster *nodepool.Cluster, view *nodeView) {
	for i := range cluster.Groups {
		if found, no := cluster.Groups[i].JudgeUnseen(view.stock); no {
			found.Object = report.Object
			report.All = append(report.All, found)
		}
	}
}

// reportSlices reports resources that mean different things on different nodes, and nodes where pods could see the GPUs
// of others.
func reportSlices(report *decode.Report, group *nodepool.WorkerGroup, visible visibleOn) {
	for _, slice := range group.Slices {
		if finding, differ := slice.DifferFinding(); differ {
			decode.ReportTemplate(report, group, finding)
		}
	}
	if visible.count > 0 && group.Max > 0 && !group.Suspended {
		decode.ReportTemplate(report, group,
			landing.VisibleFinding(visible.first, visible.count, group.GPUs.Declared))
	}
}

// reportWorkers reports workers on a node that is gone or not ready, and counts each group's pods on the nodes of each
// pool.
func reportWorkers(report *decode.Report, cluster *nodepool.Cluster, view *nodeView) {
	groups := make(map[string]*nodepool.WorkerGroup, len(cluster.Groups))
	for i := range cluster.Groups {
		groups[cluster.Groups[i].Name] = &cluster.Groups[i]
	}
	for i := range cluster.Workers {
		w := &cluster.Workers[i]
		if w.Node == "" || w.Failed {
			continue
		}
		node := view.stock.Node(w.Node)
		there := node != nil
		if !there || !node.Ready {
			report.All = append(report.All, nodeLost(cluster.Key, w, there))
		}
		if there {
			w.Pool = node.Pool
		}
		counts := view.counts(cluster.Key.Namespace, w)
		w.Counted, w.Uncounted = there && counts, there && !counts
		if group := groups[w.Group]; w.Counted && group != nil && !w.Terminating {
			group.CountBound(node)
		}
	}
	if view.used == nil {
		for _, group := range groups {
			group.Bound = 0 // nodes count as empty, so that its pods take their places like those on their way
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
