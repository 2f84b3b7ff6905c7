package doctor

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

func gpuTwoResources(x *inventory, g rayGroup, report reporter) {
	found := devicesOfRay(g)
	isMIG := func(r gpuRequest) bool { return strings.HasPrefix(r.Resource, gpuinfo.MIGPrefix) }
	if len(found) < 2 || isMIG(found[0]) && isMIG(found[len(found)-1]) {
		return // mig-two-profiles reports profiles
	}
	names := make([]string, len(found))
	for i, r := range found {
		names[i] = r.Resource
	}
	two := occurrence{Object: g.Of, Path: g.rayContainer().Path("resources", "limits"),
		Seen: strings.Join(names, ", ")}
	keep, known := 0, true
	if vendor(found[0]) != vendor(found[len(found)-1]) {
		two.More = "only a node with GPUs of both vendors has both"
		keep, known = onlyAnnounced(x, found)
	}
	two.Fix = edit(g.Of, "keep the resource that the nodes announce, or give each of them its own group")
	if known {
		var operations []operation
		for _, r := range slices.Delete(slices.Clone(found), keep, keep+1) {
			operations = append(operations, removeRequest(r)...)
		}
		two.Fix = patch(g.Of, operations...).Hint("or give each of them its own group")
	}
	report(two)
}

// devicesOfRay returns the GPUs that the Ray container requests as devices of the vendors' own plugins.
func devicesOfRay(g rayGroup) (found []gpuRequest) {
	for _, r := range g.gpuRequests() {
		q, ok := quantity(r.Limit)
		if ok && q.Sign() > 0 && slices.Contains(vendors, vendor(r)) && r.isDevices() && r.ofRay() {
			found = append(found, r)
		}
	}
	return found
}

// vendors are the domains of the resources that the vendors' device plugins announce.
var vendors = []string{"amd.com", "gpu.intel.com", "nvidia.com"}

func vendor(r gpuRequest) string {
	domain, _, _ := strings.Cut(r.Resource, "/")
	return domain
}

// onlyAnnounced returns which of the resources some node announces, and false if that is none or several.
func onlyAnnounced(x *inventory, found []gpuRequest) (at int, only bool) {
	at = -1
	for i, r := range found {
		if !slices.ContainsFunc(x.Nodes, func(n *Object) bool { return n.Node.Fit.GPUs.Units[r.Resource] > 0 }) {
			continue
		}
		if at >= 0 {
			return 0, false
		}
		at = i
	}
	return at, at >= 0
}

func gpuSlicesDiffer(x *inventory, g rayGroup, report reporter) {
	if g.Workers.Pod.Claims || len(x.Nodes) == 0 {
		return
	}
	for _, answer := range landing.SlicesOf(x.Input.Reader, &g.Workers.Pod, x.nodesFor(g)) {
		if f, differ := answer.DifferFinding(); differ {
			report(said(g.Of, g.rayContainer().Path("resources", "limits", answer.Resource), f))
		}
	}
}

// comparedWithNodes reports what package nodepool finds when it compares the GPUs of a worker group with those of the
// nodes on which its pods fit. Plans have the same codes.
func comparedWithNodes(x *inventory, code string, report reporter) {
	for _, g := range x.workers {
		if len(x.Nodes) > 0 && !g.Workers.Broken {
			compareWithNodes(x, g, code, report)
		}
	}
}

func compareWithNodes(x *inventory, g rayGroup, code string, report reporter) {
	workers := *g.Workers
	workers.Reported = nodepool.Reported(x.Input.Reader, &workers, x.nodesFor(g))
	numbers := workers.NumGPUs(nodepool.RayGPUs{})
	for _, f := range workers.NumGPUsFindings(numbers) {
		if f.Code != code {
			continue
		}
		found := said(g.Of, g.rayContainer().Path("resources", "limits"), f)
		if comparesNodes(code) {
			section, key, _ := strings.Cut(workers.GPUs.Field, ".")
			found.Path = g.Path(section, key)
			if workers.GPUs.Fixed == "" {
				found.Fix = declareGPUs(g, numbers.Reported.String())
			}
		}
		report(found)
	}
}

// migInstancesSeveral reports pods with several MIG instances: by the nodes where they fit or, without any, by the
// names of the resources. Of two profiles, another check has a patch.
func migInstancesSeveral(x *inventory, g rayGroup, report reporter) {
	group, profiles := *g.Workers, 0
	for name, amount := range group.GPUs.Limits {
		if amount > 0 && strings.HasPrefix(name, gpuinfo.MIGPrefix) {
			profiles++
		}
	}
	if len(x.Nodes) > 0 {
		group.Reported = nodepool.Reported(x.Input.Reader, &group, x.nodesFor(g))
	}
	if f, several := group.MIGInstancesFinding(); several && profiles < 2 {
		report(said(g.Of, g.rayContainer().Path("resources", "limits"), f))
	}
}

// comparesNodes reports whether the code is that of a num-gpus that differs from what nodes report.
func comparesNodes(code string) bool { return code == nodepool.NumGPUsMismatch }

// explainsNumGPUs reports whether a finding of the code explains by the spec alone why num-gpus is wrong.
func explainsNumGPUs(code string) bool {
	return slices.Contains([]string{
		"num-gpus-differs", "gpu-uncounted", "gpu-shares-counted", "claim-uncounted", "mig-two-profiles",
		"gpu-two-resources", "gpu-outside-ray-container", "resources-not-parsed", "gpu-resource-unknown",
		nodepool.GPUSharesSeveral, "gpu-not-whole", "resource-misplaced",
	}, code)
}
