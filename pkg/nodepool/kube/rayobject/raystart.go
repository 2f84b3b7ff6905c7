package rayobject

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// The flags of `ray start` that set a node's resources.
const (
	numCPUs       = "num-cpus"
	numGPUs       = "num-gpus"
	memory        = "memory"
	resourcesFlag = "resources"
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
func startParams(params, groupResources map[string]string, c container, f Fields) map[string]string {
	params = maps.Clone(params)
	if params == nil {
		params = map[string]string{}
	}
	fromGroupField(params, groupResources, f)
	if _, set := params[numCPUs]; !set {
		if cpu := c.limits["cpu"]; !cpu.IsZero() {
			params[numCPUs] = rounded(cpu)
		} else if cpu := c.requests["cpu"]; !cpu.IsZero() {
			params[numCPUs] = rounded(cpu)
		}
	}
	if _, set := params[memory]; !set {
		if bytes := c.limits["memory"]; !bytes.IsZero() {
			params[memory] = rounded(bytes)
		}
	}
	fromAccelerators(params, c.limits)
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
func fromAccelerators(params map[string]string, limits map[string]resource.Quantity) {
	custom, err := parsedResources(params)
	if err != nil {
		return
	}
	_, hasNeuron := custom[acceleratorNames[neuronCoreKey]]
	_, hasTPU := custom[acceleratorNames[tpuKey]]
	done := hasNeuron || hasTPU
	for _, key := range slices.Sorted(maps.Keys(limits)) {
		quantity := limits[key]
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
