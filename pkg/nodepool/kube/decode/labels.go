package decode

import (
	"encoding/json"
	"maps"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// overrideLabels is the variable whose labels take precedence over all others (Ray's LABELS_ENVIRONMENT_VARIABLE).
const overrideLabels = "RAY_OVERRIDE_LABELS"

// addLabels reads what the template says about the labels of a group's Ray nodes. The operator passes the group's own
// labels to `ray start` and nothing else (KubeRay 1.6, updateRayStartParamsLabels).
func addLabels(f Fields, group *nodepool.WorkerGroup) {
	containers := f.Object("template").Object("spec").Objects("containers")
	if len(containers) == 0 {
		return
	}
	c := decodeContainer(containers[0].silent())
	if set := c.env[overrideLabels]; set.from == "" && set.value != "" {
		labels := map[string]string{}
		if json.Unmarshal([]byte(set.value), &labels) == nil {
			merged := maps.Clone(group.Labels)
			if merged == nil {
				merged = map[string]string{}
			}
			maps.Copy(merged, labels)
			group.Labels = merged
		}
	}
	sources := map[string]landing.LabelSource{}
	for variable, label := range landing.RayVariables() {
		if from := labelSource(f, c, variable); from != (landing.LabelSource{}) {
			sources[label] = from
		}
	}
	if len(sources) > 0 {
		group.LabelSources = sources
	}
}

// labelSource returns where a variable of the Ray container comes from. What envFrom may set is not considered: most
// such sources set other variables.
func labelSource(f Fields, c container, variable string) landing.LabelSource {
	set := c.env[variable]
	switch {
	case set.field != "":
		return fieldSource(f, set.field)
	case set.from != "":
		return landing.LabelSource{Unknown: "comes from " + set.from + ", which Heliostat does not read"}
	case set.value != "":
		return landing.LabelSource{Value: set.value}
	case strings.Contains(c.script(), variable+"="):
		return landing.LabelSource{Unknown: "is set by the container's command"}
	}
	return landing.LabelSource{}
}

// fieldSource returns what a field of the pod says. The API server copies the zone and the region of the node to the
// pod's labels when it binds the pod (docs/reference/facts.md#topology-labels-of-a-pod).
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
		labels := maps.Clone(metadata.Texts("labels"))
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, f.Texts("labels"))
		switch {
		case labels[key] != "":
			return landing.LabelSource{Value: labels[key]}
		case key == "topology.kubernetes.io/zone" || key == "topology.kubernetes.io/region":
			return landing.LabelSource{NodeLabel: key}
		}
	}
	return unknown
}
