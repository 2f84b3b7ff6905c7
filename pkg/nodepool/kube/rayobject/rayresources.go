package rayobject

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// maxQuantity is Ray's MAX_RESOURCE_QUANTITY.
const maxQuantity = 100e12

// rayResources are the resources that a Ray node reports, as far as its command line sets them.
type rayResources struct {
	bundle raydemand.Bundle
	// failure is why `ray start` fails; empty if it starts.
	failure string
}

// rayResourcesOf reads the arguments of `ray start` the way Ray 2.60 does (its option parser, RayParams and
// ResourceAndLabelSpec). Ray detects on the machine what no flag sets; such a resource is absent here.
func rayResourcesOf(words []string, override envVar) rayResources {
	flags, failure := parseFlags(words)
	if failure != "" {
		return rayResources{failure: failure}
	}
	b := raydemand.Bundle{}
	for _, flag := range []struct{ name, resource string }{
		{numCPUs, raydemand.CPU}, {numGPUs, raydemand.GPU}, {memory, raydemand.Memory},
	} {
		text, set := flags[flag.name]
		if !set {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return rayResources{failure: fmt.Sprintf("--%s: %q is not a whole number", flag.name, text)}
		}
		if n < 0 {
			return rayResources{failure: fmt.Sprintf("--%s: %d is negative", flag.name, n)}
		}
		b[flag.resource] = raydemand.Whole(n)
	}
	if failure := addCustom(b, flags[resourcesFlag]); failure != "" {
		return rayResources{failure: failure}
	}
	if failure := applyOverride(b, override); failure != "" {
		return rayResources{failure: failure}
	}
	return rayResources{bundle: b}
}

// parseFlags accepts --name=value, --name value and bare --name. `ray start` fails with a usage error on anything else.
func parseFlags(words []string) (map[string]string, string) {
	flags := map[string]string{}
	for i := 0; i < len(words); i++ {
		name, isFlag := strings.CutPrefix(words[i], "--")
		if !isFlag {
			return nil, fmt.Sprintf("unexpected argument %q", words[i])
		}
		name, value, assigned := strings.Cut(name, "=")
		if !assigned && takesValue(name) {
			if i+1 == len(words) || strings.HasPrefix(words[i+1], "--") {
				return nil, "--" + name + " needs an argument"
			}
			i++
			value = words[i]
		} else if !assigned && i+1 < len(words) && !strings.HasPrefix(words[i+1], "--") {
			i++ // the value of a flag that does not set resources
		}
		flags[name] = value
	}
	return flags, ""
}

func takesValue(name string) bool {
	return name == numCPUs || name == numGPUs || name == memory || name == resourcesFlag
}

// addCustom reads --resources: a JSON object of whole numbers without Ray's own names.
func addCustom(b raydemand.Bundle, text string) string {
	if text == "" {
		return ""
	}
	custom := map[string]float64{}
	if err := json.Unmarshal([]byte(text), &custom); err != nil {
		return fmt.Sprintf("--resources=%s is not a JSON object of numbers", text)
	}
	for _, name := range slices.Sorted(maps.Keys(custom)) {
		switch name {
		case raydemand.CPU, raydemand.GPU, raydemand.Memory, "object_store_memory":
			return fmt.Sprintf("--resources: %s cannot be a custom resource", name)
		}
		amount, failure := customAmount("--resources", name, custom[name])
		if failure != "" {
			return failure
		}
		b[name] = amount
	}
	return ""
}

// applyOverride applies RAY_OVERRIDE_RESOURCES, which replaces the flags resource by resource.
func applyOverride(b raydemand.Bundle, override envVar) string {
	if override.value == "" {
		return ""
	}
	values := map[string]float64{}
	if err := json.Unmarshal([]byte(override.value), &values); err != nil {
		return fmt.Sprintf("%s=%s is not a JSON object of numbers", overrideResources, override.value)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if name == "object_store_memory" {
			continue
		}
		amount, failure := customAmount(overrideResources, name, values[name])
		if failure != "" {
			return failure
		}
		b[name] = amount
	}
	return ""
}

func customAmount(where, name string, value float64) (raydemand.Amount, string) {
	switch {
	case value != math.Trunc(value):
		return 0, fmt.Sprintf("%s: %s is %v, and Ray accepts whole numbers only", where, name, value)
	case value < 0:
		return 0, fmt.Sprintf("%s: %s is negative", where, name)
	case value > maxQuantity:
		return 0, fmt.Sprintf("%s: %s is above Ray's limit of %.0f", where, name, maxQuantity)
	}
	return raydemand.Whole(int64(value)), ""
}
