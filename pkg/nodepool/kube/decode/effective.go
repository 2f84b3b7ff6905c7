package decode

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"mvdan.cc/sh/v3/syntax"

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

// rayStart is how the first container of a group's pods, whatever its name, starts Ray. The words are the arguments of
// `ray start`. If own is set, the container's command has them, not the operator. Unless it is known, the command does
// not show how it starts Ray, and they are the operator's. Without a container, the operator rejects the spec.
type rayStart struct {
	group, template, of   Fields
	params, resources     map[string]string // of the group
	ray                   corev1.Container
	words                 []string
	contained, own, known bool
}

// effectiveResources returns the resources that a new pod of a group reports to Ray: from the flags that the operator
// passes to `ray start`, or from the container's own command. A resource that nothing sets is absent, and a finding
// says that Ray will detect it.
func effectiveResources(s rayStart) raydemand.Bundle {
	if !s.contained {
		return raydemand.Bundle{}
	}
	if !s.known {
		s.group.Report.Add(raydemand.Warning, StartCommandUnknown, s.of.at("command"), script(s.ray),
			"the command does not show how it starts Ray, so until a node of the group has joined, the resources of a "+
				"worker are those of rayStartParams and the limits, as for Ray's own autoscaler",
			"start Ray with $KUBERAY_GEN_RAY_START_CMD or a plain `ray start`")
	}
	reportOverride(s.of, s.ray)
	override := cmp.Or(env(s.ray, overrideResources), &corev1.EnvVar{})
	if override.ValueFrom != nil {
		return raydemand.Bundle{}
	}
	bundle, failure := rayResourcesOf(s.words, override.Value)
	if failure != "" {
		if s.known {
			reportFailure(s, failure)
		}
		return raydemand.Bundle{}
	}
	if s.own {
		addDetected(bundle, s.ray.Resources.Limits)
	}
	if podType := landing.TPUPodTypeOf(s.template.Texts("nodeSelector")); podType != "" && bundle["TPU"] > 0 {
		bundle[landing.TPUHead(podType)] = raydemand.One // of a replica, the first host has it
	}
	reportUnknown(s, bundle)
	return bundle
}

// reportFailure reports why `ray start` fails, and how a command has to expand the operator's text.
func reportFailure(s rayStart, failure string) {
	fix := "correct rayStartParams, the group's resources or its command"
	if strings.Contains(script(s.ray), generatedCommand) && !strings.Contains(script(s.ray), "eval") {
		fix += `; the value of $` + generatedCommand + ` has quotes: eval "$` + generatedCommand + `" removes them`
	}
	s.group.Report.Add(raydemand.Error, RayStartFails, s.group.at(), strings.Join(s.words, " "),
		"`ray start` fails: "+failure, fix)
}

// addDetected adds what Ray detects in a container whose own command does not set it: the CPUs of the limit
// (Ray, _private/utils.py, get_num_cpus), and the GPUs that the device plugin gives it.
func addDetected(bundle raydemand.Bundle, limits corev1.ResourceList) {
	params := map[string]string{}
	fromAccelerators(params, limits)
	if cpu := limits["cpu"]; cpu.Sign() > 0 {
		params[numCPUs] = rounded(cpu)
	}
	for flag, name := range map[string]string{numCPUs: raydemand.CPU, numGPUs: raydemand.GPU} {
		n, err := strconv.ParseInt(params[flag], 10, 64)
		if _, set := bundle[name]; err == nil && !set {
			bundle[name] = raydemand.Whole(n)
		}
	}
}

