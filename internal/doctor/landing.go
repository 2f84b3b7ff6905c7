package doctor

import (
	"fmt"
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/nodepool/pools"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// landing are checks of whether pods of a group could run on the nodes that are there, were they empty. Taints are told to groups that ask for
// GPUs: a group without may have nodes elsewhere, which taints of GPU nodes are there to make it take.
var landing = []Check{
	{
		Code: "toleration-missing", Severity: raydemand.Error,
		Why: "the nodes that could hold the pods keep them away, so they wait for ever, and a node autoscaler adds no node for them",
		look: perWorkers(func(x *exam, g group, tell func(sight)) {
			taints, node := x.inTheWay(g)
			if len(taints) == 0 || !g.asksForGPU() {
				return
			}
			list, ops := g.template().get("tolerations"), []op{}
			for i, taint := range taints {
				entry := map[string]any{"key": taint.Key, "operator": "Exists", "effect": taint.Effect}
				switch {
				case list.has():
					ops = append(ops, op{Op: "add", At: list.at.then("-"), Value: entry})
				case i == 0:
					ops = append(ops, op{Op: "add", At: list.at, Value: []any{entry}})
				default:
					ops = append(ops, op{Op: "add", At: list.at.then("-"), Value: entry})
				}
			}
			tell(sight{of: g.of, at: list.at, seen: fmt.Sprintf("taint %s on node %s", taints[0], node), fix: g.patch(ops...)})
		}),
	},
	{
		Code: "group-no-node", Severity: raydemand.Info,
		Why: "no node, were it empty, could hold a pod of the group; its pods wait until one is added or changed",
		look: perWorkers(func(x *exam, g group, tell func(sight)) {
			if taints, _ := x.inTheWay(g); len(taints) > 0 && g.asksForGPU() || len(x.ground.nodes) == 0 || g.workers.Broken || g.workers.Max <= 0 || g.workers.Suspended {
				return
			}
			if landed := g.workers.Pod.Fit(x.placesFor(g)); landed.None() && !x.nodePoolFits(g) {
				tell(sight{of: g.of, at: g.template().at, seen: landed.Why, fix: g.of.edit("mend the template, or add a node that can hold it; autoscaler nodepools shows what there is")})
			}
		}),
	},
}

// nodePoolFits reports whether Karpenter may add a node for a pod of the group.
func (x *exam) nodePoolFits(g group) bool {
	workers := nodepool.WorkerGroup{PoolPods: pools.PodsOf(&g.workers.Pod, x.ground.rooms, x.placesFor(g))}
	return workers.NodePoolFits()
}

// inTheWay are the taints that alone keep the group off a node, of the first such node, when it can land nowhere. What a live pod of the group
// tolerates was added by an admission plugin and is not in the way.
func (x *exam) inTheWay(g group) (taints []nodegpu.Taint, on string) {
	found, known := x.ground.obstacles[g.workers]
	if !known {
		found.taints, found.node = x.lookInTheWay(g)
		x.ground.obstacles[g.workers] = found
	}
	return found.taints, found.node
}

func (x *exam) lookInTheWay(g group) (taints []nodegpu.Taint, on string) {
	shape, nodes := g.workers.Pod, x.placesFor(g)
	if g.workers.Suspended || !shape.Fit(nodes).None() {
		return nil, ""
	}
	for _, node := range nodes {
		bare := node
		bare.Taints = nil
		if shape.Fit([]podfit.Node{bare}).None() {
			continue
		}
		for _, taint := range node.Taints {
			bare.Taints = []nodegpu.Taint{taint}
			if shape.Fit([]podfit.Node{bare}).None() && !x.podsTolerate(g, taint) {
				taints = append(taints, taint)
			}
		}
		return taints, node.Name
	}
	return nil, ""
}

func (x *exam) podsTolerate(g group, taint nodegpu.Taint) bool {
	return slices.ContainsFunc(x.podsOf(g.of, g.name), func(pod *Object) bool {
		return slices.ContainsFunc(pod.root().get("spec", "tolerations").items(), func(t value) bool {
			return t.get("key").text() == taint.Key && (t.get("operator").text() == "Exists" || t.get("value").text() == taint.Value)
		})
	})
}
