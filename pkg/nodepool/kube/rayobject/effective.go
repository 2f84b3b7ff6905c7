package rayobject

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/kube/shell"
	"heliostat.dev/heliostat/pkg/nodepool/raylabels"
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
	words, known := startWords(c, params, ownCommand)
	if !known {
		group.Report.Add(
			raydemand.Warning,
			StartCommandUnknown,
			containers[0].at("command"),
			c.script(),
			"the command does not show how it starts Ray, so the resources of a worker are unknown until a node of "+
				"the group has joined",
			"start Ray with $KUBERAY_GEN_RAY_START_CMD or a plain `ray start`",
		)
		return raydemand.Bundle{}
	}
	override := c.variable(overrideResources)
	reportOverride(containers[0], override)
	if override.from != "" && !override.maybe {
		return raydemand.Bundle{}
	}
	said := rayResourcesOf(words, override)
	if said.failure != "" {
		group.Report.Add(raydemand.Error, RayStartFails, group.Path().String(), strings.Join(words, " "),
			"`ray start` fails: "+said.failure, "correct rayStartParams, the group's resources or its command")
		return raydemand.Bundle{}
	}
	if podType := raylabels.TPUPodTypeOf(template.Texts("nodeSelector")); podType != "" && said.bundle["TPU"] > 0 {
		said.bundle[raylabels.SliceHead(podType)] = raydemand.One // of a replica, the first host has it
	}
	reportUnknown(group, template, c, said.bundle)
	return said.bundle
}

// startWords returns the arguments of `ray start`: the operator's, or those of a command that starts Ray itself.
func startWords(c container, params map[string]string, ownCommand bool) (words []string, known bool) {
	script := c.script()
	_, own, startsRay := strings.Cut(script, "ray start")
	switch {
	case !ownCommand && !startsRay:
		return shell.Words(startScript(params)), true
	case startsRay:
		words = shell.Words(own)
		for _, word := range words {
			name, value, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
			if takesValue(name) && strings.Contains(value, "$") {
				return nil, false
			}
		}
		return words, true
	case strings.Contains(script, "KUBERAY_GEN_RAY_START_CMD"):
		return shell.Words(startScript(params)), true
	}
	return nil, false
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
		container.Report.Add(
			raydemand.Warning,
			EnvironmentUnknown,
			container.at("env"),
			overrideResources+" by "+override.from,
			"Heliostat does not read its value, so the resources of a worker are unknown until a node of the group "+
				"has joined",
			"give "+overrideResources+" as a value",
		)
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
		}
		group.Report.Add(
			raydemand.Warning,
			ResourceUnknown,
			group.Path().String(),
			hint,
			"nothing sets how much "+resource.name+" a worker has; Ray detects it on the machine, and until then no "+
				"demand for it starts this group",
			"set a limit, or rayStartParams."+resource.flag,
		)
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
