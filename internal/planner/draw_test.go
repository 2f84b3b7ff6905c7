package planner

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// bundleOf writes a bundle of CPUs, GPUs and GiB of memory.
func bundleOf(cpu, gpu, gib int64) raydemand.Bundle {
	b := raydemand.Bundle{"CPU": raydemand.Whole(cpu)}
	if gpu > 0 {
		b["GPU"] = raydemand.Whole(gpu)
	}
	if gib > 0 {
		b["memory"] = raydemand.Whole(gib << 30)
	}
	return b
}

// fleetOf has different groups of twenty sizes, every second one with GPUs.
func fleetOf(groups int64) model.Snapshot {
	var s model.Snapshot
	for i := range groups {
		s.Groups = append(s.Groups, model.Group{Name: fmt.Sprintf("group-%03d", i),
			Resources: bundleOf(4*(i%20+1), i%2*(i%20/4+1), 16*(i+1)), Max: 1000, NumOfHosts: 1})
	}
	return s
}

func randomShapes(count int, each int64) []raydemand.Request {
	random := rand.New(rand.NewPCG(3, 4))
	requests := make([]raydemand.Request, count)
	for i := range requests {
		b := bundleOf(1+random.Int64N(16), 0, 1+random.Int64N(32))
		b["CPU"] += raydemand.Amount(i) // all different
		if random.IntN(3) == 0 {
			b["GPU"] = raydemand.Whole(1 + random.Int64N(3))
		}
		requests[i] = raydemand.Request{Bundle: b, Count: each}
	}
	return requests
}

// amounts that make packing interesting without making it slow.
var (
	shapes = []raydemand.Bundle{
		{"CPU": raydemand.Whole(1)},
		{"CPU": raydemand.Whole(4), "memory": raydemand.Whole(16 << 30)},
		{"CPU": raydemand.Whole(8), "memory": raydemand.Whole(64 << 30)},
		{"CPU": raydemand.Whole(4), "GPU": raydemand.Whole(1), "memory": raydemand.Whole(16 << 30)},
		{"CPU": raydemand.Whole(16), "GPU": raydemand.Whole(4), "memory": raydemand.Whole(64 << 30)},
		{"CPU": raydemand.Whole(2), "TPU": raydemand.Whole(4)},
		{},
	}
	someBundles = []raydemand.Bundle{
		{"CPU": raydemand.Whole(1)},
		{"CPU": raydemand.Whole(3)},
		{"CPU": raydemand.One / 2},
		{"GPU": raydemand.Whole(1)},
		{"GPU": raydemand.One / 2, "CPU": raydemand.Whole(1)},
		{"CPU": raydemand.Whole(2), "GPU": raydemand.Whole(2)},
		{"CPU": raydemand.Whole(1), "memory": raydemand.Whole(10 << 30)},
		{"TPU": raydemand.Whole(4)},
		{"CPU": raydemand.Whole(40)},
		{raydemand.ImplicitPrefix + "a": raydemand.One / 2},
		{"GPU": 2 * raydemand.One / 5},
		{"TPU": 7 * raydemand.One / 10, "CPU": raydemand.One / 2},
		{},
	}
	zones = []string{"", "a", "b"}
)

func drawSelectors(t *rapid.T) []raydemand.Selector {
	choices := [][]raydemand.Selector{
		nil, nil, nil, {nil},
		{selectorOf("zone", "a")},
		{selectorOf("zone", "!a")},
		{selectorOf("zone", "a"), selectorOf("zone", "in(b,c)")},
	}
	return rapid.SampledFrom(choices).Draw(t, "selectors")
}

func selectorOf(key, expression string) raydemand.Selector {
	s, err := raydemand.ParseSelector(map[string]string{key: expression})
	if err != nil {
		panic(err)
	}
	return s
}

func drawLabels(t *rapid.T) map[string]string {
	if zone := rapid.SampledFrom(zones).Draw(t, "zone"); zone != "" {
		return map[string]string{"zone": zone}
	}
	return nil
}

func drawRequests(t *rapid.T, label string, most int) []raydemand.Request {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) raydemand.Request {
		return raydemand.Request{
			Bundle:    rapid.SampledFrom(someBundles).Draw(t, "bundle"),
			Count:     rapid.Int64Range(1, 7).Draw(t, "count"),
			Selectors: drawSelectors(t),
		}
	}), 0, most).Draw(t, label)
}

