package decode

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// StatusConfigMap is where the Cluster Autoscaler writes its status, in its own namespace, usually kube-system.
const StatusConfigMap = "cluster-autoscaler-status"

// The text that the Cluster Autoscaler wrote before release 1.30: a node group's name, and the sizes on the line of its
// health (kubernetes/autoscaler, clusterstate/utils).
var (
	statusName  = regexp.MustCompile(`^\s*Name:\s+(\S+)\s*$`)
	statusSizes = regexp.MustCompile(`\bHealth:.*\(minSize=(\d+), maxSize=(\d+)\)`)
)

// statusYAML is the form since release 1.30.
type statusYAML struct {
	NodeGroups []struct {
		Name   string `json:"name"`
		Health struct {
			MinSize *int64 `json:"minSize"`
			MaxSize *int64 `json:"maxSize"`
		} `json:"health"`
	} `json:"nodeGroups"`
}

// AutoscalerCeilings reads the sizes of node groups from the Cluster Autoscaler's status, in either form. It returns an
// error for any other text.
func AutoscalerCeilings(status string) ([]landing.Ceiling, error) {
	if statusHead.MatchString(status) {
		return textCeilings(status), nil
	}
	var form statusYAML
	if err := yaml.Unmarshal([]byte(status), &form); err != nil {
		return nil, fmt.Errorf(
			"reading the Cluster Autoscaler's status, which is neither YAML nor the text of releases before 1.30: %w",
			err,
		)
	}
	var ceilings []landing.Ceiling
	for _, group := range form.NodeGroups {
		ceilings = append(ceilings, ceilingOf(group.Name, group.Health.MinSize, group.Health.MaxSize))
	}
	return ceilings, nil
}

// statusHead is the beginning of the old form.
var statusHead = regexp.MustCompile(`^Cluster-autoscaler status at |(?m)^Cluster-wide:`)

// statusUpdated is the annotation in which both forms of the status state when they were written, in the layout
// statusFormat (docs/reference/facts.md#status-of-the-cluster-autoscaler). Both texts contain the time too.
const (
	StatusUpdated = "cluster-autoscaler.kubernetes.io/last-updated"
	statusFormat  = "2006-01-02 15:04:05.999999999 -0700 MST"
)

var statusWritten = regexp.MustCompile(
	`^(?:Cluster-autoscaler status at |time: "?)(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? [-+]\d{4} \w+)`,
)

// StatusTime returns when the Cluster Autoscaler wrote its status.
func StatusTime(config *corev1.ConfigMap) (time.Time, error) {
	said := config.Annotations[StatusUpdated]
	if match := statusWritten.FindStringSubmatch(config.Data["status"]); said == "" && match != nil {
		said = match[1]
	}
	written, err := time.Parse(statusFormat, said)
	if err != nil {
		return time.Time{}, fmt.Errorf("the time when it was written is missing: %w", err)
	}
	return written, nil
}

func textCeilings(status string) []landing.Ceiling {
	var ceilings []landing.Ceiling
	name := ""
	for line := range strings.Lines(status) {
		if match := statusName.FindStringSubmatch(line); match != nil {
			name = match[1]
			continue
		}
		match := statusSizes.FindStringSubmatch(line)
		if match == nil || name == "" {
			continue
		}
		least, errLeast := strconv.ParseInt(match[1], 10, 64)
		most, errMost := strconv.ParseInt(match[2], 10, 64)
		if errLeast == nil && errMost == nil {
			ceilings = append(ceilings, ceilingOf(name, &least, &most))
		}
		name = ""
	}
	return ceilings
}

// ceilingOf ignores a maximum below the minimum: some providers report no maximum, which appears as 0.
func ceilingOf(group string, least, most *int64) landing.Ceiling {
	if least != nil && most != nil && *most < *least {
		most = nil
	}
	return landing.Ceiling{Group: group, MinNodes: least, MaxNodes: most, Source: landing.FromClusterAutoscaler}
}
