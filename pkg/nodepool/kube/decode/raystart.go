package decode

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// The flags of `ray start` that set a node's resources.
const (
	numCPUs       = "num-cpus"
	numGPUs       = "num-gpus"
	memory        = "memory"
	resourcesFlag = "resources"
	objectStore   = "object-store-memory"
	neuronCoreKey = "aws.amazon.com/neuroncore"
	tpuKey        = "google.com/tpu"
)

// acceleratorNames are the container resources that the operator passes on as custom Ray resources.
var acceleratorNames = map[string]string{neuronCoreKey: "neuron_cores", tpuKey: "TPU"}

var migKey = regexp.MustCompile(`nvidia\.com/mig-\d+g\.\d+gb$`)

// countsAsGPU is the operator's rule (v1.6.2, utils.IsGPUResourceKey): a name that ends with gpu, or a plain MIG
// profile. nvidia.com/gpu.shared and profiles with an extension such as mig-1g.10gb.me do not count.
func countsAsGPU(name string) bool {
	return strings.HasSuffix(name, "gpu") || migKey.MatchString(name)
}

// startParams completes rayStartParams the way the operator v1.6.2 does before it writes the `ray start` command
// (docs/reference/facts.md#flags-of-ray-start). For each flag, the first match wins:
//
//	group field resources > rayStartParams > limits of container 0 > requests of container 0 (CPU only)
func startParams(params, groupResources map[string]string, c corev1.Container, f Fields) map[string]string {
	given := params
	params = map[string]string{}
	maps.Copy(params, given)
	for _, flag := range slices.Sorted(maps.Keys(params)) {
		// Kubernetes or the shell replaces a variable in the operator's command.
		value, isVariable := strings.CutPrefix(params[flag], "$")
		if !isVariable || !takesValue(flag) {
			continue
		}
		name := strings.Trim(value, "{}()")
		switch set := env(c, name); {
		case set == nil && envFrom(c, name) != "", set != nil && set.ValueFrom != nil:
			f.Report.Add(raydemand.Warning, StartCommandUnknown, f.at("rayStartParams", flag), params[flag],
				"Heliostat does not read the source of the variable, so until a node of the group has joined, its "+
					"limits count", "write the number")
			delete(params, flag)
		case set != nil && set.Value != "":
			params[flag] = set.Value
		}
	}
	fromGroupField(params, groupResources, f)
	if _, set := params[numCPUs]; !set {
		if cpu := c.Resources.Limits["cpu"]; !cpu.IsZero() {
			params[numCPUs] = rounded(cpu)
		} else if cpu := c.Resources.Requests["cpu"]; !cpu.IsZero() {
			params[numCPUs] = rounded(cpu)
		}
	}
	if _, set := params[memory]; !set {
		if bytes := c.Resources.Limits["memory"]; !bytes.IsZero() {
			params[memory] = rounded(bytes)
		}
	}
	fromAccelerators(params, c.Resources.Limits)
	return params
}

// rounded writes a quantity rounded up to a whole number.
func rounded(q resource.Quantity) string { return strconv.FormatInt(q.Value(), 10) }

// parsedResources parses rayStartParams.resources as the operator does.
func parsedResources(params map[string]string) (amounts map[string]float64, err error) {
	amounts = map[string]float64{}
	if text, set := params[resourcesFlag]; set {
		err = json.Unmarshal([]byte(strings.Trim(text, "'\"` ")), &amounts)
	}
	return amounts, err
}

// fromAccelerators adds num-gpus from the first GPU key with a value, in byte order, and the first TPU or Neuron key.
// If the resources string is not plain JSON in quotes, the operator adds none of them.
func fromAccelerators(params map[string]string, limits corev1.ResourceList) {
	custom, err := parsedResources(params)
	if err != nil {
		return
	}
	_, hasNeuron := custom[acceleratorNames[neuronCoreKey]]
	_, hasTPU := custom[acceleratorNames[tpuKey]]
	done := hasNeuron || hasTPU
	for _, of := range slices.Sorted(maps.Keys(limits)) {
		key, quantity := string(of), limits[of]
		if quantity.IsZero() {
			continue
		}
		if _, set := params[numGPUs]; !set && countsAsGPU(key) {
			params[numGPUs] = rounded(quantity)
		}
		if name, known := acceleratorNames[key]; known && !done {
			if custom == nil { // the string was "null"
				custom = map[string]float64{}
			}
			custom[name] = quantity.AsApproximateFloat64()
			writeResources(params, custom)
			done = true
		}
	}
}