// startOf reads how a group starts Ray.
func startOf(group Fields, pod *corev1.Pod, ownCommand bool) rayStart {
	s := rayStart{group: group, template: group.Object("template").Object("spec"), known: true}
	if containers := s.template.Objects("containers"); len(containers) > 0 && len(pod.Spec.Containers) > 0 {
		s.of, s.contained, s.ray = containers[0], true, pod.Spec.Containers[0]
	}
	s.params, s.resources = group.Texts("rayStartParams"), group.Texts("resources")
	if !s.contained {
		return s
	}
	script, flags := script(s.ray), startScript(startParams(s.params, s.resources, s.ray, group))
	s.words = flagWords(flags)
	if !ownCommand && !strings.Contains(script, "ray start") {
		return s
	}
	generated, uses := "ray start "+flags, strings.Contains(script, generatedCommand)
	words := slices.Concat(s.ray.Command, s.ray.Args)
	for i, word := range words {
		// Kubernetes replaces $(NAME) in a command before the shell reads it.
		words[i] = strings.ReplaceAll(word, "$("+generatedCommand+")", generated)
		if quoted, err := syntax.Quote(words[i], syntax.LangBash); ownCommand && err == nil {
			words[i] = quoted // the operator joins the words of a command that it wraps
		}
	}
	script = strings.Join(words, " ")
	variables := map[string]string{}
	for _, set := range s.ray.Env {
		delete(variables, set.Name)
		if set.ValueFrom == nil && !strings.Contains(script, set.Name+"=") {
			variables[set.Name] = set.Value
		}
	}
	variables[generatedCommand] = generated
	found := startsIn(script, variables, mostNested)
	if len(found) == 0 {
		s.known = strings.Contains(script, generatedCommand)
		return s
	}
	s.known = !setsUnknown(found[0])
	for _, other := range found[1:] {
		s.known = s.known && slices.Equal(other, found[0]) // not one for the head and one for workers
	}
	if s.known {
		s.words, s.own = textsOf(found[0]), !uses
	}
	return s
}

// mostNested is how deep scripts in scripts are read: a variable may have itself in its value.
const mostNested = 4

// startsIn returns the arguments of each `ray start` of a script, and of the scripts that it passes to a shell or eval,
// so deep.
func startsIn(script string, variables map[string]string, deep int) (found [][]shellWord) {
	if deep < 0 {
		return nil
	}
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
				found = append(found, startsIn(strings.Join(textsOf(command[i+1:]), " "), variables, deep-1)...)
				break
			}
			if i > 0 {
				flag := command[i-1].Text
				if flag == "--" || strings.HasPrefix(flag, "-") && strings.HasSuffix(flag, "c") {
					found = append(found, startsIn(name, variables, deep-1)...)
				}
			}
		}
	}
	return found
}

// flagWords returns the words of the operator's flags. Flags that bash cannot read are split at blanks.
func flagWords(flags string) []string {
	if found := startsIn("ray start "+flags, nil, mostNested); len(found) > 0 {
		return textsOf(found[0])
	}
	return strings.Fields(flags)
}

// setsUnknown reports whether an argument has an unknown part that may set resources.
func setsUnknown(words []shellWord) bool {
	for i, word := range words {
		name, isFlag := strings.CutPrefix(word.Text, "--")
		name, _, _ = strings.Cut(name, "=")
		before, ofFlag := "", false
		if i > 0 {
			before, ofFlag = strings.CutPrefix(words[i-1].Text, "--")
		}
		if word.Unknown && (isFlag && takesValue(name) || !isFlag && (!ofFlag || takesValue(before))) {
			return true
		}
	}
	return false
}

func textsOf(words []shellWord) (texts []string) {
	for _, word := range words {
		texts = append(texts, word.Text)
	}
	return texts
}

// reportOverride reports that resources come from a source that Heliostat does not read. The planner ignores what
// envFrom may set: most such sources set other variables, and the first worker that joins shows its resources.
func reportOverride(container Fields, ray corev1.Container) {
	switch set, source := env(ray, overrideResources), envFrom(ray, overrideResources); {
	case set == nil && source != "":
		container.Report.Add(raydemand.Info, EnvironmentUnknown, container.at("envFrom"), source,
			"Heliostat does not read it, and it may set "+overrideResources+", which overrides everything else that "+
				"sets a worker's resources",
			"if it does not, set "+overrideResources+
				` to "" in env, which overrides envFrom, or give envFrom a prefix; if it does, move it to env`)
	case set != nil && set.ValueFrom != nil:
		container.Report.Add(raydemand.Warning, EnvironmentUnknown, container.at("env"),
			overrideResources+" by valueFrom",
			"Heliostat does not read its value, so the resources of a worker are unknown until a node of the group "+
				"has joined",
			"give "+overrideResources+" as a value")
	}
}

