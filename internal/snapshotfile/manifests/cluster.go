// Package manifests reads the Kubernetes objects in a snapshot file: it turns the RayCluster, nodes, pods, devices and
// pools that a user pasted there into the cluster that the planner sees, and reports what is missing or repeated.
// Package kube/nodes does the same with the objects of a live API server.
//
// It does not open files, use clients, plan or print, and it does not know flags.
package manifests

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Cluster reads the RayCluster of a snapshot file, and adds what the file's nodes and pools say about its groups.
// Errors name the key.
func Cluster(reader sharing.Reader, doc snapshotfile.Document) (nodepool.Cluster, error) {
	for _, node := range slices.Sorted(maps.Keys(doc.TopologyLabels)) {
		label := sharing.TopologyLabel{Node: node, Ray: doc.TopologyLabels[node]}
		if err := decode.CheckTopologyLabel(label); err != nil {
			return nodepool.Cluster{}, fmt.Errorf(
				"topologyLabels: %w: want {\"nvidia.com/gpu.clique\": \"ray.io/gpu-domain\"}", err)
		}
		reader.TopologyLabels = append(slices.Clip(reader.TopologyLabels), label)
	}
	ranges, err := limits[corev1.LimitRange](doc.KubeLimitRanges, "kubeLimitRanges", "LimitRange")
	if err != nil {
		return nodepool.Cluster{}, err
	}
	quotas, err := limits[corev1.ResourceQuota](doc.KubeResourceQuotas, "kubeResourceQuotas", "ResourceQuota")
	if err != nil {
		return nodepool.Cluster{}, err
	}
	rayCluster, err := decode.ReadManifest(doc.RayCluster)
	if err != nil {
		return nodepool.Cluster{}, fmt.Errorf("rayCluster: %w: want the manifest of a RayCluster", err)
	}
	d, head := decode.Decode(reader, rayCluster), decode.HeadGroup(reader, rayCluster)
	inNamespace := slices.DeleteFunc(slices.Clone(ranges), func(in *corev1.LimitRange) bool {
		return in.Namespace != "" && in.Namespace != rayCluster.GetNamespace()
	})
	if len(inNamespace) > 0 {
		decode.UnderLimitRanges(rayCluster, &d, nil, inNamespace)
	}
	kube.Judge(rayCluster.Object, &d)
	cluster := decode.Join(d, nil)
	placed, err := placesOf(reader, doc)
	if err != nil {
		return cluster, err
	}
	cluster.Findings = append(cluster.Findings, placed.unreadable...)
	claims := placed.devices.Claims()
	claims.AddTo(cluster.Key.Namespace, &head.Pod)
	cluster.Findings = append(cluster.Findings, claims.AddToGroups(&cluster)...)
	for i := range cluster.Groups {
		placed.addTo(&cluster, &cluster.Groups[i])
	}
	cluster.Head.Resources, cluster.Head.Labels = head.Resources, head.Labels
	placed.addPlaces(&cluster, &head.Pod)
	cluster.Findings = append(cluster.Findings, placed.unused...)
	coming := &head.Pod
	if !nothingRuns(doc.Snapshot, cluster) {
		coming = nil
	}
	addQuotas(&cluster, quotas, doc.Nodes, coming)
	placed.podsUnknown(&cluster)
	placed.claimsUnknown(&cluster)
	return cluster, nil
}

// limits reads the LimitRanges or ResourceQuotas of the file. Those of other namespaces than the RayCluster's have no
// effect.
func limits[T any](raw json.RawMessage, key, kind string) ([]*T, error) {
	objects, err := objectsOf(raw, key, kind)
	if err != nil {
		return nil, err
	}
	all := make([]*T, len(objects))
	for i, object := range objects {
		all[i] = new(T)
		if unreadable := decode.TypedLimits(object, all[i]); len(unreadable) > 0 {
			return nil, fmt.Errorf("%s[%d]: %s", key, i, unreadable[0])
		}
	}
	return all, nil
}

// addQuotas adds the ResourceQuotas of the RayCluster's namespace. What they say is used includes its own workers.
func addQuotas(
	cluster *nodepool.Cluster, quotas []*corev1.ResourceQuota, nodes []planner.Node, head *landing.PodShape,
) {
	counted := *cluster
	for i := range nodes {
		counted.Workers = append(counted.Workers, nodepool.Worker{Group: nodes[i].Group})
	}
	decode.AddQuotas(&counted, slices.DeleteFunc(quotas, func(in *corev1.ResourceQuota) bool {
		return in.Namespace != "" && in.Namespace != cluster.Key.Namespace
	}), true, head)
	cluster.NamespaceQuotas = counted.NamespaceQuotas
}

