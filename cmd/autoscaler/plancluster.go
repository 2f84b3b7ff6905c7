package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/nodeobject"
	"heliostat.dev/heliostat/pkg/nodepool/kube/rayobject"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/nodepool/pools"
	"heliostat.dev/heliostat/pkg/nodepool/raylabels"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// clusterOf reads the RayCluster of a snapshot file, and adds what the file's nodes and pools say about its groups.
// Errors name the key.
func clusterOf(reader nodegpu.Reader, doc snapshotfile.Document) (nodepool.Cluster, error) {
	reader.TopologyLabels = slices.Concat(reader.TopologyLabels, doc.TopologyLabels)
	cluster, err := rayobject.DecodeManifest(reader, doc.RayCluster)
	if err != nil {
		return cluster, fmt.Errorf("rayCluster: %w: want the manifest of a RayCluster", err)
	}
	placed, err := placesOf(reader, doc)
	if err != nil {
		return cluster, err
	}
	cluster.Findings = append(cluster.Findings, placed.unreadable...)
	for i := range cluster.Groups {
		placed.addTo(&cluster, &cluster.Groups[i])
	}
	placed.addPlaces(&cluster)
	cluster.Findings = append(cluster.Findings, placed.unused...)
	placed.podsUnknown(&cluster)
	return cluster, nil
}

// poolsWithoutNodes finds pools that no node belongs to and that have no shape, usually because of a misspelled name.
func poolsWithoutNodes(config pools.Config, nodes []podfit.Node) (list []raydemand.Finding) {
	for i, spec := range config.Pools {
		if spec.Shape == nil && len(nodes) > 0 &&
			!slices.ContainsFunc(nodes, func(n podfit.Node) bool { return n.Pool == spec.Name }) {
			list = append(
				list,
				raydemand.Finding{
					Code:     planner.FindingPoolWithoutNodes,
					Severity: raydemand.Warning,
					Object:   "snapshot",
					Field:    fmt.Sprintf("pools[%d].name", i),
					Seen:     spec.Name,
					Why: "the pool has no nodes and no shape, so its limits apply to no group, and nodes that " +
						"it may add are unknown",
					Fix: "use the pool's name in the labels of the nodes, or add a shape",
				},
			)
		}
	}
	return list
}

// places are the nodes and the declared shapes of pools in a snapshot file.
type places struct {
	reader nodegpu.Reader
	nodes  []podfit.Node
	rooms  []pools.Room
	// pods are nil if the file has none; nodes then count as empty.
	pods boundPods
	// known reports whether the file has nodes or shapes, pooled whether it says anything about pools.
	known, pooled bool
	judge         pools.Judge
	// at is when the snapshot was taken; zero if unknown.
	at time.Time
	// unused are the findings about pools without nodes.
	unused []raydemand.Finding
	// unreadable are the findings about amounts of nodes that count as missing.
	unreadable []raydemand.Finding
}

func placesOf(reader nodegpu.Reader, doc snapshotfile.Document) (places, error) {
	p := places{reader: reader, known: doc.KubeNodes != nil, at: doc.TakenAt}
	var err error
	if p.pods, err = podsIn(doc.KubePods); err != nil {
		return p, err
	}
	items, err := itemsOf(doc.KubeNodes, "kubeNodes", "Node")
	if err != nil {
		return p, err
	}
	for i, item := range items {
		object, node, err := nodeobject.ReadWith(p.reader, item)
		if err != nil {
			return p, fmt.Errorf("kubeNodes[%d]: %w: want a Node as the API prints it", i, err)
		}
		p.unreadable = append(p.unreadable, unreadableAmounts(object)...)
		read := p.reader.Read(object)
		node.GPUs, node.Pool = &read, p.reader.PoolOf(object)
		if p.pods != nil {
			node.Use = nodeobject.Use(p.reader, object, p.pods[node.Name])
		}
		p.nodes = append(p.nodes, node)
	}
	p.unreadable = append(p.unreadable, p.repeatedNodes()...)
	config, err := poolsIn(doc)
	if err != nil {
		return p, err
	}
	p.rooms, p.unused = pools.Rooms(p.nodes, config, nil), poolsWithoutNodes(config, p.nodes)
	p.nodes = append(p.nodes, config.Shapes(p.reader)...)
	p.known, p.pooled = p.known || len(p.nodes) > 0, len(config.Pools) > 0 || config.Complete
	p.judge = pools.Judge{
		Rooms: p.rooms, Places: p.nodes, Complete: config.Complete, PoolLabel: p.reader.PoolLabel,
	}
	return p, nil
}

func unreadableAmounts(node nodegpu.NodeObject) (list []raydemand.Finding) {
	for _, text := range node.Unreadable {
		list = append(
			list,
			raydemand.Finding{
				Code:     string(nodegpu.AmountUnreadable),
				Severity: raydemand.Error,
				Object:   "Node " + node.Name,
				Field:    "status",
				Seen:     text,
				Why: "the amount cannot be read, so the plan treats it as missing, and pods that request it do " +
					"not fit the node",
				Fix: "correct the amount",
			},
		)
	}
	return list
}

// repeatedNodes reports nodes of one name, each of which counts.
func (p places) repeatedNodes() (list []raydemand.Finding) {
	seen := map[string]int{}
	for i := range p.nodes {
		name := p.nodes[i].Name
		if seen[name]++; name != "" && seen[name] == 2 {
			list = append(list, raydemand.Finding{Code: planner.FindingNodeRepeated, Severity: raydemand.Warning,
				Object: "Node " + name, Field: "metadata.name", Seen: name,
				Why: "kubeNodes has several nodes of this name, and the plan counts each as a node of its own",
				Fix: "list each node once"})
		}
	}
	return list
}

