package consolidation

import (
	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Candidates returns the workers that are used a little, and about which nothing but the actors on them is unknown. It
// costs little, and decides whether the actors are read at all.
//
// A multi-host replica is none, because all its hosts would have to move. Neither is a worker with a bundle of a
// placement group, with many primary copies of objects or with a task that waits for its arguments: nothing moves
// those. A pod that the user keeps node autoscalers from evicting is meant to stay.
func Candidates(v *observe.View, s *planner.Snapshot) []observe.Member {
	spare := map[string]int{}
	for i := range v.Cluster.Groups {
		g := &v.Cluster.Groups[i]
		spare[g.Name] = -g.Min
	}
	for _, m := range v.Members {
		if m.Counted() && m.Joined() {
			spare[m.Group]++
		}
	}
	running := map[string]bool{}
	for i := range s.Nodes {
		running[s.Nodes[i].Pod] = s.Nodes[i].State == planner.Running && s.Nodes[i].Refused.IsZero()
	}
	var all []observe.Member
	for _, m := range v.Members {
		g, known := v.Cluster.Group(m.Group)
		if !known || g.NumOfHosts > 1 || spare[m.Group] <= 0 || g.Replicas <= g.Min || !running[m.Pod] || !m.Joined() {
			continue
		}
		stays := !m.Counted() || m.Going != nil || m.NodeGone || m.Guard.By() == nodepool.GuardedByUser ||
			!observe.Deletable(v.Cluster, m.Worker)
		if !stays && m.Node.Status == raydemand.Running && len(m.Node.PlacedLabels) == 0 && addon.Plain(m.Node) &&
			share(m.Node) <= mostUse {
			all = append(all, m)
		}
	}
	return all
}
