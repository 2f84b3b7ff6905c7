package decode

import (
	"cmp"
	"maps"
	"unicode"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// neighbors reads from a worker group what decides beside which pods its pods may run.
func neighbors(group Fields, cluster nodepool.ClusterKey) landing.Neighbors {
	template := group.Object("template")
	spec, n := template.Object("spec"), landing.Neighbors{Namespace: cluster.Namespace}
	n.Labels = podLabels(group, cluster.Name, workerNode)
	const required = "requiredDuringSchedulingIgnoredDuringExecution"
	affinity := spec.Object("affinity")
	beyond := func(rule string, term Fields) {
		n.Beyond = cmp.Or(n.Beyond, rule+" with topologyKey "+term.Text("topologyKey"))
	}
	for _, term := range affinity.Object("podAntiAffinity").Objects(required) {
		if term.Text("topologyKey") != landing.HostnameLabel {
			beyond("podAntiAffinity", term)
			continue
		}
		n.Apart = append(n.Apart, podTerm(term, n.Labels))
	}
	for _, term := range affinity.Object("podAffinity").Objects(required) {
		beyond("podAffinity", term)
	}
	for _, term := range spec.Objects("topologySpreadConstraints") {
		switch {
		case term.Text("whenUnsatisfiable") == "ScheduleAnyway":
		case term.Text("topologyKey") != landing.HostnameLabel:
			beyond("topologySpreadConstraints", term)
		default:
			n.Spread = append(n.Spread, landing.SpreadTerm{
				MaxSkew: term.Int64("maxSkew"), MinDomains: term.Int64("minDomains"),
				Selector:        withLabelKeys(podSelector(term, "labelSelector"), term, n.Labels),
				HonorsTaints:    term.Text("nodeTaintsPolicy") == "Honor",
				IgnoresAffinity: term.Text("nodeAffinityPolicy") == "Ignore",
			})
		}
	}
	n.HostPorts = hostPorts(spec)
	return n
}

// podLabels returns the labels of a group's pods: those that the operator sets, and over them the template's and the
// group's (docs/reference/facts.md#labels-of-worker-pods).
func podLabels(group Fields, cluster, nodeType string) map[string]string {
	labels := map[string]string{
		"ray.io/is-ray-node": "yes", "ray.io/identifier": identifier(cluster + "-" + nodeType),
		"app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator",
	}
	silent := group.silent() // the decoder of the group reports the faults
	maps.Copy(labels, silent.Object("template").Object("metadata").Texts("labels"))
	maps.Copy(labels, silent.Texts("labels"))
	labels[ClusterLabel], labels[groupLabel], labels[nodeTypeLabel] = cluster, silent.Text("groupName"), nodeType
	if nodeType == headNode {
		labels[groupLabel] = headGroup
	}
	return labels
}

// identifier shortens a label's value as the operator does (CheckLabel): the end of it stays.
func identifier(value string) string {
	const longest = 63
	if len(value) > longest {
		value = value[len(value)-longest:]
	}
	if unicode.IsPunct(rune(value[0])) {
		value = "r" + value[1:]
	}
	return value
}

func podTerm(term Fields, own map[string]string) landing.PodTerm {
	t := landing.PodTerm{Namespaces: term.TextList("namespaces"),
		Selector: withLabelKeys(podSelector(term, "labelSelector"), term, own)}
	if term.Has("namespaceSelector") {
		selector := podSelector(term, "namespaceSelector")
		t.NamespaceSelector = &selector
	}
	return t
}

func podSelector(term Fields, name string) landing.PodSelector {
	if !term.Has(name) {
		return landing.PodSelector{Nothing: true}
	}
	selector := term.Object(name)
	list := requirements(selector, "matchExpressions")
	labels := selector.Texts("matchLabels")
	for _, key := range sortedKeys(labels) {
		list = append(list, landing.Requirement{Key: key, Operator: "In", Values: []string{labels[key]}})
	}
	return landing.PodSelector{Requirements: list}
}

// withLabelKeys adds what the API server makes of matchLabelKeys and mismatchLabelKeys: the values of the pod's own
// labels. A label that the pod lacks is ignored.
func withLabelKeys(selector landing.PodSelector, term Fields, own map[string]string) landing.PodSelector {
	for _, row := range []struct{ field, operator string }{{"matchLabelKeys", "In"}, {"mismatchLabelKeys", "NotIn"}} {
		for _, key := range term.TextList(row.field) {
			if value, set := own[key]; set && !selector.Nothing {
				selector.Requirements = append(selector.Requirements,
					landing.Requirement{Key: key, Operator: row.operator, Values: []string{value}})
			}
		}
	}
	return selector
}
