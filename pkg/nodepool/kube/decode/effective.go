package decode

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Codes of findings about the resources that a worker group's pods report to Ray.
const (
	// RayStartFails: `ray start` fails on the group's pods.
	RayStartFails = "ray-start-fails"
	// ResourceUnknown: the command line does not set a resource, so Ray detects it on the machine.
	ResourceUnknown = "resource-unknown"
	// StartCommandUnknown: the container's own command does not show how it starts Ray.
	StartCommandUnknown = "start-command-unknown"
	// EnvironmentUnknown: a variable that sets resources comes, or may come, from a ConfigMap or a Secret.
	EnvironmentUnknown = "environment-unknown"
)

const (
	overwriteAnnotation = "ray.io/overwrite-container-cmd"
	overrideResources   = "RAY_OVERRIDE_RESOURCES"
	generatedCommand    = "KUBERAY_GEN_RAY_START_CMD"
)

// effectiveResources returns the resources that a new pod of a group reports to Ray: from the flags that the operator
// passes to `ray start`, or from the container's own command. A resource that nothing sets is absent, and a finding
// says that Ray will detect it.
func effectiveResources(group Fields, ownCommand bool) raydemand.Bundle {
	template := group.Object("template").Object("spec")
	containers := template.Objects("containers")
	if len(containers) == 0 {
		// The operator rejects such a spec; see reportRefusals.
		return raydemand.Bundle{}
	}
	// Container 0 is the Ray container, whatever its name.
	c := decodeContainer(containers[0])
	params := startParams(group.Texts("rayStartParams"), group.Texts("resources"), c, group)
	start, known := startOf(c, params, ownCommand)
	if !known {
		group.Report.Add(
			raydemand.Warning,
			StartCommandUnknown,
			containers[0].at("command"),
			c.script(),
			"the command does not show how it starts Ray, so until a node of the group has joined, the resources of a "+
				"worker are those of rayStartParams and the limits, as for Ray's own autoscaler",
			"start Ray with $KUBERAY_GEN_RAY_START_CMD or a plain `ray start`",
		)
	}
	override := c.variable(overrideResources)
	reportOverride(containers[0], override)
	if override.from != "" && !override.maybe {
		return raydemand.Bundle{}
	}
	said := rayResourcesOf(start.words, override)
	if said.failure != "" {
		if known {
			reportFailure(group, c, start, said.failure)
		}
		return raydemand.Bundle{}
	}
	if start.own {
		addDetected(said.bundle, c)
	}
	if podType := landing.TPUPodTypeOf(template.Texts("nodeSelector")); podType != "" && said.bundle["TPU"] > 0 {
		said.bundle[landing.TPUHead(podType)] = raydemand.One // of a replica, the first host has it
	}
	reportUnknown(group, template, c, said.bundle)
	return said.bundle
}

// reportFailure reports why `ray start` fails, and how a command has to expand the operator's text.
func reportFailure(group Fields, c container, start rayStart, failure string) {
	fix := "correct rayStartParams, the group's resources or its command"
	if strings.Contains(c.script(), generatedCommand) && !strings.Contains(c.script(), "eval") {
		fix += `; the value of $` + generatedCommand + ` has quotes: eval "$` + generatedCommand + `" removes them`
	}
	group.Report.Add(raydemand.Error, RayStartFails, group.Path().String(), strings.Join(start.words, " "),
		"`ray start` fails: "+failure, fix)
}

// addDetected adds what Ray detects in a container whose own command does not set it: the CPUs of the limit
// (Ray, _private/utils.py, get_num_cpus), and the GPUs that the device plugin gives it.
func addDetected(bundle raydemand.Bundle, c container) {
	params := map[string]string{}
	fromAccelerators(params, c.limits)
	if cpu := c.limits["cpu"]; cpu.Sign() > 0 {
		params[numCPUs] = rounded(cpu)
	}
	for flag, name := range map[string]string{numCPUs: raydemand.CPU, numGPUs: raydemand.GPU} {
		n, err := strconv.ParseInt(params[flag], 10, 64)
		if _, set := bundle[name]; err == nil && !set {
			bundle[name] = raydemand.Whole(n)
		}
	}
}

// rayStart has the arguments of `ray start`. If own is set, the container's command has them, not the operator.
type rayStart struct {
	words []string
	own   bool
}

// startOf returns how a pod starts Ray: with the operator's arguments, or as its own command says. If it is not known,
// they are the operator's.
func startOf(c container, params map[string]string, ownCommand bool) (start rayStart, known bool) {
	operators := rayStart{words: shellWords(startScript(params))}
	script := c.script()
	if !ownCommand && !strings.Contains(script, "ray start") {
		return operators, true
	}
	generated := "ray start " + startScript(params)
	// Kubernetes replaces $(NAME) in a command before the shell reads it.
	script = strings.ReplaceAll(script, "$("+generatedCommand+")", generated)
	found := startsIn(script, func(name string) (string, bool) {
		if name == generatedCommand {
			return generated, true
		}
		set, known := c.env[name]
		return set.value, known && set.from == "" && !strings.Contains(script, name+"=")
	})
	if len(found) == 0 {
		return operators, strings.Contains(script, generatedCommand)
	}
	words, known := argumentsOf(found[0])
	for _, other := range found[1:] {
		if !slices.Equal(other, found[0]) { // such as one for the head and one for workers
			known = false
		}
	}
	if !known {
		return operators, false
	}
	return rayStart{words, !strings.Contains(c.script(), generatedCommand)}, true
}

