package doctor

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// rayStart are checks of what becomes of `ray start` (docs/reference/facts.md#flags-of-ray-start).
var rayStart = []Check{
	{
		Code: "resources-not-parsed", Severity: raydemand.Error,
		Why: "the operator cannot read the string as JSON and drops the GPUs that it would have derived from the limits: Ray counts what it happens " +
			"to see on the machine",
		look: perGroup(func(_ *exam, g group, tell func(sight)) {
			v := g.get("rayStartParams", "resources")
			if v.has() && !operatorParses(v.text()) && g.accelerated() && !g.get("rayStartParams", "num-gpus").has() {
				tell(sight{of: g.of, at: v.at, seen: v.text(), fix: g.requote(v)})
			}
		}),
	},
	{
		Code: "resources-quoting", Severity: raydemand.Info,
		Why: "the shell reads the string and the operator does not: add a GPU or TPU to the limits, and it will not be counted",
		look: perGroup(func(_ *exam, g group, tell func(sight)) {
			v := g.get("rayStartParams", "resources")
			if _, meant := unquoted(v.text()); v.has() && meant && !operatorParses(v.text()) && !g.accelerated() {
				tell(sight{of: g.of, at: v.at, seen: v.text(), fix: g.requote(v)})
			}
		}),
	},
	{
		Code: "resource-name-taken", Severity: raydemand.Warning,
		Why: "the operator does not mind the case of cpu and memory in resources, and takes what ends with gpu for GPU; Ray's own autoscaler takes the name for " +
			"a resource of that very name, which no node ever announces",
		look: perWorkers(func(_ *exam, g group, tell func(sight)) {
			for _, name := range g.get("resources").keys() {
				right := rayName(name)
				if v := g.get("resources", name); right != name && !g.get("resources", right).has() {
					tell(sight{of: g.of, at: v.at, seen: name, fix: g.patch(move(v.at, g.get("resources", right).at)).hint("or call it what it is, if it is a resource of its own")})
				}
			}
		}),
	},
	{
		Code: "memory-limit-absent", Severity: raydemand.Warning,
		Why: "Ray takes the memory of the whole node for its own, schedules by it, and the kernel or the kubelet ends the pod",
		look: perGroup(func(_ *exam, g group, tell func(sight)) {
			limit := g.ray().get("resources", "limits", "memory")
			if limit.has() || g.get("rayStartParams", "memory").has() || g.memoryField() || !g.ray().has() || g.template().get("resources", "limits", "memory").has() {
				return
			}
			request := g.ray().get("resources", "requests", "memory")
			if request.has() {
				tell(sight{of: g.of, at: limit.at, seen: "request " + request.String() + ", no limit", fix: g.patch(g.of.set(limit.at, request.raw))})
				return
			}
			tell(sight{of: g.of, at: limit.at, fix: g.patch(g.of.set(limit.at, "8Gi")).hint("with what the pod needs")})
		}),
	},
	{
		Code: "cpu-absent", Severity: raydemand.Warning,
		Why: "Ray counts the CPUs of the whole node, and Ray's own autoscaler fails on such a group for the whole cluster",
		look: perWorkers(func(_ *exam, g group, tell func(sight)) {
			c := g.ray()
			_, said := g.workers.Resources[raydemand.CPU]
			if said || !c.has() || g.workers.Broken || c.get("resources", "limits", "cpu").has() || c.get("resources", "requests", "cpu").has() ||
				g.get("rayStartParams", "num-cpus").has() || len(g.workers.Resources) == 0 && len(c.get("command").items()) > 0 {
				return
			}
			at := c.get("resources", "requests", "cpu").at
			tell(sight{of: g.of, at: at, fix: g.patch(g.of.set(at, "4")).hint("with what the pod needs")})
		}),
	},
	{
		Code: "head-takes-work", Severity: raydemand.Info,
		Why: "the head runs tasks and actors like a worker, beside the GCS: work that takes its memory takes the cluster down",
		look: perGroup(func(_ *exam, g group, tell func(sight)) {
			params := g.get("rayStartParams", "num-cpus")
			if g.workers == nil && !params.has() && !g.cpuField() && len(g.of.Cluster.Groups) > 0 {
				tell(sight{of: g.of, at: params.at, fix: g.patch(g.of.set(params.at, "0"))})
			}
		}),
	},
}

