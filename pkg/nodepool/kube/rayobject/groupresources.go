package rayobject

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Codes of findings about the entries of a group's field resources.
const (
	// QuantityIgnored: the entry is not a quantity. The operator ignores it.
	QuantityIgnored = "quantity-ignored"
	// ResourceKeysDiffer: several keys set the same flag of `ray start` to different numbers.
	ResourceKeysDiffer = "resource-keys-differ"
)

// resourceEntry is an entry of a group's field resources.
type resourceEntry struct {
	name     string
	quantity resource.Quantity
}

// fromGroupField applies the group's field resources. The operator ignores the case of the well-known names, so a
// custom name that ends with gpu (SharedGPU) becomes num-gpus. If several keys become the same flag, the least of them
// is planned: any of them may count (docs/reference/facts.md#keys-of-the-field-resources).
func fromGroupField(params, groupResources map[string]string, f Fields) {
	custom, byFlag := map[string]float64{}, map[string][]resourceEntry{}
	for _, name := range slices.Sorted(maps.Keys(groupResources)) {
		quantity, err := resource.ParseQuantity(groupResources[name])
		if err != nil {
			f.Report.Add(raydemand.Warning, QuantityIgnored, f.at("resources")+"."+name, groupResources[name],
				"it is not a quantity; the operator ignores it", "write a whole number")
			continue
		}
		if flag := rayFlags[operatorName(name)]; flag != "" {
			byFlag[flag] = append(byFlag[flag], resourceEntry{name, quantity})
		} else {
			custom[name] = quantity.AsApproximateFloat64()
		}
	}
	for _, flag := range []string{numCPUs, memory, numGPUs} {
		if least, found := leastOf(byFlag[flag]); found {
			params[flag] = rounded(least.quantity)
			reportKeys(f, flag, byFlag[flag], params[flag])
		}
	}
	if len(custom) > 0 {
		writeResources(params, custom)
	}
}

// rayFlags are the flags of `ray start` for Ray's own resources.
var rayFlags = map[string]string{raydemand.CPU: numCPUs, raydemand.Memory: memory, raydemand.GPU: numGPUs}

// operatorName returns which of Ray's resources the operator takes an entry of the group's field resources for.
func operatorName(name string) string {
	switch lower := strings.ToLower(name); {
	case lower == "cpu":
		return raydemand.CPU
	case lower == "memory":
		return raydemand.Memory
	case countsAsGPU(lower):
		return raydemand.GPU
	}
	return name
}

// renamed returns the entries that the operator takes for a resource of another name.
func renamed(groupResources map[string]string) map[string]string {
	var all map[string]string
	for name := range groupResources {
		if of := operatorName(name); of != name {
			if all == nil {
				all = map[string]string{}
			}
			all[name] = of
		}
	}
	return all
}

// gpuEntries returns the entries that become num-gpus, sorted by name.
func gpuEntries(groupResources map[string]string) []resourceEntry {
	var entries []resourceEntry
	for _, name := range slices.Sorted(maps.Keys(groupResources)) {
		quantity, err := resource.ParseQuantity(groupResources[name])
		if err == nil && operatorName(name) == raydemand.GPU {
			entries = append(entries, resourceEntry{name, quantity})
		}
	}
	return entries
}

func leastOf(entries []resourceEntry) (least resourceEntry, found bool) {
	for i, entry := range entries {
		if i == 0 || entry.quantity.Cmp(least.quantity) < 0 {
			least = entry
		}
	}
	return least, len(entries) > 0
}

// differ reports whether it matters which of the entries counts.
func differ(entries []resourceEntry) bool {
	return slices.ContainsFunc(entries, func(e resourceEntry) bool {
		return e.quantity.Value() != entries[0].quantity.Value()
	})
}

// entryNames returns the names with "and": GPU and MyGPU.
func entryNames(entries []resourceEntry) string {
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.name
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func reportKeys(f Fields, flag string, entries []resourceEntry, planned string) {
	if !differ(entries) {
		return
	}
	seen := make([]string, len(entries))
	for i, entry := range entries {
		seen[i] = fmt.Sprintf("%s: %s", entry.name, entry.quantity.String())
	}
	fix := "keep one of them"
	if flag == numGPUs {
		fix += "; give a resource of your own a name that does not end with gpu, in any case"
	}
	f.Report.Add(raydemand.Warning, ResourceKeysDiffer, f.at("resources"), strings.Join(seen, ", "),
		fmt.Sprintf("the operator passes each of %s to `ray start` as --%s, and the last one counts, in an order that "+
			"changes from pod to pod; the plan uses the smallest, %s", entryNames(entries), flag, planned), fix)
}
