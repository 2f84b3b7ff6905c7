package doctor

import (
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// visibleDevices is the variable that says which GPUs a container sees. CUDA's images set it to all. If NVIDIA's
// runtime is the default of a node, a container that requests no GPU then sees all of them.
const visibleDevices = "NVIDIA_VISIBLE_DEVICES"

func gpusVisible(x *inventory, g rayGroup, report reporter) {
	if g.requestsGPU() || !g.rayContainer().Has() || misplacesGPU(x, g) {
		return
	}
	node, count := landing.SeesGPUs(x.Input.Reader, &g.Pods.Pod, x.nodesFor(g))
	if count == 0 {
		return
	}
	if request, uncounted := requestGPUs(g); uncounted {
		report(occurrence{Object: g.Of, Path: request.At, Seen: "node " + node + " has GPUs", Why: whyUncounted,
			Fix: patch(g.Of, request)})
		return
	}
	list := g.rayContainer().Get("env")
	report(occurrence{Object: g.Of, Path: list.Path(), Seen: "node " + node + " has GPUs",
		Fix: patch(g.Of, appendTo(g.Of, list, map[string]any{"name": visibleDevices, "value": "void"}))})
}

// whyUncounted says what is wrong with GPUs that a group uses and does not request.
const whyUncounted = "num-gpus tells Ray of GPUs that no request counts: Kubernetes gives the same ones to other pods"

// requestGPUs requests the GPUs that num-gpus declares. It returns false if there are none, or if the group requests
// some.
func requestGPUs(g rayGroup) (operation, bool) {
	gpus := g.Pods.GPUs.Declared
	if gpus == nil || *gpus <= 0 || g.requestsGPU() {
		return operation{}, false
	}
	at := g.rayContainer().Get("resources", "limits").Path().Key(gpuinfo.NvidiaGPU)
	return set(g.Of, at, gpus.String()), true
}

func gpuVisibleAll(_ *inventory, g rayGroup, report reporter) {
	for _, c := range g.containers() {
		for _, variable := range c.Items("env") {
			v := variable.Get("value")
			if variable.Text("name") != visibleDevices || v.Text() != "all" {
				continue
			}
			found := occurrence{Object: g.Of, Path: v.Path(), Seen: "all",
				Fix: patch(g.Of, remove(variable.Path()))}
			if request, uncounted := requestGPUs(g); uncounted {
				found.Why, found.Fix = whyUncounted, patch(g.Of, request, remove(variable.Path()))
			} else if !g.requestsGPU() {
				found.Fix = patch(g.Of, replace(v.Path(), "void"))
			}
			report(found)
		}
	}
}

func gpuPrivileged(_ *inventory, g rayGroup, report reporter) {
	for _, c := range g.containers() {
		if v := c.Get("securityContext", "privileged"); v.Flag() && g.requestsGPU() {
			report(shows(g.Of, v, patch(g.Of, replace(v.Path(), false))))
		}
	}
}
