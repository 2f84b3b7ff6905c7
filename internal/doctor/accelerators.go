package doctor

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// acceleratorUncounted reports accelerators that Ray does not call GPU, and of which a new pod announces none.
func acceleratorUncounted(x *inventory, g rayGroup, report reporter) {
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
		limit := g.rayContainer().Get("resources", "limits", name)
		report(occurrence{Object: g.Of, Path: limit.Path(), Seen: limit.String(),
			More: "Ray's name for them is " + accelerator.Ray, Fix: declareResource(g, accelerator.Ray, units, hint)})
		return
	}
}

// neuronCores returns how many cores a Neuron device has: by what the nodes announce on which a pod fits, or by the
// instance type that the group selects. Otherwise it returns 2 and false, as of Trainium 1 and Inferentia 2.
func neuronCores(x *inventory, g rayGroup, devices string) (cores int64, known bool) {
	for _, node := range g.Workers.Pod.FittingNodes(x.nodesFor(g)) {
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
func declareResource(g rayGroup, name string, units int64, hint string) fix {
	at, value := g.Path("resources", name), strconv.FormatInt(units, 10)
	if len(g.Keys("resources")) == 0 {
		text := g.Get("rayStartParams", "resources")
		amounts := map[string]float64{}
		if plain, ok := unquoted(text.Text()); ok {
			_ = json.Unmarshal([]byte(plain), &amounts) // it was JSON
		} else if text.Has() {
			return edit(g.Of, "add "+name+": "+value+" to rayStartParams.resources")
		}
		amounts[name] = float64(units)
		written, _ := json.Marshal(amounts) // numbers that were JSON
		at, value = text.Path(), "'"+string(written)+"'"
	}
	patch := patch(g.Of, set(g.Of, at, value))
	if hint != "" {
		patch = patch.Hint(hint)
	}
	return patch
}

// misplaced is a field of a pod template, and where it belongs.
type misplaced struct{ at, to fieldpath.Value }

// misplacedOf returns resources that are beside limits and requests, where Kubernetes has no such field, limits and
// requests beside resources, and GPUs of the pod, which has no resources except CPU, memory and huge pages.
func misplacedOf(x *inventory, g rayGroup) (all []misplaced) {
	sections := []string{"limits", "requests"}
	for _, c := range g.containers() {
		for _, name := range c.Keys("resources") {
			if !slices.Contains(append(sections, "claims"), name) && namesResource(name) {
				all = append(all, misplaced{c.Get("resources", name), c.Get("resources", "limits", name)})
			}
		}
		for _, section := range sections {
			if v := c.Get(section); v.Has() {
				all = append(all, misplaced{v, c.Get("resources", section)})
			}
		}
	}
	for _, section := range sections {
		v := g.template().Get("resources", section)
		for _, name := range v.Keys() {
			if isGPU(x.Input.Reader.Names, name) {
				all = append(all, misplaced{v.Get(name), g.rayContainer().Get("resources", "limits", name)})
			}
		}
	}
	return all
}

func resourceMisplaced(x *inventory, g rayGroup, report reporter) {
	for _, m := range misplacedOf(x, g) {
		found := occurrence{Object: g.Of, Path: m.at.Path(), Seen: m.at.Path().LastKey() + ": " + m.at.String()}
		found.Fix = patch(g.Of, set(g.Of, m.to.Path(), m.at.Raw()), remove(m.at.Path()))
		if m.to.Has() {
			found.Fix = patch(g.Of, remove(m.at.Path()))
		}
		report(found)
	}
}

// misplacesGPU reports whether one of the resources in the wrong place is a GPU: the pods are meant to have one.
func misplacesGPU(x *inventory, g rayGroup) bool {
	isGPU := func(name string) bool { return isGPU(x.Input.Reader.Names, name) }
	return slices.ContainsFunc(misplacedOf(x, g), func(m misplaced) bool {
		return isGPU(m.at.Path().LastKey()) || slices.ContainsFunc(m.at.Keys(), isGPU)
	})
}

// namesResource reports whether a key names a resource of a container.
func namesResource(key string) bool {
	return key == "cpu" || key == "memory" || key == "ephemeral-storage" || strings.Contains(key, "/")
}