func writeResources(params map[string]string, custom map[string]float64) {
	text, err := json.Marshal(custom)
	if err != nil { // only NaN and infinities fail, and no quantity is one
		return
	}
	params[resourcesFlag] = "'" + string(text) + "'"
}

// startScript writes the flags of `ray start` as the operator does: sorted, true as a bare flag, false omitted.
func startScript(params map[string]string) string {
	var script strings.Builder
	for _, name := range slices.Sorted(maps.Keys(params)) {
		value := params[name]
		lower := strings.ToLower(value)
		takesBool := name == "log-color" || name == "include-dashboard"
		switch {
		case takesBool || (lower != "true" && lower != "false"):
			script.WriteString(" --" + name + "=" + value + " ")
		case lower == "true":
			script.WriteString(" --" + name + " ")
		}
	}
	return script.String()
}

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

// shellWord is a word of a command. If Unknown is set, the text has an expansion whose value is not known.
type shellWord struct {
	Text    string
	Unknown bool
}

// longestScript is the longest script that is read, in bytes, and mostParentheses how many it may have: the parser
// takes more than 1 KB of stack for each level, and time with its square.
const (
	longestScript   = 64 << 10
	mostParentheses = 1000
)

// shellCommands returns the words of each simple command of a bash script, wherever it is in it, as bash passes them to
// the command. known are variables whose values are known. It returns nothing for a script that is not bash, or that is
// too long.
func shellCommands(script string, known map[string]string) (commands [][]shellWord) {
	if len(script) > longestScript || strings.Count(script, "(") > mostParentheses {
		return nil
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return nil
	}
	var environ []string
	for name, value := range known {
		environ = append(environ, name+"="+value)
	}
	config := &expand.Config{Env: expand.ListEnviron(environ...)}
	syntax.Walk(file, func(node syntax.Node) bool {
		call, is := node.(*syntax.CallExpr)
		if !is {
			return true
		}
		var words []shellWord
		for _, word := range call.Args {
			texts, err := []string(nil), error(nil)
			unknown := hasUnknown(script, word, known)
			switch {
			case unknown:
			case hasBraces(word): // a few of them stand for any number of words
				texts = make([]string, 1)
				texts[0], err = expand.Literal(config, word)
			default:
				texts, err = expand.Fields(config, word)
			}
			if unknown || err != nil {
				written := script[word.Pos().Offset():word.End().Offset()]
				words = append(words, shellWord{strings.ReplaceAll(written, `"`, ""), true})
				continue
			}
			for _, text := range texts {
				words = append(words, shellWord{text, false})
			}
		}
		commands = append(commands, words)
		return true
	})
	return commands
}

// hasUnknown reports whether a word of a script has something else than text and variables whose values are known.
func hasUnknown(script string, word *syntax.Word, known map[string]string) (unknown bool) {
	syntax.Walk(word, func(node syntax.Node) bool {
		switch n := node.(type) {
		case nil, *syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted:
		case *syntax.ParamExp:
			written := script[n.Pos().Offset():n.End().Offset()]
			_, simple := known[strings.TrimSuffix(strings.TrimLeft(written, "${"), "}")]
			unknown = unknown || !simple
		default:
			unknown = true
		}
		return true
	})
	return unknown
}

// hasBraces reports whether a word has a brace outside of quotes.
func hasBraces(word *syntax.Word) bool {
	return slices.ContainsFunc(word.Parts, func(part syntax.WordPart) bool {
		text, is := part.(*syntax.Lit)
		return is && strings.Contains(text.Value, "{")
	})
}
