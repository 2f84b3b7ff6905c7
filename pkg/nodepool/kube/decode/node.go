package decode

import (
	"unique"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// ForPodFit converts a node for package landing. Names and labels repeat from node to node, so each text is stored
// once: otherwise the labels of thousands of nodes would take most of this process's memory.
func ForPodFit(reader sharing.Reader, node *corev1.Node) landing.Node {
	n := landing.Node{
		Name: node.Name, Unschedulable: node.Spec.Unschedulable, CreatedAt: node.CreationTimestamp.Time,
		Labels:      make(map[string]string, len(node.Labels)),
		Allocatable: make(landing.Quantities, len(node.Status.Allocatable)),
	}
	for key, value := range node.Labels {
		n.Labels[interned(key)] = interned(value)
	}
	object := ForGPUs(node)
	for name, quantity := range node.Status.Allocatable {
		if extended(string(name)) && !reader.CanAnnounce(object, string(name)) {
			continue
		}
		if amount := Amount(quantity); amount > 0 || name == corev1.ResourcePods {
			n.Allocatable[interned(string(name))] = amount
			if requested, isDAS := gpuinfo.DASName(string(name)); isDAS {
				n.Allocatable[interned(requested)] = amount
			}
		}
	}
	n.Taints = Taints(node)
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			n.Ready = c.Status == corev1.ConditionTrue
		}
	}
	n.Pool, n.GPUs = interned(reader.PoolOf(object)), GPUsOf(reader, object)
	if node.Labels[karpenterPool] != "" {
		n.Capacity = make(landing.Quantities, len(node.Status.Capacity))
		for name, quantity := range node.Status.Capacity {
			n.Capacity[interned(string(name))] = Amount(quantity)
		}
	}
	return n
}

// karpenterPool is the label of nodes that Karpenter made. The limits of its NodePools count capacity.
const karpenterPool = "karpenter.sh/nodepool"

// Taints returns the taints of a node that keep pods away.
func Taints(node *corev1.Node) []sharing.Taint {
	var taints []sharing.Taint
	for _, t := range node.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			taints = append(taints,
				sharing.Taint{Key: interned(t.Key), Value: interned(t.Value), Effect: interned(string(t.Effect))})
		}
	}
	return taints
}

// GPUsOf returns what is known of a node's GPUs, or nil if it shows none. It drops how much memory processes use at the
// moment: no decision depends on it, and it would make every node change all the time.
func GPUsOf(reader sharing.Reader, node sharing.NodeObject) *sharing.GPUs {
	read := reader.Read(node)
	_, unsupplied := read.Unsupplied()
	if read.Kind == gpuinfo.UnknownKind && len(read.Units) == 0 && len(read.PerCard) == 0 && !unsupplied &&
		len(read.SharedCards) == 0 {
		return nil
	}
	for i := range read.PerCard {
		read.PerCard[i].UnusedMiB = nil
	}
	return &read
}

func interned(text string) string { return unique.Make(text).Value() }