// reportUnknown reports which amounts Ray will detect. GPU is reported only if the pod may have one.
func reportUnknown(s rayStart, said raydemand.Bundle) {
	for _, resource := range []struct{ name, flag string }{
		{raydemand.CPU, numCPUs}, {raydemand.Memory, memory}, {raydemand.GPU, numGPUs},
	} {
		if _, named := said[resource.name]; named {
			continue
		}
		hint := ""
		if resource.name == raydemand.GPU {
			if hint = acceleratorHint(s); hint == "" {
				continue
			}
			if _, err := parsedResources(s.params); err != nil && countsAsGPU(hint) {
				s.group.Report.Add(raydemand.Warning, ResourceUnknown, s.group.at("rayStartParams", resourcesFlag),
					s.params[resourcesFlag],
					"the operator cannot parse it as JSON, so it does not count the limit "+hint+"; Ray detects its "+
						"GPUs on the machine, and until then no demand for GPU starts this group",
					`write JSON in single quotes: '{"name": 1}'`)
				continue
			}
		}
		s.group.Report.Add(raydemand.Warning, ResourceUnknown, s.group.at(), hint,
			"nothing sets how much "+resource.name+" a worker has; Ray detects it on the machine, and until then no "+
				"demand for it starts this group",
			"set a limit, or rayStartParams."+resource.flag)
	}
}

// acceleratorHint returns what suggests that a pod sees GPUs although no flag counts them, or "".
func acceleratorHint(s rayStart) string {
	limits := s.ray.Resources.Limits
	for _, of := range slices.Sorted(maps.Keys(limits)) {
		name, quantity := string(of), limits[of]
		_, err := (gpuinfo.Names{}).Resource(name)
		_, other := gpuinfo.AcceleratorOf(name)
		class, _ := strings.CutPrefix(name, gpuinfo.ClassPrefix)
		isGPU := !errors.Is(err, gpuinfo.ErrNotGPU) || class != name && gpuinfo.ClassNamesGPU(class)
		if !quantity.IsZero() && !other && isGPU {
			return name
		}
	}
	if len(s.ray.Resources.Claims) > 0 {
		return "resources.claims"
	}
	if class, _ := s.template.Get("runtimeClassName").Raw().(string); strings.Contains(class, "nvidia") {
		return "runtimeClassName " + class
	}
	return ""
}

// maxQuantity is Ray's MAX_RESOURCE_QUANTITY.
const maxQuantity = 100e12

// rayResourcesOf reads the arguments of `ray start` the way Ray 2.60 does (its option parser, RayParams and
// ResourceAndLabelSpec), and returns the resources that a Ray node reports, or why `ray start` fails. Ray detects on
// the machine what no flag sets; such a resource is absent here.
func rayResourcesOf(words []string, override string) (b raydemand.Bundle, failure string) {
	flags, failure := parseFlags(words)
	if failure != "" {
		return nil, failure
	}
	b = raydemand.Bundle{}
	for _, flag := range []struct{ name, resource string }{
		{numCPUs, raydemand.CPU}, {numGPUs, raydemand.GPU}, {memory, raydemand.Memory}, {objectStore, ""},
	} {
		text, set := flags[flag.name]
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		switch {
		case !set:
		case err != nil:
			return nil, fmt.Sprintf("--%s: %q is not a whole number", flag.name, text)
		case n < 0:
			return nil, fmt.Sprintf("--%s: %d is negative", flag.name, n)
		case flag.resource != "":
			b[flag.resource] = raydemand.Whole(n)
		}
	}
	if text := strings.TrimSpace(flags["labels"]); strings.HasPrefix(text, "{") { // Ray, _private/label_utils.py
		return nil, "--labels: want key=value pairs with commas, got " + text
	}
	return b, cmp.Or(addAmounts(b, "--"+resourcesFlag, flags[resourcesFlag]),
		addAmounts(b, overrideResources, override))
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

// addAmounts reads --resources, or RAY_OVERRIDE_RESOURCES, which replaces the flags resource by resource: a JSON object
// of whole numbers. Only the variable may have Ray's own names. It returns why `ray start` fails.
func addAmounts(b raydemand.Bundle, where, text string) (failure string) {
	amounts := map[string]float64{}
	if text != "" && json.Unmarshal([]byte(text), &amounts) != nil {
		return fmt.Sprintf("%s=%s is not a JSON object of numbers", where, text)
	}
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		value, isStore := amounts[name], name == "object_store_memory"
		switch {
		case where != overrideResources && (isStore || rayFlags[name] != ""):
			return fmt.Sprintf("%s: %s cannot be a custom resource", where, name)
		case isStore:
		case value != math.Trunc(value):
			return fmt.Sprintf("%s: %s is %v, and Ray accepts whole numbers only", where, name, value)
		case value < 0:
			return fmt.Sprintf("%s: %s is negative", where, name)
		case value > maxQuantity:
			return fmt.Sprintf("%s: %s is above Ray's limit of %.0f", where, name, maxQuantity)
		default:
			b[name] = raydemand.Whole(int64(value))
		}
	}
	return ""
}
