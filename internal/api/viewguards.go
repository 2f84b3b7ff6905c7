package api

import "heliostat.dev/heliostat/internal/api/apiv1"

// maxGuards bounds the pods that an answer lists: all workers of a fleet may be busy.
const maxGuards = 100

// guards returns the first pods that node autoscalers do not evict.
func (v View) guards() []apiv1.Guard {
	var all []apiv1.Guard
	if h := v.Snapshot.Head; h != nil && h.Guard != "" {
		all = append(all, apiv1.Guard{Pod: h.Pod, Group: h.Group, KubeNode: h.KubeNode, By: h.Guard})
	}
	for i := range v.Snapshot.Nodes {
		if n := &v.Snapshot.Nodes[i]; n.Guard != "" && len(all) < maxGuards {
			all = append(all, apiv1.Guard{Pod: n.Pod, Group: n.Group, KubeNode: n.KubeNode, By: n.Guard})
		}
	}
	return all
}

// guarded counts the pods of a group that node autoscalers do not evict.
func (v View) guarded(group string) int {
	count := 0
	for i := range v.Snapshot.Nodes {
		if n := &v.Snapshot.Nodes[i]; n.Group == group && n.Guard != "" {
			count++
		}
	}
	return count
}
