package doctor

import (
	"fmt"
	"slices"

	"heliostat.dev/heliostat/internal/doctor/check"
	"heliostat.dev/heliostat/internal/doctor/fix"
	"heliostat.dev/heliostat/internal/doctor/inventory"
	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// sharingStrategy is feature discovery's label for how a node's device plugin shares cards: none, time-slicing or mps.
const sharingStrategy = "nvidia.com/gpu.sharing-strategy"

func mpsInsideRay(x *inventory.Inventory, g inventory.Group, report check.Reporter) {
	node, _ := mpsNodes(x, g)
	if node == "" || mountsShm(g) {
		return
	}
	selector := g.Template().Path("nodeSelector", sharingStrategy)
	report(check.Occurrence{Object: g.Of, Path: selector, Seen: fmt.Sprintf("node %s shares its GPUs with MPS", node),
		Fix: fix.Patch(g.Of, fix.Set(g.Of, selector, "none")).
			Hint("or share by time-slicing; change nothing if you have seen CUDA start")})
}

// mountsShm reports whether the Ray container has its own volume at /dev/shm. The operator then mounts none.
func mountsShm(g inventory.Group) bool {
	return slices.ContainsFunc(g.RayContainer().Items("volumeMounts"), func(v fieldpath.Value) bool {
		return v.Text("mountPath") == "/dev/shm"
	})
}

func mpsSharesSeveral(x *inventory.Inventory, g inventory.Group, report check.Reporter) {
	node, only := mpsNodes(x, g)
	if !only {
		return
	}
	for _, r := range g.GPURequests() {
		if q, ok := inventory.Quantity(r.Limit); ok && q.Value() >= 2 && r.IsDevices() {
			report(check.Occurrence{Object: g.Of, Path: r.Limit.Path(), Fix: replaceAmount(r, "1"),
				Seen: fmt.Sprintf("%s of a GPU that node %s shares with MPS", r.Limit, node)})
		}
	}
}

// mpsNodes returns a node with MPS on which a pod of the group fits and would get a share, or nothing, and whether all
// nodes on which it fits are such.
func mpsNodes(x *inventory.Inventory, g inventory.Group) (one string, only bool) {
	isShare := func(r inventory.GPURequest) bool { return r.IsNVIDIA() && r.IsDevices() }
	if !slices.ContainsFunc(g.GPURequests(), isShare) {
		return "", false
	}
	only = true
	x.VisitReal(x.NodesFor(g), func(n *inventory.Node) bool {
		switch {
		case g.Workers.Pod.Fit([]landing.Node{n.Node.Fit}).Nodes == 0:
		case n.GPUs.Kind != gpuinfo.MPS:
			only = false
		case one == "":
			one = n.Name
		}
		return true
	})
	return one, only && one != ""
}
