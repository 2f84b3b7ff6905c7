package doctor

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// How the operator makes `ray start` is in docs/reference/facts.md#flags-of-ray-start.

func resourcesNotParsed(_ *inventory, g rayGroup, report reporter) {
	v := g.Get("rayStartParams", "resources")
	if g.Pods.GPUs.Unparsed && dropsAccelerator(g, v) {
		report(occurrence{Object: g.Of, Path: v.Path(), Seen: v.Text(), Fix: requote(g, v)})
	}
}

func resourcesQuoting(_ *inventory, g rayGroup, report reporter) {
	v := g.Get("rayStartParams", "resources")
	if _, readable := unquoted(v.Text()); readable && g.Pods.GPUs.Unparsed && !dropsAccelerator(g, v) {
		report(occurrence{Object: g.Of, Path: v.Path(), Seen: v.Text(), Fix: requote(g, v)})
	}
}

// dropsAccelerator reports whether the operator would derive something from the limits of the group that the string,
// which it cannot parse, does not have itself: the shell that runs `ray start` can read more than the operator.
func dropsAccelerator(g rayGroup, v fieldpath.Value) bool {
	var amounts map[string]float64
	if plain, ok := unquoted(v.Text()); ok {
		_ = json.Unmarshal([]byte(plain), &amounts) // it was JSON
	}
	_, tpu := amounts["TPU"]
	_, neuron := amounts["neuron_cores"]
	gpus := g.Pods.GPUs
	return len(gpus.Counted) > 0 && !g.Has("rayStartParams", "num-gpus") || len(gpus.Passed) > 0 && !tpu && !neuron
}

// requote writes the string so that the operator and the shell both read it.
func requote(g rayGroup, v fieldpath.Value) fix {
	if plain, ok := unquoted(v.Text()); ok {
		return patch(g.Of, replace(v.Path(), "'"+plain+"'"))
	}
	return edit(g.Of, `write JSON in single quotes: '{"name": 1}'`)
}

// unquoted returns the JSON in a string with quotes and backslashes, as Ray's documentation writes it.
func unquoted(text string) (string, bool) {
	text = strings.ReplaceAll(strings.Trim(text, "'\"` "), `\`, "")
	var amounts map[string]float64
	if json.Unmarshal([]byte(text), &amounts) != nil {
		return "", false
	}
	plain, err := json.Marshal(amounts)
	return string(plain), err == nil
}

// resourcesWithFlags are resources that `ray start` refuses in its flag --resources.
var resourcesWithFlags = []string{raydemand.CPU, raydemand.GPU, raydemand.Memory, "object_store_memory"}

// startableResources writes rayStartParams.resources so that `ray start` accepts it: in whole numbers, and without
// resources that have their own flags. It returns false if that changes nothing.
func startableResources(g rayGroup, v fieldpath.Value) (repair fix, ok bool) {
	plain, readable := unquoted(v.Text())
	var amounts map[string]float64
	if !readable || json.Unmarshal([]byte(plain), &amounts) != nil {
		return repair, false
	}
	whole := map[string]int64{}
	for name, amount := range amounts {
		if !slices.Contains(resourcesWithFlags, name) && amount >= 0 && amount < 1<<53 {
			whole[name] = int64(math.Ceil(amount))
		}
	}
	written, err := json.Marshal(whole)
	text := "'" + string(written) + "'"
	switch {
	case err != nil || text == v.Text():
		return repair, false
	case len(whole) == 0:
		repair = patch(g.Of, remove(v.Path()))
	default:
		repair = patch(g.Of, replace(v.Path(), text))
	}
	if len(whole) < len(amounts) {
		repair = repair.Hint("CPU, GPU and memory follow from the limits, or set num-cpus, num-gpus and memory")
	}
	return repair, true
}

func resourceNameTaken(_ *inventory, g rayGroup, report reporter) {
	for _, name := range g.Keys("resources") {
		right, renamed := g.Workers.Renamed[name]
		if !renamed || g.Has("resources", right) {
			continue
		}
		from, to := g.Path("resources", name), g.Path("resources", right)
		report(occurrence{Object: g.Of, Path: from, Seen: name,
			Fix: patch(g.Of, move(from, to)).Hint("or rename it, if it is a resource of its own")})
	}
}

func memoryLimitAbsent(_ *inventory, g rayGroup, report reporter) {
	c := g.rayContainer()
	declared := g.Has("rayStartParams", "memory") || g.hasResource("memory")
	limited := c.Has("resources", "limits", "memory") || g.template().Has("resources", "limits", "memory")
	if !c.Has() || declared || limited {
		return
	}
	limit, request := c.Path("resources", "limits", "memory"), c.Get("resources", "requests", "memory")
	if request.Has() {
		report(occurrence{Object: g.Of, Path: limit, Seen: "request " + request.String() + ", no limit",
			Fix: patch(g.Of, set(g.Of, limit, request.Raw()))})
		return
	}
	report(occurrence{Object: g.Of, Path: limit,
		Fix: patch(g.Of, set(g.Of, limit, "8Gi")).Hint("replace 8Gi with what the pod needs")})
}

// cpuAbsent reports a group for which nothing says how many CPUs it has. Ray's own autoscaler raises ValueError then,
// also for the head (Ray 2.60, autoscaling_config.py, _get_num_cpus); otherwise the head may have those of its node.
func cpuAbsent(_ *inventory, g rayGroup, report reporter) {
	c := g.rayContainer()
	_, known := g.Pods.Resources[raydemand.CPU]
	declared := g.Has("rayStartParams", "num-cpus") || c.Has("resources", "limits", "cpu") ||
		c.Has("resources", "requests", "cpu") || g.hasResource("cpu")
	ownCommand := len(g.Pods.Resources) == 0 && len(c.Items("command")) > 0
	rays := g.Of.raysAutoscaler()
	if !c.Has() || g.Pods.Broken || declared || !rays && (g.Workers == nil || known || ownCommand) {
		return
	}
	request := c.Path("resources", "requests", "cpu")
	found := occurrence{Object: g.Of, Path: request,
		Fix: patch(g.Of, set(g.Of, request, "4")).Hint("replace 4 with what the pod needs")}
	if !rays {
		found.Severity = raydemand.Warning
		found.Why = "Ray counts the CPUs of the whole node, and Ray's own autoscaler would fail on such a group"
	}
	report(found)
}

func headTakesWork(_ *inventory, g rayGroup, report reporter) {
	scaled := g.Of.Cluster.InTreeAutoscaling || g.Of.Mode() == nodepool.Managed || g.Of.Mode() == nodepool.Shadow
	if g.Has("rayStartParams", "num-cpus") || g.hasResource("cpu") || len(g.Of.Cluster.Groups) == 0 || !scaled {
		return
	}
	at := g.Path("rayStartParams", "num-cpus")
	report(occurrence{Object: g.Of, Path: at, Fix: patch(g.Of, set(g.Of, at, "0"))})
}
