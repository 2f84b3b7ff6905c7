package decode

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// neighborsOf returns what terms of other pods see of a pod that is on a node: what it requires itself counts only as
// far as it keeps other pods away.
func neighborsOf(pod *corev1.Pod) *landing.Neighbors {
	n := &landing.Neighbors{Namespace: interned(cmp.Or(pod.Namespace, corev1.NamespaceDefault)),
		Labels: make(map[string]string, len(pod.Labels))}
	for key, value := range pod.Labels {
		n.Labels[interned(key)] = interned(value)
	}
	for i := range antiAffinity(pod) {
		term := &antiAffinity(pod)[i]
		if term.TopologyKey != landing.HostnameLabel {
			continue
		}
		t := landing.PodTerm{Namespaces: term.Namespaces, Selector: selectorOf(term.LabelSelector)}
		if term.NamespaceSelector != nil {
			selector := selectorOf(term.NamespaceSelector)
			t.NamespaceSelector = &selector
		}
		n.Apart = append(n.Apart, t)
	}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			for _, port := range hostPortsOnly(containers[i].Ports) {
				n.HostPorts = append(n.HostPorts, landing.HostPort{
					IP: port.HostIP, Protocol: string(port.Protocol), Port: int64(port.HostPort)})
			}
		}
	}
	return n
}

// hostPortsOnly keeps the ports of the node. For a pod on the node's network, the API server lists all its ports as
// such.
func hostPortsOnly(ports []corev1.ContainerPort) (kept []corev1.ContainerPort) {
	for _, port := range ports {
		if port.HostPort > 0 {
			kept = append(kept, corev1.ContainerPort{
				HostIP: port.HostIP, Protocol: port.Protocol, HostPort: port.HostPort})
		}
	}
	return kept
}

// antiAffinity returns the terms of a pod's required anti-affinity.
func antiAffinity(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// antiAffinityOnly keeps of an affinity what neighborsOf reads.
func antiAffinityOnly(pod *corev1.Pod) *corev1.Affinity {
	terms := antiAffinity(pod)
	if len(terms) == 0 {
		return nil
	}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: terms}}
}

func selectorOf(selector *metav1.LabelSelector) landing.PodSelector {
	if selector == nil {
		return landing.PodSelector{Nothing: true}
	}
	var list []landing.Requirement
	for _, r := range selector.MatchExpressions {
		list = append(list, landing.Requirement{Key: r.Key, Operator: string(r.Operator), Values: r.Values})
	}
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		list = append(list, landing.Requirement{Key: key, Operator: string(metav1.LabelSelectorOpIn),
			Values: []string{selector.MatchLabels[key]}})
	}
	return landing.PodSelector{Requirements: list}
}
