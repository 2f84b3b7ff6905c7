package kube

import (
	"unique"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// nodeOf converts a node. Names and labels repeat from node to node, so each text is kept once: the labels of thousands of
// nodes would otherwise be most of this process's memory.
func nodeOf(node *corev1.Node) nodepool.Node {
	n := nodepool.Node{
		Name: node.Name, Unschedulable: node.Spec.Unschedulable,
		Labels:      make(map[string]string, len(node.Labels)),
		Allocatable: make(nodepool.Quantities, len(node.Status.Allocatable)),
	}
	for key, value := range node.Labels {
		n.Labels[shared(key)] = shared(value)
	}
	for name, quantity := range node.Status.Allocatable {
		if amount := amountOf(quantity); amount > 0 {
			n.Allocatable[shared(string(name))] = amount
		}
	}
	for _, t := range node.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			n.Taints = append(n.Taints, nodepool.Taint{Key: shared(t.Key), Value: shared(t.Value), Effect: shared(string(t.Effect))})
		}
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			n.Ready = c.Status == corev1.ConditionTrue
		}
	}
	return n
}

func shared(text string) string { return unique.Make(text).Value() }
