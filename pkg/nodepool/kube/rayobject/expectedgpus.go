package rayobject

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// RayAutoscalerDiffers is the code of the finding that Ray's own autoscaler expects another number of GPUs from a group
// than its pods report.
const RayAutoscalerDiffers = "ray-autoscaler-differs"

// reportExpectedGPUs reports if Ray's own autoscaler expects another number of GPUs than a pod reports. For example, it
// sees a group of MIG slices as one without GPUs, and leaves it at zero. The finding is for users who run that
// autoscaler, or may again.
func reportExpectedGPUs(group Fields, g *nodepool.WorkerGroup) {
	expected := gpusExpectedByRay(group)
	reported, passed := g.Resources[raydemand.GPU]
	if !passed || expected == reported || g.Broken {
		return
	}
	group.Report.Add(
		raydemand.Info,
		RayAutoscalerDiffers,
		group.at(strings.Split(g.GPUs.Field, ".")...),
		fmt.Sprintf("pods report %s, Ray's autoscaler expects %s", reported, expected),
		"Ray's own autoscaler reads the spec by other rules than the operator, so it would start this group for the "+
			"wrong demand or for none; Heliostat plans with what pods report",
		fmt.Sprintf(
			"set in %s how many GPUs a worker gets, and both agree: %s, as pods report, or the number in the finding "+
				"%s if there is one",
			rayField(group),
			reported,
			nodepool.NumGPUsMismatch,
		),
	)
}

// gpusExpectedByRay returns the number of GPUs that Ray's own autoscaler expects from a pod of a group (Ray 2.60.0,
// autoscaling_config.py, _get_ray_resources_from_group_spec). The first match wins:
//
//	key GPU of the string rayStartParams.resources > GPU of the group's field resources > rayStartParams.num-gpus >
//	the first limit of container 0, and then request, that ends with gpu and is above zero
func gpusExpectedByRay(group Fields) raydemand.Amount {
	params, resources := group.Texts("rayStartParams"), group.Texts("resources")
	if text, set := params[resourcesFlag]; set && len(resources) == 0 {
		custom := map[string]float64{}
		plain := strings.ReplaceAll(strings.Trim(text, `'"`+"` "), `\`, "")
		if json.Unmarshal([]byte(plain), &custom) == nil && custom[raydemand.GPU] > 0 {
			return raydemand.Whole(int64(custom[raydemand.GPU]))
		}
	}
	if text, set := resources[raydemand.GPU]; set {
		if quantity, err := resource.ParseQuantity(text); err == nil {
			return raydemand.Whole(quantity.Value())
		}
	}
	if n, err := strconv.ParseInt(params[numGPUs], 10, 64); err == nil {
		return raydemand.Whole(n)
	}
	containers := group.Object("template").Object("spec").Objects("containers")
	if len(containers) == 0 {
		return 0
	}
	c := decodeContainer(containers[0])
	for _, list := range []map[string]resource.Quantity{c.limits, c.requests} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			if quantity := list[name]; strings.HasSuffix(name, "gpu") && quantity.Value() > 0 {
				return raydemand.Whole(quantity.Value())
			}
		}
	}
	return 0
}

// rayField returns the field that both Ray's autoscaler and the operator read a number from.
func rayField(group Fields) string {
	if len(group.Texts("resources")) > 0 {
		return "resources." + raydemand.GPU
	}
	return "rayStartParams." + numGPUs
}
