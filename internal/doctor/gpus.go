package doctor

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// The API server's rules for extended resources are in its ValidateContainerResources: whole numbers, and no request
// that differs from the limit.

// ofTemplate reports what plans report under the code of the check: package landing knows which GPUs no pod can have.
// Amounts that are not whole and counted shares have a check with a patch.
func ofTemplate(x *inventory, code string, report reporter) {
	for _, g := range x.Groups {
		for _, f := range landing.CheckGPUs(x.Input.Reader, &g.Pods.Pod) {
			at := g.Get("template", "metadata", "labels", f.Field)
			if annotation := g.Get("template", "metadata", "annotations", f.Field); annotation.Has() {
				at = annotation
			}
			for _, r := range g.gpuRequests() {
				if r.Resource == f.Field && !at.Has() {
					at = r.field()
				}
			}
			amount, isAmount := quantity(at)
			_, patched := countedShares[f.Field]
			patched = patched || code == landing.GPURequestInvalid && isAmount && amount.MilliValue()%1000 != 0
			if f.Code == code && !patched {
				found := said(at.Path(), f)
				found.Object = g.Of
				report(found)
			}
		}
	}
}

func gpuRequestsOnly(_ *inventory, r gpuRequest, report reporter) {
	if r.Request.Has() && !r.Limit.Has() {
		report(shows(r.Request, set(r.Limit.Path(), r.Request.Raw())))
	}
}

func gpuLimitDiffers(_ *inventory, r gpuRequest, report reporter) {
	request, requested := quantity(r.Request)
	limit, limited := quantity(r.Limit)
	if requested && limited && request.Cmp(limit) != 0 {
		report(occurrence{Path: r.Request.Path(), Seen: "request " + r.Request.String() + ", limit " + r.Limit.String(),
			Fix: set(r.Request.Path(), r.Limit.Raw())})
	}
}

func gpuNotWhole(_ *inventory, r gpuRequest, report reporter) {
	limit, ok := quantity(r.Limit)
	if !ok || limit.Sign() >= 0 && limit.MilliValue()%1000 == 0 {
		return
	}
	to := "1"
	if limit.Sign() > 0 {
		limit.RoundUp(0)
		to = limit.String()
	}
	report(shows(r.Limit, patch(r.changes(to)...)))
}

func gpuOutsideRayContainer(_ *inventory, r gpuRequest, report reporter) {
	limit, ok := quantity(r.Limit)
	if !ok || limit.Sign() <= 0 || r.ofRay() || !r.isDevices() {
		return
	}
	ofRay := r.rayContainer().Get("resources", "limits", r.Resource)
	list := r.Container.Path().Parent().LastKey()
	if ofRay.Has() && list == "initContainers" && r.Container.Text("restartPolicy") != "Always" {
		return // the Ray container gets the same GPU after the init container
	}
	changes := r.changes(nil)
	if !ofRay.Has() {
		changes = append(changes, change{ofRay.Path(), r.Limit.Raw()})
	}
	report(shows(r.Limit, patch(changes...)))
}

// changes gives the limit, and the request if there is one, another amount; nil removes them.
func (r gpuRequest) changes(to any) (all []change) {
	for _, v := range []fieldpath.Value{r.Limit, r.Request} {
		if v.Has() {
			all = append(all, change{v.Path(), to})
		}
	}
	return all
}

func gpuTwoResources(_ *inventory, g rayGroup, report reporter) {
	found := devicesOfRay(g)
	if len(found) < 2 {
		return
	}
	names := make([]string, len(found))
	for i, r := range found {
		names[i] = r.Resource
	}
	report(occurrence{Path: g.rayContainer().Path("resources", "limits"), Seen: strings.Join(names, ", "),
		Fix: edit("keep the resource that the nodes announce, or give each of them its own group")})
}

// devicesOfRay returns the GPUs that the Ray container requests as devices of the vendors' own plugins.
func devicesOfRay(g rayGroup) (found []gpuRequest) {
	for _, r := range g.gpuRequests() {
		q, ok := quantity(r.Limit)
		domain, _, _ := strings.Cut(r.Resource, "/")
		if ok && q.Sign() > 0 && slices.Contains(vendors, domain) && r.isDevices() && r.ofRay() {
			found = append(found, r)
		}
	}
	return found
}

// vendors are the domains of the resources that the vendors' device plugins announce.
var vendors = []string{"amd.com", "gpu.intel.com", "nvidia.com"}

func gpuSlicesDiffer(x *inventory, g rayGroup, report reporter) {
	if g.Workers.Pod.Claims || len(x.Nodes) == 0 {
		return
	}
	for _, answer := range landing.SlicesOf(x.Input.Reader, &g.Workers.Pod, x.nodesFor(g)) {
		if f, differ := answer.DifferFinding(); differ {
			report(said(g.rayContainer().Path("resources", "limits", answer.Resource), f))
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
		found := said(g.rayContainer().Path("resources", "limits"), f)
		found.Object = g.Of
		if code == nodepool.NumGPUsMismatch {
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
		report(said(g.rayContainer().Path("resources", "limits"), f))
	}
}

// explainsNumGPUs reports whether a finding of the code explains by the spec alone why num-gpus is wrong.
func explainsNumGPUs(code string) bool {
	return slices.Contains([]string{
		"num-gpus-differs", "gpu-uncounted", "gpu-shares-counted", "claim-uncounted",
		"gpu-two-resources", "gpu-outside-ray-container", "resources-not-parsed", "gpu-resource-unknown",
		nodepool.GPUSharesSeveral, "gpu-not-whole",
	}, code)
}

// migStrategy examines profiles that are requested by name, if nodes have MIG cards and announce no profile by its
// name.
func migStrategy(x *inventory, report reporter) {
	for _, g := range x.Groups {
		for _, r := range g.gpuRequests() {
			if !strings.HasPrefix(r.Resource, gpuinfo.MIGPrefix) {
				continue
			}
			node := otherStrategy(x, r.Resource)
			if node == nil {
				continue
			}
			strategy := node.Node.GPUs.Labels[strategyLabel]
			report(occurrence{Object: r.Of, Path: r.field().Path(),
				Seen: fmt.Sprintf("%s, and %s=%s on node %s", r.Resource, strategyLabel, strategy, node.Name),
				Fix: run(mixedStrategy).Hint("with the GPU operator; " +
					"otherwise set MIG_STRATEGY=mixed on the device plugin, or request nvidia.com/gpu")})
		}
	}
}

const (
	strategyLabel = "nvidia.com/mig.strategy"
	mixedStrategy = "kubectl patch clusterpolicies.nvidia.com/cluster-policy --type=merge " +
		`-p '{"spec":{"mig":{"strategy":"mixed"}}}'`
)

// otherStrategy returns the first node whose strategy does not announce the name, or nil if another node announces it,
// or may.
func otherStrategy(x *inventory, name string) (first *Object) {
	for _, n := range x.Nodes {
		gpus := n.Node.GPUs
		strategy := gpus.Labels[strategyLabel]
		announced := gpus.Capacity[name] > 0 || gpus.Allocatable[name] > 0 || gpus.Labels[name+".count"] != ""
		switch {
		case announced || strategy == "mixed":
			return nil
		case first == nil && (strategy == "none" || strategy == "single"):
			first = n
		}
	}
	return first
}
