package decode

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/pkg/gpuinfo"
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
	readLimits(&spec, s.ray.Resources)
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
	override := cmp.Or(env(s.ray, overrideResources), &corev1.EnvVar{})
	switch {
	case override.ValueFrom != nil || strings.Contains(override.Value, strconv.Quote(raydemand.GPU)):
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
func readLimits(spec *nodepool.GPUSpec, c corev1.ResourceRequirements) {
	spec.Claims, spec.Limits = len(c.Claims) > 0, landing.Quantities{}
	for _, of := range slices.Sorted(maps.Keys(c.Limits)) {
		name, quantity := string(of), c.Limits[of]
		if extended(name) {
			spec.Limits[name] = Amount(quantity)
		}
		if quantity.IsZero() {
			continue
		}
		spec.Claims = spec.Claims || strings.HasPrefix(name, gpuinfo.ClassPrefix)
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
