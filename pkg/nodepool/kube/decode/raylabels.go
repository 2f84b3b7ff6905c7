package decode

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// addLabels reads what the template says about the labels of a group's Ray nodes. The operator passes the group's own
// labels to `ray start` and nothing else (KubeRay 1.6, updateRayStartParamsLabels).
func addLabels(s rayStart, group *nodepool.WorkerGroup) {
	sources := map[string]landing.LabelSource{}
	for variable, label := range landing.RayVariables() {
		if from := labelSource(s.group, s.ray, variable); from != (landing.LabelSource{}) {
			sources[label] = from
		}
	}
	overrides := map[string]string{}
	set := env(s.ray, landing.OverrideLabels)
	if set != nil && set.ValueFrom == nil && json.Unmarshal([]byte(set.Value), &overrides) == nil {
		declared := map[string]string{}
		maps.Copy(declared, group.Labels)
		for label, text := range overrides {
			from := sourceOf(s.group, above(s.ray, set), text)
			if declared[label] = from.Value; from != (landing.LabelSource{Value: from.Value}) {
				from.Overrides = true
				sources[label] = from
				delete(declared, label)
			}
		}
		group.Labels = declared
	}
	if len(sources) > 0 {
		group.LabelSources = sources
	}
}

// labelSource returns where a variable of the Ray container comes from. What envFrom may set is not considered: most
// such sources set other variables.
func labelSource(f Fields, c corev1.Container, variable string) landing.LabelSource {
	switch set := env(c, variable); {
	case set != nil && fieldPath(set) != "":
		return fieldSource(f, fieldPath(set))
	case set != nil && set.ValueFrom != nil:
		return landing.LabelSource{Unknown: "comes from valueFrom, which Heliostat does not read"}
	case set != nil && set.Value != "":
		return sourceOf(f, above(c, set), set.Value)
	case strings.Contains(script(c), variable+"="):
		return landing.LabelSource{Unknown: "is set by the container's command"}
	}
	return landing.LabelSource{}
}

// above returns a container with the variables that are above one of its own.
func above(c corev1.Container, own *corev1.EnvVar) corev1.Container {
	for i := range c.Env {
		if &c.Env[i] == own {
			c.Env = c.Env[:i]
			break
		}
	}
	return c
}

// fieldPath returns the field of the pod that a variable is read from, if it is.
func fieldPath(set *corev1.EnvVar) string {
	if set.ValueFrom == nil || set.ValueFrom.FieldRef == nil {
		return ""
	}
	return set.ValueFrom.FieldRef.FieldPath
}

// sourceOf returns where a part of a variable's value comes from. Kubernetes replaces $(NAME) in it with the value of a
// variable above.
func sourceOf(f Fields, above corev1.Container, text string) landing.LabelSource {
	if !strings.Contains(text, "$(") {
		return landing.LabelSource{Value: text}
	}
	name, refers := strings.CutPrefix(text, "$(")
	name, closed := strings.CutSuffix(name, ")")
	switch earlier := env(above, name); {
	case !refers || !closed || earlier == nil:
	case fieldPath(earlier) != "":
		return fieldSource(f, fieldPath(earlier))
	case earlier.ValueFrom == nil && !strings.Contains(earlier.Value, "$("):
		return landing.LabelSource{Value: earlier.Value}
	}
	return landing.LabelSource{Unknown: fmt.Sprintf("has %q, which Heliostat does not resolve", text)}
}

// fieldSource returns what a field of the pod says. The API server copies the zone and the region of the node to the
// pod's labels when it binds the pod (docs/reference/facts.md#topology-labels-of-a-pod), and the operator names the
// replica of each pod of a multi-host group (docs/reference/facts.md#multi-host-replicas).
func fieldSource(f Fields, field string) landing.LabelSource {
	unknown := landing.LabelSource{Unknown: "is the pod's " + field + ", which the template does not set"}
	kind, rest, subscript := strings.Cut(field, "['")
	key, closed := strings.CutSuffix(rest, "']")
	if !subscript || !closed {
		return unknown
	}
	metadata := f.Object("template").Object("metadata")
	switch kind {
	case "metadata.annotations":
		if value := metadata.Texts("annotations")[key]; value != "" {
			return landing.LabelSource{Value: value}
		}
	case "metadata.labels":
		switch value, ofGroup := f.Texts("labels")[key]; {
		case key == replicaLabel && f.silent().Int32("numOfHosts", 1) > 1:
			return landing.LabelSource{Replica: true}
		case ofGroup && value != "":
			return landing.LabelSource{Value: value}
		case !ofGroup && metadata.Texts("labels")[key] != "":
			return landing.LabelSource{Value: metadata.Texts("labels")[key]}
		case key == "topology.kubernetes.io/zone" || key == "topology.kubernetes.io/region":
			return landing.LabelSource{NodeLabel: key}
		}
	}
	return unknown
}
