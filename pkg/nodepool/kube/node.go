package kube

import (
	"unique"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/pkg/gpuinfo"
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
	n.Taints = taintsOf(node)
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			n.Ready = c.Status == corev1.ConditionTrue
		}
	}
	n.GPUs = gpusOf(node)
	return n
}

func taintsOf(node *corev1.Node) []nodepool.Taint {
	var taints []nodepool.Taint
	for _, t := range node.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			taints = append(taints, nodepool.Taint{Key: shared(t.Key), Value: shared(t.Value), Effect: shared(string(t.Effect))})
		}
	}
	return taints
}

// gpusOf is what is understood of a node's GPUs, nil where there are none. How much memory processes use at the moment decides nothing and
// changes all the time, so it is left out: a node that changes makes everybody look again.
func gpusOf(node *corev1.Node) *nodepool.NodeGPUs {
	read := nodepool.GPUReader{}.Read(nodeObjectOf(node))
	if read.Kind == gpuinfo.UnknownKind && len(read.Units) == 0 && len(read.PerCard) == 0 {
		return nil
	}
	for i := range read.PerCard {
		read.PerCard[i].UnusedMiB = nil
	}
	return &read
}

func shared(text string) string { return unique.Make(text).Value() }
