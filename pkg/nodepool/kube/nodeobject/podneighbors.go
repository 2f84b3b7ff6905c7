package nodeobject

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/pkg/nodepool/podfit"
)

// neighborsOf returns by what other pods select a pod that has a node, and which pods it keeps away. Its own affinity
// and spread no longer matter. The API server has put matchLabelKeys into the selectors.
func neighborsOf(pod *corev1.Pod) *podfit.Neighbors {
	n := &podfit.Neighbors{Namespace: interned(pod.Namespace), Labels: make(map[string]string, len(pod.Labels))}
	for key, value := range pod.Labels {
		n.Labels[interned(key)] = interned(value)
	}
	for _, term := range requiredApart(pod) {
		read := podfit.PodTerm{
			TopologyKey: interned(term.TopologyKey), Namespaces: slices.Clone(term.Namespaces),
			Selector: podSelector(term.LabelSelector),
		}
		if term.NamespaceSelector != nil {
			selector := podSelector(term.NamespaceSelector)
			read.NamespaceSelector = &selector
		}
		n.Apart = append(n.Apart, read)
	}
	return n
}

// requiredApart returns the terms of a pod's required anti-affinity.
func requiredApart(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func podSelector(selector *metav1.LabelSelector) podfit.PodSelector {
	if selector == nil {
		return podfit.PodSelector{Nothing: true}
	}
	var list []podfit.Requirement
	for _, r := range selector.MatchExpressions {
		list = append(list,
			podfit.Requirement{Key: r.Key, Operator: string(r.Operator), Values: slices.Clone(r.Values)})
	}
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		list = append(list,
			podfit.Requirement{Key: key, Operator: "In", Values: []string{selector.MatchLabels[key]}})
	}
	return podfit.PodSelector{Requirements: list}
}
