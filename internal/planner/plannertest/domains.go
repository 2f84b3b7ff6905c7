package plannertest

import (
	"fmt"
	"maps"

	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// DrawDomains draws a small cluster of mostly idle workers with zones of their own, with demand that avoids a zone or
// must share one. A zone can be that of a replica, workers can be of a removed group and hold bundles of gangs, and
// warm capacity can be wanted.
func DrawDomains(t *rapid.T) model.Snapshot {
	timeout := 60.0
	s := model.Snapshot{
		IdleTimeoutSeconds:        &timeout,
		LaunchConfigCheckDisabled: rapid.Bool().Draw(t, "checkDisabled"),
	}
	s.Requests, s.KeptResources = drawInZones(t, "requests"), drawInZones(t, "kept")
	for i := range rapid.IntRange(1, 2).Draw(t, "groups") {
		s.Groups = append(s.Groups, drawGroupOfDomains(t, i))
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "replicas") {
		s.Nodes = append(s.Nodes, drawReplica(t, i, s.Groups)...)
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "gangs") {
		strategies := []raydemand.Strategy{raydemand.Pack, raydemand.StrictSpread}
		g := raydemand.Gang{
			ID:            fmt.Sprintf("gang%d", i),
			Strategy:      rapid.SampledFrom(strategies).Draw(t, "strategy"),
			Bundles:       rapid.SliceOfN(rapid.SampledFrom(Bundles[:4]), 1, 3).Draw(t, "bundles"),
			TopologyLabel: rapid.SampledFrom([]string{"", "zone", "zone"}).Draw(t, "topology"),
		}
		drawHeld(t, s.Nodes, &g)
		s.Gangs = append(s.Gangs, g)
	}
	if rapid.Bool().Draw(t, "warm") {
		s.Warm = &model.Warm{Policy: "CapacityPolicy drawn"}
		for i := range rapid.IntRange(1, 2).Draw(t, "entries") {
			e := model.WarmEntry{Name: fmt.Sprintf("keepWarm[%d]", i), Count: rapid.Int64Range(1, 2).Draw(t, "count")}
			if rapid.Bool().Draw(t, "ofGroup") {
				e.Group = rapid.SampledFrom(s.Groups).Draw(t, "warmGroup").Name
			} else {
				e.Resources = raydemand.Bundle{"CPU": raydemand.Whole(1)}
			}
			s.Warm.Keep = append(s.Warm.Keep, e)
		}
	}
	return s
}

func drawInZones(t *rapid.T, label string) []raydemand.Request {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) raydemand.Request {
		r := raydemand.Request{
			Bundle: rapid.SampledFrom(Bundles[:2]).Draw(t, "bundle"),
			Count:  rapid.Int64Range(1, 4).Draw(t, "count"),
		}
		if zone := rapid.SampledFrom([]string{"", "a", "!a", "!c", "!in(b,c)"}).Draw(t, "zone"); zone != "" {
			r.Selectors = []raydemand.Selector{Parse("zone", zone)}
		}
		return r
	}), 0, 1).Draw(t, label)
}

// drawGroupOfDomains draws a group. If it has several hosts, each of its replicas can be a zone of its own.
func drawGroupOfDomains(t *rapid.T, i int) model.Group {
	g := model.Group{
		Name:       fmt.Sprintf("g%d", i),
		Resources:  rapid.SampledFrom(shapes[1:4]).Draw(t, "shape"),
		Max:        rapid.IntRange(0, 4).Draw(t, "max"),
		NumOfHosts: rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "hosts"),
	}
	if g.NumOfHosts > 1 && rapid.Bool().Draw(t, "perReplica") {
		zone := landing.Announced{Name: "zone", Present: true, PerReplica: true, Why: "it is the replica's name"}
		g.Announces = []landing.Announced{zone}
	} else {
		g.Labels = drawLabels(t)
	}
	return g
}

// drawReplica draws the workers of a replica, in one zone.
func drawReplica(t *rapid.T, i int, groups []model.Group) []model.Node {
	g := model.Group{Name: "removed", Resources: shapes[1], NumOfHosts: 1}
	if rapid.IntRange(0, 5).Draw(t, "removed") > 0 {
		g = rapid.SampledFrom(groups).Draw(t, "group")
	}
	n := model.Node{Group: g.Name, Total: g.Resources, Available: g.Resources, Labels: maps.Clone(g.Labels)}
	n.State = rapid.SampledFrom([]model.NodeState{model.Idle, model.Idle, model.Idle, model.Running, model.Pending}).
		Draw(t, "state")
	if g.NumOfHosts > 1 {
		n.Replica = fmt.Sprintf("r%d", i)
	}
	switch {
	case n.State == model.Pending:
	case len(g.Announces) > 0:
		n.Labels = map[string]string{"zone": n.Replica}
	case g.Labels == nil:
		n.Labels = drawLabels(t)
	}
	switch n.State {
	case model.Idle:
		n.IdleSeconds = float64(rapid.SampledFrom([]int{0, 120}).Draw(t, "idle"))
	case model.Running:
		n.Available = raydemand.Bundle{}
	}
	all := make([]model.Node, g.NumOfHosts)
	for host := range all {
		all[host] = n
		all[host].Pod = fmt.Sprintf("n%d-%d", i, host)
	}
	return all
}
