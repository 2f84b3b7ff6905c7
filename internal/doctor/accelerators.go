package doctor

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/internal/doctor/fix"
	"heliostat.dev/heliostat/internal/doctor/inventory"
	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// acceleratorUncounted reports accelerators that Ray does not call GPU, and of which a new pod announces none.
func acceleratorUncounted(x *inventory.Inventory, g inventory.Group, report reporter) {
	if len(g.Workers.Resources) == 0 {
		return // what the pods announce is unknown
	}
	limits := g.Workers.GPUs.Limits
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		accelerator, is := gpuinfo.AcceleratorOf(name)
		counted := is && g.Workers.Resources[accelerator.Ray] > 0
		if !is || accelerator.Passed || counted || limits[name] <= 0 {
			continue
		}
		units, hint := int64(limits[name]/raydemand.One), ""
		if accelerator.Ray == "neuron_cores" {
			each, known := neuronCores(x, g, name)
			if units *= each; !known {
				hint = "with " + strconv.FormatInt(each, 10) + " cores for each device; replace it if these have others"
			}
		}
		limit := g.RayContainer().Get("resources", "limits", name)
		report(occurrence{object: g.Of, path: limit.Path(), seen: limit.String(),
			more: "Ray's name for them is " + accelerator.Ray, fix: declareResource(g, accelerator.Ray, units, hint)})
		return
	}
}

// neuronCores returns how many cores a Neuron device has: by what the nodes announce on which a pod fits, or by the
// instance type that the group selects. Otherwise it returns 2 and false, as of Trainium 1 and Inferentia 2.
func neuronCores(x *inventory.Inventory, g inventory.Group, devices string) (cores int64, known bool) {
	for _, node := range g.Workers.Pod.FittingNodes(x.NodesFor(g)) {
		if all, each := node.Allocatable[gpuinfo.NeuronCores], node.Allocatable[devices]; all > 0 && each > 0 {
			return int64(all / each), true
		}
	}
	family, _, _ := strings.Cut(g.Workers.Pod.Selector["node.kubernetes.io/instance-type"], ".")
	switch family { // AWS Neuron documentation, architecture of each family
	case "inf1":
		return 4, true
	case "inf2", "trn1", "trn1n":
		return 2, true
	}
	return 2, false
}

// declareResource declares a resource of a worker, in the field that the group uses for such things.
func declareResource(g inventory.Group, name string, units int64, hint string) fix.Fix {
	at, value := g.Path("resources", name), strconv.FormatInt(units, 10)
	if len(g.Keys("resources")) == 0 {
		text := g.Get("rayStartParams", "resources")
		amounts := map[string]float64{}
		if plain, ok := unquoted(text.Text()); ok {
			_ = json.Unmarshal([]byte(plain), &amounts) // it was JSON
		} else if text.Has() {
			return fix.Edit(g.Of, "add "+name+": "+value+" to rayStartParams.resources")
		}
		amounts[name] = float64(units)
		written, _ := json.Marshal(amounts) // numbers that were JSON
		at, value = text.Path(), "'"+string(written)+"'"
	}
	patch := fix.Patch(g.Of, fix.Set(g.Of, at, value))
	if hint != "" {
		patch = patch.Hint(hint)
	}
	return patch
}

// resourceMisplaced reports resources that are beside limits and requests, where Kubernetes has no such field, and GPUs
// of the pod, which has no resources except CPU, memory and huge pages.
func resourceMisplaced(x *inventory.Inventory, g inventory.Group, report reporter) {
	for _, c := range g.Containers() {
		for _, name := range c.Keys("resources") {
			if !slices.Contains([]string{"limits", "requests", "claims"}, name) && namesResource(name) {
				report(misplaced(g, c, c.Get("resources", name), name))
			}
		}
		for _, section := range []string{"limits", "requests"} {
			if v := c.Get(section); v.Has() {
				report(occurrence{object: g.Of, path: v.Path(), seen: section + " beside resources",
					fix: moveInto(g, v, c.Get("resources", section))})
			}
		}
	}
	for _, section := range []string{"limits", "requests"} {
		v := g.Template().Get("resources", section)
		for _, name := range v.Keys() {
			if inventory.IsGPU(x.Input.Reader.Names, name) {
				report(misplaced(g, g.RayContainer(), v.Get(name), name))
			}
		}
	}
}

// namesResource reports whether a key names a resource of a container.
func namesResource(key string) bool {
	return key == "cpu" || key == "memory" || key == "ephemeral-storage" || strings.Contains(key, "/")
}

func misplaced(g inventory.Group, c, v fieldpath.Value, name string) occurrence {
	return occurrence{object: g.Of, path: v.Path(), seen: name + ": " + v.String(),
		fix: moveInto(g, v, c.Get("resources", "limits", name))}
}

// moveInto moves a field to where it belongs, or removes it if that is there already.
func moveInto(g inventory.Group, from, to fieldpath.Value) fix.Fix {
	if to.Has() {
		return fix.Patch(g.Of, fix.Remove(from.Path()))
	}
	return fix.Patch(g.Of, fix.Set(g.Of, to.Path(), from.Raw()), fix.Remove(from.Path()))
}