// addTo adds to a group what the nodes and pools say about it, as far as they are known.
func (p places) addTo(cluster *nodepool.Cluster, g *nodepool.WorkerGroup) {
	g.Slices = landing.SlicesOf(p.reader, &g.Pod, p.nodes)
	worker := g.NewWorker(cluster.RayVersion)
	add := func(f raydemand.Finding) {
		f.Object = cmp.Or(f.Object, "RayCluster "+cluster.Key.String())
		cluster.Findings = append(cluster.Findings, f)
	}
	if !p.known {
		g.Announces = worker.Announces(p.reader, nil, nil, nil)
		// Pools prove something about a group although no node is known, such as maxNodes 0.
		if f, no := g.JudgeUnseen(p.stock); no {
			add(f)
		}
		if f, several := g.MIGInstancesFinding(); several {
			add(f)
		}
		return
	}
	answer := p.stock.Where(&g.Pod)
	g.PoolPods, g.Reported = answer.Pods, nodepool.Reported(p.reader, g, p.nodes)
	p.addBound(cluster.Key, g)
	g.Announces = worker.Announces(p.reader, p.nodes, p.stock.Rooms, g.PoolPods)
	g.Judge(answer, p.at)
	for _, f := range g.NumGPUsFindings(g.NumGPUs(nodepool.RayGPUs{})) {
		add(f)
	}
	ofTemplate := func(f raydemand.Finding) {
		f.Field = fmt.Sprintf("spec.workerGroupSpecs[%d].template.spec: %s", g.Index, f.Field)
		add(f)
	}
	for _, s := range g.Slices {
		if f, differ := s.DifferFinding(); differ {
			ofTemplate(f)
		}
	}
	if first, count := landing.SeesGPUs(p.reader, &g.Pod, p.nodes); count > 0 && g.Max > 0 && !g.Suspended {
		ofTemplate(landing.VisibleFinding(first, count, g.GPUs.Declared))
	}
	if f, no := g.NoNode(); no {
		add(f)
	}
}

// addPlaces adds where pods of the groups may run. The operator creates the head first, so while nothing runs, its pod
// comes before them on nodes that are all there are.
func (p places) addPlaces(cluster *nodepool.Cluster, head *landing.PodShape) {
	if !p.known {
		return
	}
	kinds := make([]landing.Kind, len(cluster.Groups))
	for i := range cluster.Groups {
		g := &cluster.Groups[i]
		kinds[i] = p.stock.KindOf(g.Name, &g.Pod)
	}
	if len(p.pods) == 0 && p.stock.Complete {
		kinds = append(kinds, p.stock.KindOf(nodepool.TheHead, head))
	}
	free, pods := p.stock.Places(kinds)
	for i := range cluster.Groups {
		cluster.Groups[i].Kind = &pods[i]
	}
	for _, pod := range pods[len(cluster.Groups):] {
		cluster.Promised = []*nodepool.Promise{{RayCluster: cluster.Key, Name: cluster.Key.String(),
			Group: nodepool.TheHead, Pods: 1, Pod: &pod}}
	}
	cluster.Places = free
}

// AddNumGPUs adds what a RayCluster's groups declare, derive and report to the rows of a plan.
func AddNumGPUs(plan *planner.Plan, cluster *nodepool.Cluster) {
	for i := range plan.Groups {
		if g, known := cluster.Group(plan.Groups[i].Name); known {
			n := g.NumGPUs(nodepool.RayGPUs{})
			plan.Groups[i].NumGPUs = &planner.NumGPUs{Declared: n.Declared, Derived: n.Derived, Reported: n.Reported}
		}
	}
}

// nothingRuns reports whether the operator has not created the head yet.
func nothingRuns(s planner.Snapshot, cluster nodepool.Cluster) bool {
	return s.Head == nil && len(s.Nodes) == 0 && cluster.ObservedGeneration == 0
}

// Fill fills in from the RayCluster what the file itself does not set.
func Fill(s planner.Snapshot, cluster nodepool.Cluster) planner.Snapshot {
	own := planner.SnapshotOf(cluster)
	s.Isolation = cmp.Or(s.Isolation, own.Isolation)
	s.Groups, s.LaunchConfigCheckDisabled = own.Groups, own.LaunchConfigCheckDisabled
	s.Places, s.Promised, s.Quotas = own.Places, own.Promised, slices.Concat(s.Quotas, own.Quotas)
	if nothingRuns(s, cluster) { // Of a head that runs, nobody knows here what is free.
		s.Head = &planner.Node{Pod: "head", Group: "headgroup", State: planner.Running,
			Resources: cluster.Head.Resources,
			Labels:    cluster.Head.Labels}
	}
	s.Name, s.UpscalingMode = cmp.Or(s.Name, own.Name), cmp.Or(s.UpscalingMode, own.UpscalingMode)
	if s.IdleTimeoutSeconds == nil {
		s.IdleTimeoutSeconds = own.IdleTimeoutSeconds
	}
	if s.KeptResources == nil {
		s.KeptResources = own.KeptResources
	}
	s.LearnLabels()
	return snapshotfile.Exportable(s)
}
