package manifests

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/nodes"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// boundPods are the pods of a snapshot file that take something of a node, by the name of the node; nil if the file has
// no pods.
type boundPods map[string][]*decode.BoundPod

// readPods reads kubePods.
func (p *places) readPods(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	items, err := objectsOf(raw, "kubePods", "Pod")
	if err != nil {
		return err
	}
	p.pods = boundPods{}
	for i, item := range items {
		pod, err := decode.ReadPod(item)
		if err != nil {
			return fmt.Errorf("kubePods[%d]: %w", i, err)
		}
		if bound, takes := decode.Bound(pod); takes {
			p.pods[bound.Node] = append(p.pods[bound.Node], &bound)
			p.claiming = p.claiming || len(pod.Spec.ResourceClaims) > 0
		}
	}
	return nil
}

// anyNamespace is that of objects without one, in which kubectl creates them.
const anyNamespace = "default"

// addBound counts the pods of a group that are bound to a node, as `serve` does: not those that are being deleted, nor
// those whose node is gone.
func (p places) addBound(cluster nodepool.ClusterKey, g *nodepool.WorkerGroup) {
	own := func(pod *decode.BoundPod) bool {
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
	mayLand := func(g nodepool.WorkerGroup) bool { return g.MayLand() }
	if p.pods != nil || !slices.ContainsFunc(cluster.Groups, mayLand) {
		return
	}
	cluster.Findings = append(cluster.Findings, raydemand.Finding{Code: nodes.PodsUnknown, Severity: raydemand.Info,
		Object: "snapshot", Field: "kubePods", Seen: "missing",
		Why: "the file has nodes and no pods, so the plan counts all nodes as empty; it may launch pods for which " +
			"the nodes have no room",
		Fix: "add the Pod objects of all namespaces as kubePods: kubectl get pods -A -o json; [] says that there " +
			"are none"})
}