// rayName is what the operator makes of a name in a group's resources.
func rayName(name string) string {
	switch lower := strings.ToLower(name); {
	case lower == "cpu":
		return raydemand.CPU
	case lower == "memory":
		return raydemand.Memory
	case strings.HasSuffix(lower, "gpu"), strings.HasPrefix(lower, migPrefix):
		return raydemand.GPU
	}
	return name
}

func (g group) memoryField() bool { return g.field("memory") }

func (g group) cpuField() bool { return g.field("cpu") }

// field reports whether the group's field resources has the name; the operator ignores its case.
func (g group) field(name string) bool {
	return slices.ContainsFunc(g.get("resources").keys(), func(key string) bool { return strings.EqualFold(key, name) })
}

// plainMIG are the profiles that the operator counts; one with an attribute such as .me it does not.
var plainMIG = regexp.MustCompile(`^nvidia\.com/mig-\d+g\.\d+gb$`)

// accelerated reports whether the Ray container has a limit that the operator would turn into a flag of `ray start`.
func (g group) accelerated() bool {
	limits := g.ray().get("resources", "limits")
	for _, name := range limits.keys() {
		q, ok := limits.get(name).quantity()
		if ok && q.Sign() > 0 && (strings.HasSuffix(name, "gpu") || plainMIG.MatchString(name) || name == "google.com/tpu" || name == "aws.amazon.com/neuroncore") {
			return true
		}
	}
	return false
}

// operatorParses reports whether the operator v1.6.2 can read rayStartParams.resources: JSON with numbers, perhaps in quotes.
func operatorParses(text string) bool {
	var amounts map[string]float64
	return json.Unmarshal([]byte(strings.Trim(text, "'\"` ")), &amounts) == nil
}

// unquoted is the JSON that was meant by a string with quotes and backslashes, as Ray's documentation writes it.
func unquoted(text string) (string, bool) {
	text = strings.ReplaceAll(strings.Trim(text, "'\"` "), `\`, "")
	var amounts map[string]float64
	if json.Unmarshal([]byte(text), &amounts) != nil {
		return "", false
	}
	plain, err := json.Marshal(amounts)
	return string(plain), err == nil
}

// startable writes the string so that `ray start` takes it: without the names that have flags of their own, and in whole numbers. ok is false where that
// changes nothing.
func (g group) startable(v value) (right remedy, ok bool) {
	plain, readable := unquoted(v.text())
	var amounts map[string]float64
	if !readable || json.Unmarshal([]byte(plain), &amounts) != nil {
		return right, false
	}
	whole := map[string]int64{}
	for name, amount := range amounts {
		if !slices.Contains(ownFlags, name) && amount >= 0 && amount < 1<<53 {
			whole[name] = int64(math.Ceil(amount))
		}
	}
	text := "'" + plainJSON(whole) + "'"
	switch {
	case text == v.text():
		return right, false
	case len(whole) == 0:
		right = g.patch(remove(v.at))
	default:
		right = g.patch(op{Op: "replace", At: v.at, Value: text})
	}
	if len(whole) < len(amounts) {
		right = right.hint("CPU, GPU and memory follow from the limits, else num-cpus, num-gpus and memory say them")
	}
	return right, true
}

// ownFlags are resources that `ray start` refuses in its flag --resources.
var ownFlags = []string{raydemand.CPU, raydemand.GPU, raydemand.Memory, "object_store_memory"}

// requote is the command that writes the string so that the operator and the shell both read it.
func (g group) requote(v value) remedy {
	if plain, ok := unquoted(v.text()); ok {
		return g.patch(op{Op: "replace", At: v.at, Value: "'" + plain + "'"})
	}
	return g.of.edit(`write JSON in single quotes: '{"name": 1}'`)
}
