package snapshotfile

import (
	"cmp"
	"math"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Exportable returns s within the bounds of ReadSnapshot. A live cluster may have negative or huge numbers. No decision
// depends on how far they exceed a bound, so Heliostat decides, and replays the decision, with the bound.
func Exportable(s model.Snapshot) model.Snapshot {
	if s.IdleTimeoutSeconds != nil {
		s.IdleTimeoutSeconds = within(*s.IdleTimeoutSeconds)
	}
	if !knownUpscaling(s.UpscalingMode) {
		s.UpscalingMode = ""
	}
	s.Policy.MaxInFlight = min(max(s.Policy.MaxInFlight, 0), math.MaxInt32)
	s.Groups = slices.Clone(s.Groups)
	for i := range s.Groups {
		s.Groups[i] = exportableGroup(s.Groups[i])
	}
	beyond := func(n model.Node) bool { return n.IdleSeconds < 0 || n.IdleSeconds > mostSeconds }
	if slices.ContainsFunc(s.Nodes, beyond) {
		s.Nodes = slices.Clone(s.Nodes)
	}
	for i := range s.Nodes {
		if beyond(s.Nodes[i]) {
			s.Nodes[i].IdleSeconds = *within(s.Nodes[i].IdleSeconds)
		}
	}
	s.Requests, s.Constraint = exportableRequests(s.Requests), exportableRequests(s.Constraint)
	s.KeptResources, s.Gangs = exportableRequests(s.KeptResources), exportableGangs(s.Gangs)
	s.Warm = exportableWarm(s.Warm)
	s.OwnedRequests = slices.Clone(s.OwnedRequests)
	for i := range s.OwnedRequests {
		s.OwnedRequests[i].Requests = exportableRequests(s.OwnedRequests[i].Requests)
	}
	return s
}

func within(seconds float64) *float64 {
	seconds = min(max(seconds, 0), mostSeconds)
	return &seconds
}

func exportableGroup(g model.Group) model.Group {
	count := func(n int) int { return min(max(n, 0), math.MaxInt32) }
	g.Min, g.Max, g.NumOfHosts = count(g.Min), count(g.Max), min(max(g.NumOfHosts, 1), mostHosts)
	if g.Replicas != nil {
		replicas := count(*g.Replicas)
		g.Replicas = &replicas
	}
	if g.IdleTimeoutSeconds != nil {
		g.IdleTimeoutSeconds = within(*g.IdleTimeoutSeconds)
	}
	g.Resources = exportableBundle(g.Resources, raydemand.MaxAmount)
	g.Slice = exportableSlice(g.Slice)
	g.Pools = slices.Clone(g.Pools)
	for i := range g.Pools {
		pool := &g.Pools[i]
		pool.Units = min(max(pool.Units, 0), math.MaxInt32)
		pool.MaxPods = withinCount(pool.MaxPods, model.MaxCount)
	}
	g.Bound = min(max(g.Bound, 0), model.MaxCount)
	return g
}

func withinCount(n *int64, most int64) *int64 {
	if n == nil {
		return nil
	}
	bounded := min(max(*n, 0), most)
	return &bounded
}

// exportableSlice removes the product if it does not have the profile: one of the two was misread.
func exportableSlice(s *model.Slice) *model.Slice {
	if s == nil {
		return nil
	}
	made := *s
	made.MemoryMiB, made.Blocks = withinCount(s.MemoryMiB, mostSliceMiB), withinCount(s.Blocks, model.MaxCount)
	if s.ComputeFraction != nil {
		part := min(max(*s.ComputeFraction, 0), 1)
		made.ComputeFraction = &part
	}
	made.Kind, made.Isolation = cmp.Or(s.Kind, gpuinfo.UnknownKind), cmp.Or(s.Isolation, gpuinfo.UnknownIsolation)
	if made.Profile != "" {
		profile, err := gpuinfo.ParseProfile(made.Profile)
		switch product, known := gpuinfo.ProductOf(made.Product); {
		case err != nil:
			made.Profile = ""
		case known && !product.Has(profile):
			made.Product = ""
		}
	}
	return &made
}

func exportableRequests(requests []raydemand.Request) []raydemand.Request {
	requests = slices.Clone(requests)
	for i := range requests {
		requests[i].Bundle = exportableBundle(requests[i].Bundle, mostAmount)
		requests[i].Count = min(max(requests[i].Count, 1), model.MaxCount)
	}
	return requests
}

func exportableGangs(gangs []raydemand.Gang) []raydemand.Gang {
	gangs = slices.Clone(gangs)
	for i := range gangs {
		gangs[i].Bundles = exportableBundles(gangs[i].Bundles)
		gangs[i].Fallbacks = slices.Clone(gangs[i].Fallbacks)
		for k := range gangs[i].Fallbacks {
			gangs[i].Fallbacks[k] = exportableBundles(gangs[i].Fallbacks[k])
		}
	}
	return gangs
}

func exportableBundles(bundles []raydemand.Bundle) []raydemand.Bundle {
	bundles = slices.Clone(bundles)
	for i := range bundles {
		bundles[i] = exportableBundle(bundles[i], mostAmount)
	}
	return bundles
}

// exportableBundle returns b itself if nothing has to change. A nil bundle becomes an empty one.
func exportableBundle(b raydemand.Bundle, most raydemand.Amount) raydemand.Bundle {
	if b == nil {
		return raydemand.Bundle{}
	}
	changed := false
	for name, amount := range b {
		if amount >= 0 && amount <= most {
			continue
		}
		if !changed {
			b, changed = b.Clone(), true
		}
		b[name] = min(max(amount, 0), most)
	}
	return b
}