func drawGangs(t *rapid.T) []raydemand.Gang {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) raydemand.Gang {
		g := raydemand.Gang{
			Strategy: rapid.SampledFrom([]raydemand.Strategy{
				raydemand.Pack, raydemand.Spread, raydemand.StrictPack, raydemand.StrictSpread,
			}).Draw(t, "strategy"),
			Bundles: rapid.SliceOfN(rapid.SampledFrom(someBundles[:8]), 1, 4).Draw(t, "bundles"),
		}
		if rapid.IntRange(0, 3).Draw(t, "selected") == 0 {
			g.BundleSelectors = rapid.SliceOfN(
				rapid.SampledFrom([]raydemand.Selector{nil, selectorOf("zone", "a"), selectorOf("zone", "!a")}),
				len(g.Bundles), len(g.Bundles)).
				Draw(t, "bundleSelectors")
		}
		if rapid.IntRange(0, 3).Draw(t, "topology") == 0 {
			g.TopologyLabel = "zone"
		}
		if rapid.IntRange(0, 3).Draw(t, "fallback") == 0 {
			g.Fallbacks = [][]raydemand.Bundle{{someBundles[0]}}
		}
		return g
	}), 0, 3).Draw(t, "gangs")
}

// drawSnapshot draws a small cluster that could be real, including odd ones, as a user writes it or as the loop exports
// it.
func drawSnapshot(t *rapid.T) model.Snapshot {
	timeout := 60.0
	s := model.Snapshot{
		IdleTimeoutSeconds:        &timeout,
		LaunchConfigCheckDisabled: rapid.Bool().Draw(t, "checkDisabled"),
		UpscalingMode: rapid.SampledFrom([]string{"", "", "Default", "Aggressive", "Conservative"}).
			Draw(t, "upscalingMode"),
	}
	if rapid.Bool().Draw(t, "bounded") {
		bound := rapid.IntRange(0, 12).Draw(t, "maxWorkers")
		s.MaxWorkers = &bound
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "groups") {
		s.Groups = append(s.Groups, drawGroup(t, i))
	}
	for i := range rapid.IntRange(0, 8).Draw(t, "nodes") {
		s.Nodes = append(s.Nodes, drawNode(t, i, s.Groups))
	}
	if rapid.Bool().Draw(t, "head") {
		s.Head = &model.Node{State: model.Running, Resources: rapid.SampledFrom(shapes).Draw(t, "headShape")}
	}
	s.Requests = drawRequests(t, "requests", 5)
	s.Constraint = drawRequests(t, "constraint", 2)
	s.KeptResources = drawRequests(t, "kept", 2)
	s.Gangs = drawGangs(t)
	for i := range s.Gangs {
		s.Gangs[i].ID = fmt.Sprintf("gang%d", i)
		drawHeld(t, s.Nodes, &s.Gangs[i])
	}
	if rapid.Bool().Draw(t, "exported") {
		drawExpected(t, &s)
	}
	return s
}

// drawHeld lets some nodes hold bundles of a gang that was placed once and has lost others.
func drawHeld(t *rapid.T, nodes []model.Node, g *raydemand.Gang) {
	if rapid.IntRange(0, 3).Draw(t, "held") > 0 {
		return
	}
	for i := range nodes {
		if nodes[i].State == model.Running && rapid.IntRange(0, 2).Draw(t, "holds") == 0 {
			labels := map[string]string{g.PlacedLabel(): ""}
			maps.Copy(labels, nodes[i].PlacedLabels)
			nodes[i].PlacedLabels = labels
		}
	}
}

// drawExpected gives each group the replicas that the operator maintains: its pods and some more within the limits.
// Missing pods become expected nodes.
func drawExpected(t *rapid.T, s *model.Snapshot) {
	for i := range s.Groups {
		g := &s.Groups[i]
		there := 0
		for _, n := range s.Nodes {
			if n.Group == g.Name && n.State != model.Leaving {
				there++
			}
		}
		replicas := (there + g.NumOfHosts - 1) / g.NumOfHosts
		replicas = max(g.Min, min(replicas+rapid.IntRange(0, 2).Draw(t, "asked"), g.Max))
		g.Replicas = &replicas
		for at := there; at < replicas*g.NumOfHosts && g.Closed == ""; at++ {
			n := model.Node{
				Pod:       fmt.Sprintf("%s-expected-%d", g.Name, at),
				Group:     g.Name,
				State:     model.Pending,
				Expected:  true,
				Total:     g.Resources,
				Available: g.Resources,
				Labels:    g.Labels,
			}
			if g.NumOfHosts > 1 {
				n.Replica = fmt.Sprintf("%s-expected-replica-%d", g.Name, at/g.NumOfHosts)
			}
			s.Nodes = append(s.Nodes, n)
		}
	}
}

func drawGroup(t *rapid.T, i int) model.Group {
	g := model.Group{
		Name:       fmt.Sprintf("g%d", i),
		Resources:  rapid.SampledFrom(shapes).Draw(t, "shape"),
		Labels:     drawLabels(t),
		Max:        rapid.IntRange(0, 6).Draw(t, "max"),
		NumOfHosts: rapid.SampledFrom([]int{1, 1, 1, 2, 4}).Draw(t, "hosts"),
	}
	g.Min = rapid.IntRange(0, min(3, g.Max+rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "invalid"))).Draw(t, "min")
	if rapid.IntRange(0, 7).Draw(t, "closed") == 0 {
		g.Closed = "suspended"
	}
	return g
}

