package observation

import (
	"fmt"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Shapes knows what a new pod of each group will announce. The spec says it, except for what it leaves to Ray ("auto"),
// and except where it is wrong: then planning with it would launch pod after pod of which none serves. So what the
// youngest node shows counts, as far as it was made after the spec was first seen as it is now.
type Shapes map[string]*shape

type shape struct {
	declared raydemand.Bundle
	// older are the pods that existed when the spec was first seen as it is now.
	older map[string]bool
	// shown is what the youngest node of a newer pod announces; hinted what any node does, for names the spec leaves open.
	shown, hinted raydemand.Bundle
	shownBy       time.Time
}

// Observe takes one complete reading in.
func (s Shapes) Observe(cluster nodepool.Cluster, members []membership.Member) {
	for _, g := range cluster.Groups {
		known := s[g.Name]
		if known == nil || !known.declared.Equal(g.Resources) {
			next := &shape{declared: g.Resources, older: podsOfGroup(members, g.Name)}
			if known != nil {
				next.hinted = known.hinted
			}
			s[g.Name] = next
		}
	}
	for _, m := range members {
		known := s[m.Group]
		if known == nil || !m.Joined() || len(m.Node.Total) == 0 {
			continue
		}
		total := OwnResources(m.Node.Total)
		known.hinted = total
		if !known.older[m.Pod] && !m.CreatedAt.Before(known.shownBy) {
			known.shown, known.shownBy = total, m.CreatedAt
		}
	}
}

func podsOfGroup(members []membership.Member, group string) map[string]bool {
	pods := map[string]bool{}
	for _, m := range members {
		if m.Group == group {
			pods[m.Pod] = true
		}
	}
	return pods
}

// Of is what a new pod of the group will announce.
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
	for name := range resources {
		if _, declared := g.Resources[name]; !declared && name == raydemand.GPU {
			delete(resources, name) // an older pod's GPUs are no promise of a spec that names none
		}
	}
	for name, amount := range g.Resources {
		resources[name] = amount
	}
	return resources
}

// withSliceHead adds what only the first host of a TPU slice announces: the newest node may be another one.
func withSliceHead(shown, declared raydemand.Bundle) raydemand.Bundle {
	for name, amount := range declared {
		if _, has := shown[name]; !has && sliceHead(name) {
			shown = shown.Clone()
			shown[name] = amount
		}
	}
	return shown
}

// sliceHead reports whether a resource is the one by which a TPU slice is taken hold of, TPU-v6e-16-head.
func sliceHead(name string) bool {
	return strings.HasPrefix(name, "TPU-") && strings.HasSuffix(name, "-head")
}

// MayHold reports whether a new pod of the group could hold want, as far as is known: what neither the spec nor any node
// tells may be any amount, since Ray detects it on the machine.
func (s Shapes) MayHold(g nodepool.WorkerGroup, want raydemand.Bundle) bool {
	if known := s[g.Name]; known != nil && (known.shown != nil || known.hinted != nil) {
		return s.Of(g).Fits(want)
	}
	if len(g.Resources) == 0 {
		return true // the command does not show how Ray is started
	}
	for name, amount := range want {
		if _, declared := g.Resources[name]; (declared || !detected(name)) && g.Resources.Has(name) < amount {
			return false
		}
	}
	return true
}

// detected reports whether Ray finds a resource on the machine when no flag counts it.
func detected(name string) bool {
	switch name {
	case raydemand.CPU, raydemand.GPU, raydemand.Memory, "object_store_memory", "TPU", "HPU", "NPU", "neuron_cores":
		return true
	}
	return strings.HasPrefix(name, "accelerator_type:") || strings.HasPrefix(name, "TPU-")
}

// FindingShape is the code of the finding that a group's nodes announce something else than the spec says.
const FindingShape = "announced-differs-from-spec"

// Findings tells where nodes contradict the spec.
func (s Shapes) Findings(cluster nodepool.Cluster) []raydemand.Finding {
	var all []raydemand.Finding
	for _, g := range cluster.Groups {
		known := s[g.Name]
		if known == nil || known.shown == nil {
			continue
		}
		for _, name := range g.Resources.Names() {
			if shown := known.shown[name]; shown != g.Resources[name] && !sliceHead(name) {
				all = append(all, raydemand.Finding{Code: FindingShape, Severity: raydemand.Warning,
					Object: "RayCluster " + cluster.Key.String(), Field: fmt.Sprintf("spec.workerGroupSpecs[%d]", g.Index),
					Seen: fmt.Sprintf("%s %v, announced %v", name, g.Resources[name], shown),
					Why:  "the newest node of group " + g.Name + " announces another amount than its spec says; it is planned as announced",
					Fix:  "make rayStartParams, resources and the container's limits agree"})
			}
		}
	}
	return all
}

// OwnResources drops what belongs to one node (node:<ip>) or to placement groups (<resource>_group_<id>).
func OwnResources(total raydemand.Bundle) raydemand.Bundle {
	own := raydemand.Bundle{}
	for name, amount := range total {
		if !strings.HasPrefix(name, "node:") && !strings.Contains(name, "_group_") {
			own[name] = amount
		}
	}
	return own
}
