package raylabels

import (
	"cmp"
	"fmt"
	"strings"
)

// OwnLabel is a label that Ray sets from a variable of the container's environment (Ray 2.49 and later,
// ray/_private/resource_and_label_spec.py, _get_default_labels).
type OwnLabel struct {
	label, variable string
	// nodeLabels are the labels of Kubernetes nodes that name the same.
	nodeLabels []string
}

// ownLabels are all of them but the group's name, which the operator sets.
var ownLabels = []OwnLabel{
	{"ray.io/availability-zone", "RAY_NODE_ZONE",
		[]string{"topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"}},
	{"ray.io/availability-region", "RAY_NODE_REGION",
		[]string{"topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"}},
	{
		"ray.io/market-type",
		"RAY_NODE_MARKET_TYPE",
		[]string{"karpenter.sh/capacity-type", "eks.amazonaws.com/capacityType",
			"kubernetes.azure.com/scalesetpriority", "cloud.google.com/gke-spot"},
	},
}

// OwnVariables returns the label that Ray sets from each variable.
func OwnVariables() map[string]string {
	all := map[string]string{}
	for _, row := range ownLabels {
		all[row.variable] = row.label
	}
	return all
}

// ownLabel returns what new pods announce under a label that Ray sets from a variable. If nothing in the template sets
// the variable, an admission webhook still may: the nodes' labels then show which value is possible, and nothing is
// promised.
func (l *placeList) ownLabel(row OwnLabel, from Source) (Announced, bool) {
	switch {
	case from.Value != "":
		return Announced{Name: row.label, Values: []string{from.Value}, Certain: true, Why: "by " + row.variable}, true
	case from.Unknown != "":
		return Announced{Name: row.label, Why: row.variable + " " + from.Unknown}, true
	case from.NodeLabel != "":
		a, ok := l.label(row.label, from.NodeLabel)
		a.Why = cmp.Or(a.Why, row.variable+" is the node's label "+from.NodeLabel)
		return a, ok
	}
	for _, key := range row.nodeLabels {
		a, ok := l.label(row.label, key)
		if !ok || len(a.Values) == 0 {
			continue
		}
		for i, value := range a.Values {
			a.Values[i] = marketType(key, value)
		}
		a.Present, a.Certain = false, false
		a.Why = fmt.Sprintf(
			"nothing in its template sets %s, but its nodes have %s=%s; set it, or the label %s in the "+
				"group's labels",
			row.variable,
			key,
			strings.Join(a.Values, " and "),
			row.label,
		)
		return a, true
	}
	return Announced{}, false
}

// marketType converts what clouds write about spot nodes to Ray's spot and on-demand; other labels keep their value.
func marketType(key, value string) string {
	switch key {
	case "karpenter.sh/capacity-type", "eks.amazonaws.com/capacityType":
		return strings.ReplaceAll(strings.ToLower(value), "_", "-")
	case "kubernetes.azure.com/scalesetpriority":
		if value == "regular" {
			return "on-demand"
		}
	case "cloud.google.com/gke-spot":
		if value == "true" {
			return "spot"
		}
		return "on-demand"
	}
	return value
}