func drawNode(t *rapid.T, i int, groups []model.Group) model.Node {
	n := model.Node{Pod: fmt.Sprintf("n%d", i), Group: "removed", Total: shapes[1]}
	hosts := 1
	if len(groups) > 0 && rapid.IntRange(0, 9).Draw(t, "known group") > 0 {
		g := rapid.SampledFrom(groups).Draw(t, "group")
		n.Group, n.Total, n.Labels, hosts = g.Name, g.Resources, g.Labels, g.NumOfHosts
	}
	if hosts > 1 {
		n.Replica = fmt.Sprintf("r%d", i/hosts)
	}
	n.State = rapid.SampledFrom([]model.NodeState{
		model.Running, model.Running, model.Idle, model.Idle, model.Pending, model.Leaving, model.AllocationTimeout,
	}).Draw(t, "state")
	n.Available = n.Total
	switch n.State {
	case model.Idle:
		n.IdleSeconds = float64(rapid.IntRange(0, 120).Draw(t, "idle"))
	case model.Running:
		n.Available = n.Total.Clone()
		for _, name := range n.Total.Names() {
			n.Available[name] = n.Total[name] * raydemand.Amount(rapid.IntRange(0, 5).Draw(t, "share")) / 4
		}
	}
	return n
}

// drawOwned draws a snapshot with requests of owners.
func drawOwned(t *rapid.T) model.Snapshot {
	s := drawSnapshot(t)
	for i := range rapid.IntRange(1, 5).Draw(t, "owners") {
		s.OwnedRequests = append(s.OwnedRequests, raydemand.Owned{
			ID:           fmt.Sprintf("r%d", i),
			Owner:        "o",
			Priority:     int32(rapid.IntRange(0, 2).Draw(t, "priority")),
			AllOrNothing: rapid.Bool().Draw(t, "allOrNothing"),
			Since:        time.Unix(int64(rapid.IntRange(1, 3).Draw(t, "since")), 0).UTC(),
			Requests:     drawRequests(t, "of owner", 3),
		})
	}
	return s
}

// drawPriced draws a snapshot whose groups have prices and priorities.
func drawPriced(t *rapid.T) model.Snapshot {
	s := drawSnapshot(t)
	for i := range s.Groups {
		price := float64(rapid.IntRange(1, 9).Draw(t, "price"))
		s.Groups[i].Price = &price
		s.Groups[i].Priority = rapid.IntRange(0, 1).Draw(t, "priority")
	}
	return s
}

// drawWarm draws a snapshot with warm capacity, in part with prices, less demand than drawSnapshot, and idle
// workers that stay beyond their timeout for it.
func drawWarm(t *rapid.T) model.Snapshot {
	s := drawSnapshot(t)
	if rapid.Bool().Draw(t, "calm") {
		s.Requests, s.Gangs = s.Requests[:len(s.Requests)/2], nil
	}
	if rapid.Bool().Draw(t, "withoutCalls") {
		s.Constraint, s.KeptResources = nil, nil
	}
	s.Warm = &model.Warm{Policy: "CapacityPolicy drawn"}
	for i := range rapid.IntRange(1, 3).Draw(t, "entries") {
		e := model.WarmEntry{Name: fmt.Sprintf("keepWarm[%d]", i), Count: rapid.Int64Range(1, 4).Draw(t, "warm")}
		if len(s.Groups) > 0 && rapid.Bool().Draw(t, "ofGroup") {
			e.Group = rapid.SampledFrom(s.Groups).Draw(t, "warmGroup").Name
		} else {
			e.Resources = rapid.SampledFrom(someBundles[:8]).Draw(t, "warmBundle")
			e.Selectors = drawSelectors(t)
		}
		s.Warm.Keep = append(s.Warm.Keep, e)
	}
	for i := range s.Groups {
		if rapid.IntRange(0, 3).Draw(t, "priced") > 0 {
			price := float64(rapid.IntRange(1, 4).Draw(t, "price"))
			s.Groups[i].Price = &price
		}
	}
	return s
}

// drawDomains draws a small cluster of mostly idle workers with zones of their own, with demand that avoids a zone or
// must share one. A zone can be that of a replica, workers can be of a removed group and hold bundles of gangs, and
// warm capacity can be wanted.
func drawDomains(t *rapid.T) model.Snapshot {
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
			Bundles:       rapid.SliceOfN(rapid.SampledFrom(someBundles[:4]), 1, 3).Draw(t, "bundles"),
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
			Bundle: rapid.SampledFrom(someBundles[:2]).Draw(t, "bundle"),
			Count:  rapid.Int64Range(1, 4).Draw(t, "count"),
		}
		if zone := rapid.SampledFrom([]string{"", "a", "!a", "!c", "!in(b,c)"}).Draw(t, "zone"); zone != "" {
			r.Selectors = []raydemand.Selector{selectorOf("zone", zone)}
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

// readText parses a hand-written snapshot.
func readText(t *testing.T, text string) model.Snapshot {
	t.Helper()
	s, err := snapshotfile.ReadSnapshot(strings.NewReader(text), t.Name())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func compact(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
