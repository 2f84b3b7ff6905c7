package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/nodeobject"
	"heliostat.dev/heliostat/pkg/nodepool/kube/watch"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// boundPods are the pods of a snapshot file that take something of a node, by the name of the node; nil if the file has
// no pods.
type boundPods map[string][]nodeobject.BoundPod

// podsIn reads kubePods.
func podsIn(raw json.RawMessage) (boundPods, error) {
	if raw == nil {
		return nil, nil
	}
	items, err := itemsOf(raw, "kubePods", "Pod")
	if err != nil {
		return nil, err
	}
	byNode := boundPods{}
	for i, item := range items {
		pod, unreadable, err := nodeobject.ReadPod(item)
		if err != nil {
			return nil, fmt.Errorf("kubePods[%d]: %w: want a Pod as the API prints it", i, err)
		}
		if len(unreadable) > 0 {
			return nil, fmt.Errorf("kubePods[%d]: pod %s/%s: %s", i, pod.Namespace, pod.Name,
				strings.Join(unreadable, "; "))
		}
		if bound, takes := nodeobject.Bound(pod); takes {
			byNode[bound.Node] = append(byNode[bound.Node], bound)
		}
	}
	return byNode, nil
}

// addBound counts the pods of a group that are bound to a node, as `serve` does: not those that are being deleted, nor
// those whose node is gone.
func (p places) addBound(cluster nodepool.ClusterKey, g *nodepool.WorkerGroup) {
	const anyNamespace = "default" // of objects without one, in which kubectl creates them
	own := func(pod nodeobject.BoundPod) bool {
		return pod.RayCluster == cluster.Name && pod.Group == g.Name && !pod.Terminating &&
			cmp.Or(pod.Namespace, anyNamespace) == cmp.Or(cluster.Namespace, anyNamespace)
	}
	for i := range p.nodes {
		if p.nodes[i].Declared {
			continue
		}
		for _, pod := range p.pods[p.nodes[i].Name] {
			if own(pod) {
				g.CountBound(&p.nodes[i])
			}
		}
	}
}

// podsUnknown reports that nodes count as empty because the file has no pods. It matters to a group that fits a node.
func (p places) podsUnknown(cluster *nodepool.Cluster) {
	if p.pods != nil {
		return
	}
	for i := range cluster.Groups {
		g := &cluster.Groups[i]
		if g.Max == 0 || g.Suspended || g.Fit == nil || g.Fit.Nodes == 0 {
			continue
		}
		cluster.Findings = append(cluster.Findings, raydemand.Finding{
			Code:     watch.PodsUnknown,
			Severity: raydemand.Info,
			Object:   "snapshot",
			Field:    "kubePods",
			Seen:     "missing",
			Why: "the file has nodes and no pods, so the plan counts all nodes as empty; it may launch pods for " +
				"which the nodes have no room",
			Fix: "add the Pod objects of all namespaces as kubePods: kubectl get pods -A -o json; [] says that there " +
				"are none",
		})
		return
	}
}
