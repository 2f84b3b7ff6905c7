package doctor

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// sharingStrategy is feature discovery's label of how a node's device plugin shares cards: none, time-slicing or mps.
const sharingStrategy = "nvidia.com/gpu.sharing-strategy"

// mps are checks of groups that may get a share of CUDA's Multi-Process Service.
var mps = []Check{
	{
		Code: "mps-inside-ray", Severity: raydemand.Warning,
		Why: "it is reported that, with MPS of NVIDIA's device plugin, nvidia-smi shows the GPU inside a pod of KubeRay and CUDA does not start there " +
			"(kuberay #3634, open; not tried); the report suspects /dev/shm, where the operator mounts a volume of its own",
		look: perWorkers(func(x *exam, g group, tell func(sight)) {
			node, _ := x.mpsNodes(g)
			if node == "" || g.mountsShm() {
				return
			}
			selector := g.template().get("nodeSelector", sharingStrategy)
			tell(sight{of: g.of, at: selector.at, seen: fmt.Sprintf("node %s shares its GPUs by MPS", node),
				fix: g.patch(g.of.set(selector.at, "none")).hint("or share by time-slicing; leave it where CUDA was seen to start")})
		}),
	},
	{
		Code: "mps-shares-several", Severity: raydemand.Error,
		Why: "with MPS the device plugin refuses a request of more than one share, unless failRequestsGreaterThanOne is false; the kubelet then fails the " +
			"pod with UnexpectedAdmissionError, and it has to be deleted",
		look: perWorkers(func(x *exam, g group, tell func(sight)) {
			node, only := x.mpsNodes(g)
			for _, c := range g.asks() {
				q, ok := c.limit.quantity()
				if !only || !ok || q.Value() < 2 || !c.isDevices(c.name) {
					continue
				}
				ops := []op{{Op: "replace", At: c.limit.at, Value: "1"}}
				if c.request.has() {
					ops = append(ops, op{Op: "replace", At: c.request.at, Value: "1"})
				}
				tell(sight{of: g.of, at: c.limit.at, seen: fmt.Sprintf("%s of a GPU that node %s shares by MPS", c.limit, node), fix: c.patch(ops...)})
			}
		}),
	},
}

// mpsNodes returns a node with MPS on which the group could land and would get a share, or "", and whether all on which it could land are such.
func (x *exam) mpsNodes(g group) (one string, only bool) {
	if !slices.ContainsFunc(g.asks(), func(c gpuAsk) bool { return strings.HasPrefix(c.name, "nvidia.com/") && c.isDevices(c.name) }) {
		return "", false
	}
	only = true
	x.examNodes(x.placesFor(g), func(n *examNode) bool {
		switch {
		case g.workers.Pod.Fit([]podfit.Node{n.Node.Landing}).Nodes == 0:
		case n.gpus.Kind != gpuinfo.MPS:
			only = false
		case one == "":
			one = n.Name
		}
		return true
	})
	return one, only && one != ""
}

// mountsShm reports whether the Ray container has a volume of its own at /dev/shm. The operator then mounts none.
func (g group) mountsShm() bool {
	return slices.ContainsFunc(g.ray().get("volumeMounts").items(), func(v value) bool { return v.get("mountPath").text() == "/dev/shm" })
}