// itemsOf returns the objects of one kind under a key of the file: an array, an object with items as kubectl prints it,
// or one object.
func itemsOf(raw json.RawMessage, key, kind string) ([]map[string]any, error) {
	if raw == nil {
		return nil, nil
	}
	want := "want " + kind + " objects as the API prints them: a list, or an object with items"
	var items []map[string]any
	decode := func(into any) error { return json.NewDecoder(bytes.NewReader(raw)).Decode(into) }
	if err := decode(&items); err != nil {
		list := struct {
			Kind  string          `json:"kind"`
			Items json.RawMessage `json:"items"`
		}{}
		if err := decode(&list); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", key, err, want)
		}
		if list.Kind == kind {
			one := map[string]any{}
			return []map[string]any{one}, decode(&one)
		}
		if list.Items == nil {
			return nil, fmt.Errorf("%s: an object without items: %s", key, want)
		}
		if err := json.Unmarshal(list.Items, &items); err != nil {
			return nil, fmt.Errorf("%s.items: %w: %s", key, err, want)
		}
		if list.Items == nil {
			return nil, fmt.Errorf("%s: an object without items: %s", key, want)
		}
	}
	for i, item := range items {
		if is := item["kind"]; item == nil || is != nil && is != kind {
			return nil, fmt.Errorf("%s[%d]: kind is %v: %s", key, i, is, want)
		}
	}
	return items, nil
}

// poolsIn reads the description of pools, in the format of the file of --pools: the whole file, or its list of pools
// with complete beside it.
func poolsIn(doc snapshotfile.Document) (pools.Config, error) {
	if doc.Pools == nil {
		return pools.Config{Complete: doc.PoolsComplete}, nil
	}
	text := doc.Pools
	if !bytes.HasPrefix(text, []byte("{")) {
		text = slices.Concat([]byte(`{"pools": `), text, []byte("}"))
	}
	config, err := nodeobject.ReadPools(bytes.NewReader(text))
	config.Complete = config.Complete || doc.PoolsComplete
	return config, err
}

// addTo adds to a group what the nodes and pools say about it, as far as they are known.
func (p places) addTo(cluster *nodepool.Cluster, g *nodepool.WorkerGroup) {
	g.Slices = podfit.SlicesOf(p.reader, &g.Pod, p.nodes)
	worker := g.NewWorker(cluster.RayVersion)
	if !p.known {
		g.Announces = raylabels.Of(p.reader, worker, raylabels.Nodes{})
		p.addProof(cluster, g)
		if f, several := g.MIGInstancesFinding(); several {
			f.Object = "RayCluster " + cluster.Key.String()
			cluster.Findings = append(cluster.Findings, f)
		}
		return
	}
	fit := g.Pod.Fit(p.nodes)
	g.Fit, g.Reported = &fit, nodepool.Reported(p.reader, g, p.nodes)
	g.PoolPods = pools.PodsOf(&g.Pod, p.rooms, p.nodes)
	p.addBound(cluster.Key, g)
	g.Announces = raylabels.Of(p.reader, worker, raylabels.Nodes{Places: p.nodes, Rooms: p.rooms, Pods: g.PoolPods})
	g.Judge(p.judge.Of(&g.Pod), p.at)
	add := func(f raydemand.Finding) {
		f.Object = cmp.Or(f.Object, "RayCluster "+cluster.Key.String())
		cluster.Findings = append(cluster.Findings, f)
	}
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
	if first, count := podfit.SeesGPUs(p.reader, &g.Pod, p.nodes); count > 0 && g.Max > 0 && !g.Suspended {
		ofTemplate(podfit.VisibleFinding(first, count))
	}
	if f, no := g.NoNode(); no {
		add(f)
	}
}

// addProof adds what pools prove about a group although no node is known, such as maxNodes 0.
func (p places) addProof(cluster *nodepool.Cluster, g *nodepool.WorkerGroup) {
	if !p.pooled {
		return
	}
	if g.Judge(p.judge.Of(&g.Pod), p.at); g.Verdict.State == pools.Trying {
		g.Verdict = nil
		return
	}
	if f, no := g.NoNode(); no {
		f.Object = "RayCluster " + cluster.Key.String()
		cluster.Findings = append(cluster.Findings, f)
	}
}

// addPlaces adds where pods of the groups may run.
func (p places) addPlaces(cluster *nodepool.Cluster) {
	if !p.known {
		return
	}
	exist := slices.DeleteFunc(slices.Clone(p.nodes), func(n podfit.Node) bool { return n.Declared })
	shapes := slices.DeleteFunc(slices.Clone(p.nodes), func(n podfit.Node) bool { return !n.Declared })
	class := func(i int) podfit.NodeClass { return podfit.ClassOf(&exist[i]) }
	stock := pools.StockOf(podfit.ClassesOf(exist, class, shapes), p.rooms)
	kinds := make([]pools.Kind, len(cluster.Groups))
	for i := range cluster.Groups {
		g := &cluster.Groups[i]
		kinds[i] = stock.KindOf(g.Name, &g.Pod)
	}
	free, pods := stock.Places(kinds, nil)
	for i := range cluster.Groups {
		cluster.Groups[i].Kind = &pods[i]
	}
	cluster.Places = free
}

// numGPUs adds what a RayCluster's groups declare, derive and report to the rows of a plan.
func numGPUs(plan *planner.Plan, cluster *nodepool.Cluster) {
	for i := range plan.Groups {
		if g, known := cluster.Group(plan.Groups[i].Name); known {
			n := g.NumGPUs(nodepool.RayGPUs{})
			plan.Groups[i].NumGPUs = &planner.NumGPUs{Declared: n.Declared, Derived: n.Derived, Reported: n.Reported}
		}
	}
}