// startsIn returns the arguments of each `ray start` of a script, and of the scripts that it passes to a shell or eval.
func startsIn(script string, variables shellVariables) (found [][]shellWord) {
	for _, command := range shellCommands(script, variables) {
		for i, word := range command {
			name := word.Text
			if name == "echo" || name == "printf" {
				break
			}
			isRay := name == "ray" || strings.HasSuffix(name, "/ray")
			if isRay && i+1 < len(command) && command[i+1].Text == "start" {
				found = append(found, command[i+2:])
				break
			}
			if name == "eval" {
				var all []string
				for _, argument := range command[i+1:] {
					all = append(all, argument.Text)
				}
				found = append(found, startsIn(strings.Join(all, " "), variables)...)
				break
			}
			if i > 0 && strings.ContainsAny(name, " \n") {
				flag := command[i-1].Text
				if flag == "--" || strings.HasPrefix(flag, "-") && strings.HasSuffix(flag, "c") {
					found = append(found, startsIn(name, variables)...)
				}
			}
		}
	}
	return found
}

// argumentsOf returns the texts of the words, or false if one has an unknown part that may set resources.
func argumentsOf(words []shellWord) (texts []string, known bool) {
	for i, word := range words {
		name, isFlag := strings.CutPrefix(word.Text, "--")
		name, _, _ = strings.Cut(name, "=")
		before, ofFlag := "", false
		if i > 0 {
			before, ofFlag = strings.CutPrefix(words[i-1].Text, "--")
		}
		if word.Unknown && (isFlag && takesValue(name) || !isFlag && (!ofFlag || takesValue(before))) {
			return nil, false
		}
		texts = append(texts, word.Text)
	}
	return texts, true
}

// reportOverride reports that resources come from a source that Heliostat does not read. The planner ignores what
// envFrom may set: most such sources set other variables, and the first worker that joins shows its resources.
func reportOverride(container Fields, override envVar) {
	switch {
	case override.maybe:
		container.Report.Add(
			raydemand.Info,
			EnvironmentUnknown,
			container.at("envFrom"),
			override.from,
			"Heliostat does not read it, and it may set "+
				""+overrideResources+", which overrides everything else that sets a worker's resources",
			"if it does not, set "+overrideResources+
				` to "" in env, which overrides envFrom, or give envFrom a prefix; if it does, move it to env`,
		)
	case override.from != "":
		container.Report.Add(raydemand.Warning, EnvironmentUnknown, container.at("env"),
			overrideResources+" by "+override.from,
			"Heliostat does not read its value, so the resources of a worker are unknown until a node of the group "+
				"has joined",
			"give "+overrideResources+" as a value")
	}
}

// reportUnknown reports which amounts Ray will detect. GPU is reported only if the pod may have one.
func reportUnknown(group, template Fields, c container, said raydemand.Bundle) {
	for _, resource := range []struct{ name, flag string }{
		{raydemand.CPU, numCPUs}, {raydemand.Memory, memory}, {raydemand.GPU, numGPUs},
	} {
		if _, named := said[resource.name]; named {
			continue
		}
		hint := ""
		if resource.name == raydemand.GPU {
			if hint = acceleratorHint(template, c); hint == "" {
				continue
			}
			params := group.Texts("rayStartParams")
			if _, err := parsedResources(params); err != nil && countsAsGPU(hint) {
				group.Report.Add(raydemand.Warning, ResourceUnknown, group.at("rayStartParams", resourcesFlag),
					params[resourcesFlag], "the operator cannot parse it as JSON, so it does not count the limit "+hint+
						"; Ray detects its GPUs on the machine, and until then no demand for GPU starts this group",
					`write JSON in single quotes: '{"name": 1}'`)
				continue
			}
		}
		group.Report.Add(raydemand.Warning, ResourceUnknown, group.Path().String(), hint,
			"nothing sets how much "+resource.name+" a worker has; Ray detects it on the machine, and until then no "+
				"demand for it starts this group",
			"set a limit, or rayStartParams."+resource.flag)
	}
}

// acceleratorHint returns what suggests that a pod sees GPUs although no flag counts them, or "".
func acceleratorHint(template Fields, c container) string {
	for _, name := range slices.Sorted(maps.Keys(c.limits)) {
		_, err := (gpuinfo.Names{}).Resource(name)
		_, other := gpuinfo.AcceleratorOf(name)
		if quantity := c.limits[name]; !quantity.IsZero() && !other && !errors.Is(err, gpuinfo.ErrNotGPU) {
			return name
		}
	}
	if c.claims > 0 {
		return "resources.claims"
	}
	if class, _ := template.Get("runtimeClassName").Raw().(string); strings.Contains(class, "nvidia") {
		return "runtimeClassName " + class
	}
	return ""
}

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
		{numCPUs, raydemand.CPU}, {numGPUs, raydemand.GPU}, {memory, raydemand.Memory}, {objectStore, ""},
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
		if flag.resource != "" {
			b[flag.resource] = raydemand.Whole(n)
		}
	}
	if text := strings.TrimSpace(flags["labels"]); strings.HasPrefix(text, "{") { // Ray, _private/label_utils.py
		return rayResources{failure: "--labels: want key=value pairs with commas, got " + text}
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
	return name == numCPUs || name == numGPUs || name == memory || name == resourcesFlag || name == objectStore
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
