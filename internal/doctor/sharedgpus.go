package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// gpuMemoryAboveCard compares what a pod requests of one card with the largest card that a node, or the declared shape
// of one, has.
func gpuMemoryAboveCard(x *inventory, g rayGroup, report reporter) {
	short, above := g.Pods.Pod.CardShortage(x.Input.Reader, x.nodesFor(g))
	if !above {
		return
	}
	for _, r := range g.gpuRequests() {
		if r.Resource != short.Resource || !r.Limit.Has() {
			continue
		}
		found := shows(r.Limit, patch(r.changes(strconv.FormatInt(short.Most(), 10))...))
		found.More = fmt.Sprintf("the largest card, on node %s, has %d", short.Node, short.Largest)
		if short.Cards > 1 {
			found.More = fmt.Sprintf("the pod takes %d of each of %d cards, and ", short.Each, short.Cards) + found.More
		}
		report(found)
	}
}

// countedShares are resources whose names end with gpu, so that the operator counts each unit as a GPU, and what a unit
// is.
var countedShares = map[string]string{
	"koordinator.sh/gpu":     "a percent of a card",
	"k8s.amazonaws.com/vgpu": "a share of a card",
}

func gpuSharesCounted(x *inventory, g rayGroup, report reporter) {
	if g.declaresGPUs() {
		return
	}
	count, _, problem := g.Workers.Devices(x.Input.Reader)
	if problem != "" {
		count = raydemand.One
	}
	for name, unit := range countedShares {
		limit := g.rayContainer().Get("resources", "limits", name)
		if q, ok := quantity(limit); ok && q.Sign() > 0 {
			report(occurrence{Path: limit.Path(), Seen: limit.String(), More: "a unit of " + name + " is " + unit,
				Fix: declareGPUs(g, count.String())})
		}
	}
}

func mpsSharesSeveral(x *inventory, g rayGroup, report reporter) {
	node, only := mpsNodes(x, g)
	if !only {
		return
	}
	for _, r := range g.gpuRequests() {
		if q, ok := quantity(r.Limit); ok && q.Value() >= 2 && r.isDevices() {
			report(occurrence{Path: r.Limit.Path(), Fix: patch(r.changes("1")...),
				Seen: fmt.Sprintf("%s of a GPU that node %s shares with MPS", r.Limit, node)})
		}
	}
}

// mpsNodes returns a node with MPS on which a pod of the group fits and would get a share, or nothing, and whether all
// nodes on which it fits are such.
func mpsNodes(x *inventory, g rayGroup) (one string, only bool) {
	isShare := func(r gpuRequest) bool { return strings.HasPrefix(r.Resource, "nvidia.com/") && r.isDevices() }
	if !slices.ContainsFunc(g.gpuRequests(), isShare) {
		return "", false
	}
	only = true
	for _, n := range x.nodesFor(g) {
		switch {
		case n.Declared || g.Workers.Pod.Fit([]landing.Node{n}).Nodes == 0:
		case n.GPUs.Kind != gpuinfo.MPS:
			only = false
		case one == "":
			one = n.Name
		}
	}
	return one, only && one != ""
}

// visibleDevices is the variable that says which GPUs a container sees. CUDA's images set it to all. If NVIDIA's
// runtime is the default of a node, a container that requests no GPU then sees all of them.
const visibleDevices = "NVIDIA_VISIBLE_DEVICES"

func gpusVisible(x *inventory, g rayGroup, report reporter) {
	misplaced := func(u fieldpath.Unknown) bool { // it may name a GPU, which the container is meant to see
		return strings.HasPrefix(u.Path.String(), g.template().Path().String()+".")
	}
	if g.requestsGPU() || !g.rayContainer().Has() || slices.ContainsFunc(g.Of.bySchema().unknown, misplaced) {
		return
	}
	node, count := landing.SeesGPUs(x.Input.Reader, &g.Pods.Pod, x.nodesFor(g))
	if count == 0 {
		return
	}
	found := said(g.rayContainer().Path("env"), landing.VisibleFinding(node, count, g.Pods.GPUs.Declared))
	found.Object = g.Of
	report(found)
}

func gpuVisibleAll(_ *inventory, g rayGroup, report reporter) {
	for _, c := range g.containers() {
		for _, variable := range c.Items("env") {
			v := variable.Get("value")
			if variable.Text("name") != visibleDevices || slices.Contains([]string{"", "void", "none"}, v.Text()) {
				continue
			}
			found := occurrence{Path: v.Path(), Seen: v.Text(), Fix: remove(variable.Path())}
			if !g.requestsGPU() {
				found.Fix = set(v.Path(), "void").Hint("or request the GPUs that its tasks need")
			}
			report(found)
		}
	}
}

func gpuPrivileged(_ *inventory, g rayGroup, report reporter) {
	for _, c := range g.containers() {
		if v := c.Get("securityContext", "privileged"); v.Flag() && g.requestsGPU() {
			report(shows(v, set(v.Path(), false)))
		}
	}
}
