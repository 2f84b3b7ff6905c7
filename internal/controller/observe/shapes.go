package observe

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Shapes knows the Ray resources that a new pod of each group will have. They follow from the spec, unless it leaves
// them to Ray ("auto") or is wrong: planning with a wrong spec would launch pod after pod, none of which serves. So
// the resources of the youngest node count, if its pod was created after the spec was first seen as it is now.
type Shapes map[string]*shape

type shape struct {
	declared raydemand.Bundle
	places   places
	// older are the pods that existed when the spec was first seen as it is now.
	older map[string]bool
	// shown are the resources of the youngest node of a newer pod; hinted are those of any node, for names that the
	// spec does not set.
	shown, hinted raydemand.Bundle
	shownBy       time.Time
	// labels are those of the node that shown is of.
	labels map[string]string
}

// Observe adds one complete reading.
func (s Shapes) Observe(cluster nodepool.Cluster, members []Member) {
	for _, g := range cluster.Groups {
		known := s[g.Name]
		if known == nil || !known.declared.Equal(g.Resources) || !known.places.same(placesOf(&g)) {
			next := &shape{declared: g.Resources, places: placesOf(&g), older: podsOfGroup(members, g.Name)}
			if known != nil {
				next.hinted = known.hinted
			}
			s[g.Name] = next
		}
	}
	hints := map[string]raydemand.Bundle{}
	for _, m := range members {
		known := s[m.Group]
		if known == nil || !m.Joined() || len(m.Node.Total) == 0 {
			continue
		}
		hints[m.Group] = m.Node.Total
		if !known.older[m.Pod] && !m.CreatedAt.Before(known.shownBy) {
			known.shown, known.shownBy, known.labels = OwnResources(m.Node.Total), m.CreatedAt, m.Node.Labels
			delete(known.shown, known.labels[landing.TPUSliceName]) // each host of a slice has a resource of its name
		}
	}
	for group, total := range hints {
		s[group].hinted = OwnResources(total)
	}
}

func podsOfGroup(members []Member, group string) map[string]bool {
	pods := map[string]bool{}
	for _, m := range members {
		if m.Group == group {
			pods[m.Pod] = true
		}
	}
	return pods
}

// Of returns the Ray resources of a new pod of the group.
func (s Shapes) Of(g nodepool.WorkerGroup) raydemand.Bundle {
	known := s[g.Name]
	switch {
	case known == nil:
		return g.Resources
	case known.shown != nil:
		return withSliceHead(known.shown, g.Resources)
	case known.hinted == nil:
		return g.Resources
	}
	resources := known.hinted.Clone()
	delete(resources, raydemand.GPU) // the GPUs of an older pod say nothing about a spec that names none
	maps.Copy(resources, g.Resources)
	return resources
}

// withSliceHead adds the resource that only the first host of a TPU slice has, because the newest node may be another
// host.
func withSliceHead(shown, declared raydemand.Bundle) raydemand.Bundle {
	for name, amount := range declared {
		if _, has := shown[name]; !has && landing.IsTPUHead(name) {
			shown = shown.Clone()
			shown[name] = amount
		}
	}
	return shown
}

// FindingShape is the code of the finding that the nodes of a group have other resources than its spec says.
const FindingShape = "announced-differs-from-spec"

// Findings lists where nodes contradict the spec.
func (s Shapes) Findings(cluster nodepool.Cluster) []raydemand.Finding {
	var all []raydemand.Finding
	for _, g := range cluster.Groups {
		known := s[g.Name]
		if known == nil || known.shown == nil {
			continue
		}
		for _, name := range g.Resources.Names() {
			if shown := known.shown[name]; shown != g.Resources[name] && !landing.IsTPUHead(name) {
				all = append(all, raydemand.Finding{
					Code:     FindingShape,
					Severity: raydemand.Warning,
					Object:   "RayCluster " + cluster.Key.String(),
					Field:    fmt.Sprintf("spec.workerGroupSpecs[%d]", g.Index),
					Seen:     fmt.Sprintf("%s %v, announced %v", name, g.Resources[name], shown),
					Why: "the newest node of group " + g.Name + " has another amount than its spec says; " +
						"Heliostat plans with the amount of the node",
					Fix: "make rayStartParams, resources and the container's limits agree",
				})
			}
		}
	}
	return all
}

// OwnResources leaves out the resources of one node (node:<ip>) and of placement groups (<resource>_group_<id>).
func OwnResources(total raydemand.Bundle) raydemand.Bundle {
	own := raydemand.Bundle{}
	for name, amount := range total {
		if !strings.HasPrefix(name, "node:") && !strings.Contains(name, "_group_") {
			own[name] = amount
		}
	}
	return own
}

// Forget forgets groups that are gone.
func (s Shapes) Forget(gone func(group string) bool) {
	maps.DeleteFunc(s, func(group string, _ *shape) bool { return gone(group) })
}
