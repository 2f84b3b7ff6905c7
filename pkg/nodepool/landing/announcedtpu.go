package landing

import (
	"slices"
	"strconv"
	"strings"
)

// Labels that Ray sets on TPU nodes (docs/reference/facts.md#tpu-slices). All hosts of a slice have one pod type,
// topology and name, and each has its own worker ID.
const (
	TPUPodType   = "ray.io/tpu-pod-type"
	TPUWorkerID  = "ray.io/tpu-worker-id"
	TPUSliceName = "ray.io/tpu-slice-name"
	tpuTopology  = "ray.io/tpu-topology"
)

// TPUHead returns the resource by which programs reserve a whole slice of a pod type. Only the host with worker ID 0
// has it (get_current_node_additional_resources in the same file).
func TPUHead(podType string) string { return "TPU-" + podType + "-head" }

// PodTypeOfTPUHead returns the pod type of a resource that TPUHead returned.
func PodTypeOfTPUHead(head string) string {
	return strings.TrimSuffix(strings.TrimPrefix(head, "TPU-"), "-head")
}

// IsTPUHead reports whether a resource marks the first host of a TPU slice, as TPU-v6e-16-head does.
func IsTPUHead(resource string) bool {
	return strings.HasPrefix(resource, "TPU-") && strings.HasSuffix(resource, "-head")
}

// The node selectors of TPU slices on GKE.
const (
	gkeTopology    = "cloud.google.com/gke-tpu-topology"
	gkeAccelerator = "cloud.google.com/gke-tpu-accelerator"
)

// tpuFamilies are GKE's names of TPUs, what Ray calls them, and how many cores a chip counts for in a slice's name
// (ray autoscaler/_private/kuberay/utils.py, tpu_node_selectors_to_type).
var tpuFamilies = map[string]struct {
	name  string
	cores int
}{
	"tpu-v4-podslice":      {"v4", 2},
	"tpu-v5-lite-device":   {"v5litepod", 1},
	"tpu-v5-lite-podslice": {"v5litepod", 1},
	"tpu-v5p-slice":        {"v5p", 2},
	"tpu-v6e-slice":        {"v6e", 1},
	"tpu7x":                {"v7x", 2},
}

// TPUPodTypeOf returns Ray's name of a slice on the nodes that a selector selects, v4-16 for a tpu-v4-podslice of
// topology 2x2x2, or "" if either is unknown.
func TPUPodTypeOf(selector map[string]string) string {
	return podType(selector[gkeAccelerator], selector[gkeTopology])
}

func podType(accelerator, topology string) string {
	family, known := tpuFamilies[accelerator]
	if !known {
		return ""
	}
	cores := family.cores
	for side := range strings.SplitSeq(topology, "x") {
		n, err := strconv.Atoi(side)
		if err != nil || n < 1 || n > 1<<16 {
			return ""
		}
		cores *= n
	}
	return family.name + "-" + strconv.Itoa(cores)
}

// tpuLabels adds what TPU nodes announce. The worker ID is that of the host in its replica, which the planner knows.
func (l *hostList) tpuLabels(add func(Announced, bool)) {
	add(l.label(tpuTopology, gkeTopology))
	add(l.derived(TPUPodType, "a pod type of GKE", func(h *host) (types []string) {
		accelerators, all := h.values(l.pod, gkeAccelerator)
		topologies, also := h.values(l.pod, gkeTopology)
		if !all || !also {
			return nil
		}
		for _, accelerator := range accelerators {
			for _, topology := range topologies {
				types = append(types, podType(accelerator, topology))
			}
		}
		return types
	}))
}

// tpuType derives the accelerator type of TPUs.
func (l *hostList) tpuType() Announced {
	a, _ := l.derived("", "a TPU of GKE", func(h *host) (types []string) {
		accelerators, all := h.values(l.pod, gkeAccelerator)
		for _, accelerator := range accelerators {
			if family, known := tpuFamilies[accelerator]; known && all {
				types = append(types, "TPU-"+strings.ToUpper(family.name))
			}
		}
		return types
	})
	return a
}

// derived returns what new pods announce under a Ray label whose possible values follow from each host; none, or an
// empty one, means that the host does not say.
func (l *hostList) derived(name, what string, valuesOf func(h *host) []string) (Announced, bool) {
	a := Announced{Name: name}
	for i := range l.all {
		values := valuesOf(&l.all[i])
		if len(values) == 0 || slices.Contains(values, "") {
			return Announced{Name: name, Why: "Ray detects it on the machine, and nothing shows " + what + " on " +
				l.all[i].name}, true
		}
		a.Values = append(a.Values, values...)
	}
	slices.Sort(a.Values)
	a.Values = slices.Compact(a.Values)
	a.Present, a.Certain = true, len(a.Values) == 1
	a.Why = "by the labels of its nodes"
	return a, true
}
