package doctor

import (
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const visibleDevices = "NVIDIA_VISIBLE_DEVICES"

// security are checks of who sees which GPU. CUDA's images set NVIDIA_VISIBLE_DEVICES=all, and NVIDIA's runtime, where it is the default of a
// node, then shows all GPUs to a container that asked for none.
var security = []Check{
	{
		Code: "gpus-visible", Severity: raydemand.Warning,
		Why: "the group asks for no GPU and can land on a node with some: an image that sets NVIDIA_VISIBLE_DEVICES=all sees and uses them all, past the " +
			"scheduler, and holds up every change of MIG layout",
		look: perGroup(func(x *exam, g group, tell func(sight)) {
			if g.asksForGPU() || !g.ray().has() {
				return
			}
			if v, set := env(g.ray(), visibleDevices); set && (v.text() == "void" || v.text() == "none" || v.text() == "") {
				return
			}
			if node := x.gpuNodeFor(g); node != "" {
				list := g.ray().get("env")
				tell(sight{of: g.of, at: list.at, seen: "node " + node + " has GPUs",
					fix: g.patch(g.of.add(list, map[string]any{"name": visibleDevices, "value": "void"}))})
			}
		}),
	},
	{
		Code: "gpu-visible-all", Severity: raydemand.Warning,
		Why: "the variable overrides what the device plugin sets: the container sees every GPU of the node, also those of others",
		look: perGroup(func(_ *exam, g group, tell func(sight)) {
			for _, c := range g.containers() {
				for i, entry := range c.get("env").items() {
					if entry.get("name").text() == visibleDevices && entry.get("value").text() == "all" {
						fix := g.patch(remove(c.get("env").at.then(i)))
						if !g.asksForGPU() {
							fix = g.patch(op{Op: "replace", At: entry.get("value").at, Value: "void"})
						}
						tell(sight{of: g.of, at: entry.get("value").at, seen: "all", fix: fix})
					}
				}
			}
		}),
	},
	{
		Code: "gpu-privileged", Severity: raydemand.Warning,
		Why: "a privileged container sees all devices of the node, whatever GPUs it was given, and can use those of others",
		look: perGroup(func(_ *exam, g group, tell func(sight)) {
			for _, c := range g.containers() {
				if v := c.get("securityContext", "privileged"); v.flag() && g.asksForGPU() {
					tell(sight{of: g.of, at: v.at, seen: "true", fix: g.patch(op{Op: "replace", At: v.at, Value: false})})
				}
			}
		}),
	},
}

func (g group) asksForGPU() bool { return len(g.asks()) > 0 }

// gpuNodeFor is a node with NVIDIA's GPUs on which a pod of the group could land, or "". The head's template is not read for landing, so of the
// head only selector and taints count.
func (x *exam) gpuNodeFor(g group) (name string) {
	shape := &podfit.PodShape{}
	if g.workers != nil {
		shape = &g.workers.Pod
	} else if g.template().get("affinity", "nodeAffinity").has() {
		return ""
	} else {
		shape = headShape(g)
	}
	x.examNodes(x.ground.lots.For(shape), func(n *examNode) bool {
		if n.hasGPUs() && slices.ContainsFunc(n.gpuNames(), isNVIDIA) && shape.Fit([]podfit.Node{n.Node.Landing}).Nodes > 0 {
			name = n.Name
		}
		return name == ""
	})
	return name
}

func (n *examNode) gpuNames() []string {
	var names []string
	for name := range n.gpus.Units {
		names = append(names, name)
	}
	return names
}

func isNVIDIA(name string) bool { return len(name) > 11 && name[:11] == "nvidia.com/" }

func headShape(g group) *podfit.PodShape {
	shape := &podfit.PodShape{Selector: map[string]string{}}
	selector := g.template().get("nodeSelector")
	for _, key := range selector.keys() {
		shape.Selector[key] = selector.get(key).text()
	}
	for _, t := range g.template().get("tolerations").items() {
		shape.Tolerations = append(shape.Tolerations, podfit.Toleration{
			Key: t.get("key").text(), Operator: t.get("operator").text(), Value: t.get("value").text(), Effect: t.get("effect").text(),
		})
	}
	return shape
}
