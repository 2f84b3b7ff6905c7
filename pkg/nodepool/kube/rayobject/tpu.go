package rayobject

import (
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// The node selectors of TPU slices on GKE.
const (
	tpuTopology    = "cloud.google.com/gke-tpu-topology"
	tpuAccelerator = "cloud.google.com/gke-tpu-accelerator"
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

// tpuType returns Ray's name of a slice, v4-16 for a tpu-v4-podslice of topology 2x2x2, or "" if either is unknown.
func tpuType(accelerator, topology string) string {
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

// addSliceHead adds the resource with which Ray programs reserve a whole slice. Only its first host reports it, from
// what Ray finds on the machine. Here, as in Ray's own autoscaler, each host of a future slice counts as having it,
// because nobody knows in advance which host will be first.
func addSliceHead(resources raydemand.Bundle, template Fields) {
	selector := template.Texts("nodeSelector")
	if slice := tpuType(selector[tpuAccelerator], selector[tpuTopology]); slice != "" && resources["TPU"] > 0 {
		resources["TPU-"+slice+"-head"] = raydemand.One
	}
}
