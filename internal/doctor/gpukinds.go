package doctor

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/doctor/fix"
	"heliostat.dev/heliostat/internal/doctor/inventory"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
)

func gpuTwoResources(_ *inventory.Inventory, g inventory.Group, report reporter) {
	var found []inventory.GPURequest
	for _, r := range g.GPURequests() {
		q, ok := inventory.Quantity(r.Limit)
		if ok && q.Sign() > 0 && r.IsNVIDIA() && r.IsDevices() && r.OfRay() {
			found = append(found, r)
		}
	}
	isMIG := func(r inventory.GPURequest) bool { return strings.HasPrefix(r.Resource, inventory.MIGPrefix) }
	if len(found) < 2 || isMIG(found[0]) && isMIG(found[len(found)-1]) {
		return // mig-two-profiles reports profiles
	}
	names := []string{found[0].Resource}
	var operations []fix.Operation
	for _, r := range found[1:] {
		names = append(names, r.Resource)
		operations = append(operations, removeRequest(r)...)
	}
	report(occurrence{object: g.Of, path: g.RayContainer().Path("resources", "limits"), seen: strings.Join(names, ", "),
		fix: fix.Patch(g.Of, operations...).Hint("or give each of them its own group")})
}

func gpuSlicesDiffer(x *inventory.Inventory, g inventory.Group, report reporter) {
	if g.Workers.Pod.Claims || len(x.Nodes) == 0 {
		return
	}
	for _, answer := range podfit.SlicesOf(x.Input.Reader, &g.Workers.Pod, x.NodesFor(g)) {
		if f, differ := answer.DifferFinding(); differ {
			report(occurrence{
				object: g.Of, path: g.RayContainer().Path("resources", "limits", answer.Resource), seen: f.Seen,
				why: f.Why, fix: fix.Edit(g.Of, f.Fix),
			})
		}
	}
}

// comparedWithNodes reports what package nodepool finds when it compares the GPUs of a worker group with those of the
// nodes on which its pods fit. Plans have the same codes.
func comparedWithNodes() scope {
	return scope{"worker groups and nodes", func(x *inventory.Inventory, code string, report reporter) {
		for _, g := range x.Groups {
			if g.Workers != nil && len(x.Nodes) > 0 && !g.Workers.Broken {
				compareWithNodes(x, g, code, report)
			}
		}
	}}
}

func compareWithNodes(x *inventory.Inventory, g inventory.Group, code string, report reporter) {
	workers := *g.Workers
	workers.Reported = nodepool.Reported(x.Input.Reader, &workers, x.NodesFor(g))
	for _, f := range workers.NumGPUsFindings(workers.NumGPUs(nodepool.RayGPUs{})) {
		if f.Code != code {
			continue
		}
		found := occurrence{object: g.Of, path: g.RayContainer().Path("resources", "limits"), seen: f.Seen, why: f.Why,
			fix: fix.Edit(g.Of, f.Fix)}
		if comparesNodes(code) {
			section, key, _ := strings.Cut(workers.GPUs.Field, ".")
			found.path = g.Path(section, key)
			if workers.GPUs.Fixed == "" {
				found.fix = declareGPUs(g, workers.Reported.Value.String())
			}
		}
		report(found)
	}
}

// comparesNodes reports whether the code is that of a num-gpus that differs from what nodes report.
func comparesNodes(code string) bool { return code == nodepool.NumGPUsMismatch }

// explainsNumGPUs reports whether a finding of the code explains by the spec alone why num-gpus is wrong.
func explainsNumGPUs(code string) bool {
	return slices.Contains([]string{
		"num-gpus-differs", "gpu-uncounted", "gpu-shares-counted", "claim-uncounted", "mig-two-profiles",
		"gpu-two-resources", "gpu-outside-ray-container", "resources-not-parsed", "gpu-resource-unknown",
		nodepool.GPUSharesSeveral, "gpu-not-whole",
	}, code)
}
