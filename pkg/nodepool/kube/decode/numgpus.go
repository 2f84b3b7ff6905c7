package decode

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// gpuSpec reads what a group's spec says about GPUs: the declared number, and the value of --num-gpus. If both the
// group's field resources and rayStartParams set a number, the operator rejects the spec; otherwise the field would
// win.
func gpuSpec(s rayStart) nodepool.GPUSpec {
	spec, gpus := nodepool.GPUSpec{Field: GPUField(s.resources)}, gpuEntries(s.resources)
	_, err := parsedResources(s.params)
	spec.Unparsed = err != nil
	spec.Declared, spec.DeclaredBy = declaredGPUs(s.params, gpus)
	if !s.contained {
		return spec
	}
	readLimits(&spec, s.container)
	if !s.known {
		spec.Fixed = "the container's own command sets the number, and does not show how it starts Ray"
		return spec
	}
	switch spec.Derived = flagGPUs(s.words); {
	case spec.Derived == nil:
	case s.own:
		spec.DerivedBy = "the container's command"
	case spec.Declared != nil:
		spec.DerivedBy = spec.DeclaredBy
	case len(spec.Counted) > 0:
		spec.DerivedBy = "limit " + spec.Counted[0]
	}
	override := s.env[overrideResources]
	switch {
	case override.from != "" || strings.Contains(override.value, strconv.Quote(raydemand.GPU)):
		spec.Fixed = "the container's variable " + overrideResources + " sets the number: change GPU there"
	case s.own:
		spec.Fixed = "the container's own command starts Ray: change --num-gpus there"
	case differ(gpus):
		spec.Fixed = "keep one of " + entryNames(gpus) + " in the field resources: which of them counts changes from " +
			"pod to pod"
	}
	return spec
}

// readLimits reads what the Ray container has of devices, and what the operator passes on of that.
func readLimits(spec *nodepool.GPUSpec, c container) {
	spec.Claims, spec.Limits = c.claims > 0, landing.Quantities{}
	for name, quantity := range c.limits {
		if extended(name) {
			spec.Limits[name] = Amount(quantity)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.limits)) {
		if quantity := c.limits[name]; quantity.IsZero() {
			continue
		}
		if countsAsGPU(name) {
			spec.Counted = append(spec.Counted, name)
		}
		if _, passed := acceleratorNames[name]; passed {
			spec.Passed = append(spec.Passed, name)
		}
	}
}

// GPUField returns the field for a group's number of GPUs. The operator reads the field resources if it is set, with
// any key that it counts as GPUs; a second such key leaves open which one counts (ResourceKeysDiffer).
func GPUField(resources map[string]string) string {
	if len(resources) == 0 {
		return "rayStartParams." + numGPUs
	}
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		if countsAsGPU(strings.ToLower(name)) {
			return "resources." + name
		}
	}
	return "resources." + raydemand.GPU
}

func declaredGPUs(params map[string]string, gpus []resourceEntry) (*raydemand.Amount, string) {
	if least, found := leastOf(gpus); found {
		amount := Amount(least.quantity)
		return &amount, "resources." + least.name
	}
	text, set := params[numGPUs]
	if !set {
		return nil, ""
	}
	amount, err := raydemand.ParseAmount(text)
	if err != nil {
		return nil, ""
	}
	return &amount, "rayStartParams." + numGPUs
}

// flagGPUs returns the value of --num-gpus, or nil if it is absent or `ray start` does not accept it.
func flagGPUs(words []string) *raydemand.Amount {
	flags, _ := parseFlags(words) // empty if `ray start` does not accept the words
	text, set := flags[numGPUs]
	if !set {
		return nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 {
		return nil
	}
	amount := raydemand.Whole(n)
	return &amount
}

// RayAutoscalerDiffers is the code of the finding that Ray's own autoscaler expects another number of GPUs from a group
// than its pods report.
const RayAutoscalerDiffers = "ray-autoscaler-differs"

// reportExpectedGPUs reports if Ray's own autoscaler expects another number of GPUs than a pod reports. For example, it
// sees a group of MIG slices as one without GPUs, and leaves it at zero. The finding is for users who run that
// autoscaler, or may again.
func reportExpectedGPUs(s rayStart, g *nodepool.WorkerGroup) {
	expected := gpusExpectedByRay(s)
	reported, passed := g.Resources[raydemand.GPU]
	if !passed || expected == reported || g.Broken {
		return
	}
	both := "rayStartParams." + numGPUs // what Ray's autoscaler reads, as the operator does
	if len(s.resources) > 0 {
		both = "resources." + raydemand.GPU
	}
	s.group.Report.Add(raydemand.Info, RayAutoscalerDiffers, s.group.at(strings.Split(g.GPUs.Field, ".")...),
		fmt.Sprintf("pods report %s, Ray's autoscaler expects %s", reported, expected),
		"Ray's own autoscaler reads the spec by other rules than the operator, so it would start this group for the "+
			"wrong demand or for none; Heliostat plans with what pods report",
		fmt.Sprintf("set in %s how many GPUs a worker gets, and both agree: %s, as pods report, or the number in the "+
			"finding %s if there is one", both, reported, nodepool.NumGPUsMismatch))
}

// gpusExpectedByRay returns the number of GPUs that Ray's own autoscaler expects from a pod of a group (Ray 2.60.0,
// autoscaling_config.py, _get_ray_resources_from_group_spec). The first match wins:
//
//	key GPU of the string rayStartParams.resources > GPU of the group's field resources > rayStartParams.num-gpus >
//	the first limit of container 0, and then request, that ends with gpu and is above zero
func gpusExpectedByRay(s rayStart) raydemand.Amount {
	if text, set := s.params[resourcesFlag]; set && len(s.resources) == 0 {
		custom := map[string]float64{}
		plain := strings.ReplaceAll(strings.Trim(text, `'"`+"` "), `\`, "")
		if json.Unmarshal([]byte(plain), &custom) == nil && custom[raydemand.GPU] > 0 {
			return raydemand.Whole(int64(custom[raydemand.GPU]))
		}
	}
	if text, set := s.resources[raydemand.GPU]; set {
		if quantity, err := resource.ParseQuantity(text); err == nil {
			return raydemand.Whole(quantity.Value())
		}
	}
	if n, err := strconv.ParseInt(s.params[numGPUs], 10, 64); err == nil {
		return raydemand.Whole(n)
	}
	for _, list := range []map[string]resource.Quantity{s.limits, s.requests} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			if quantity := list[name]; strings.HasSuffix(name, "gpu") && quantity.Value() > 0 {
				return raydemand.Whole(quantity.Value())
			}
		}
	}
	return 0
}
