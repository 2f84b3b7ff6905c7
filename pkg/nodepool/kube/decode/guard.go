package decode

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// guardOf reads what the pod's annotations say to node autoscalers. An annotation that Heliostat wrote and somebody
// changed since is theirs.
func guardOf(pod *corev1.Pod) nodepool.Guard {
	list, ours := pod.Annotations[nodepool.GuardAnnotation]
	written := strings.Split(list, ",")
	mark := func(annotation, keeps string) nodepool.GuardMark {
		switch value, set := pod.Annotations[annotation]; {
		case !set:
			return nodepool.Unmarked
		case value != keeps:
			return nodepool.MarkedOtherwise
		case slices.Contains(written, annotation):
			return nodepool.MarkedByUs
		}
		return nodepool.MarkedByUser
	}
	return nodepool.Guard{
		DoNotDisrupt: mark(nodepool.DoNotDisruptAnnotation, nodepool.DoNotDisrupt),
		SafeToEvict:  mark(nodepool.SafeToEvictAnnotation, nodepool.SafeToEvict),
		Ours:         ours,
		Version:      pod.ResourceVersion,
	}
}

// GuardWritten returns the annotations that a change writes to the pod, with nil for those that it removes.
func GuardWritten(change nodepool.GuardChange) map[string]any {
	annotations := map[string]any{}
	var ours []string
	for _, a := range []struct {
		name, keeps string
		mark        nodepool.GuardMark
	}{
		{nodepool.DoNotDisruptAnnotation, nodepool.DoNotDisrupt, change.Read.DoNotDisrupt},
		{nodepool.SafeToEvictAnnotation, nodepool.SafeToEvict, change.Read.SafeToEvict},
	} {
		switch {
		case change.Keep && (a.mark == nodepool.Unmarked || a.mark == nodepool.MarkedByUs):
			annotations[a.name] = a.keeps
			ours = append(ours, a.name)
		case !change.Keep && a.mark == nodepool.MarkedByUs:
			annotations[a.name] = nil
		}
	}
	annotations[nodepool.GuardAnnotation] = nil
	if len(ours) > 0 {
		annotations[nodepool.GuardAnnotation] = strings.Join(ours, ",")
	}
	return annotations
}

// guardAnnotations returns those of a pod's annotations that guardOf reads.
func guardAnnotations(pod *corev1.Pod) map[string]string {
	kept := map[string]string{}
	for _, name := range []string{
		nodepool.GuardAnnotation, nodepool.DoNotDisruptAnnotation, nodepool.SafeToEvictAnnotation,
	} {
		if value, set := pod.Annotations[name]; set {
			kept[name] = value
		}
	}
	return kept
}
