package snapshotfile

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Exportable returns s within the bounds of ReadSnapshot. A live cluster may have negative or huge numbers. No decision
// depends on how far they exceed a bound, so Heliostat decides, and replays the decision, with the bound. The groups
// and nodes of s change in place; its demand and bundles, which others share, do not.
func Exportable(s model.Snapshot) model.Snapshot {
	count := func(n int) int { return min(max(n, 0), math.MaxInt32) }
	seconds := func(n *float64) *float64 {
		if n == nil {
			return nil
		}
		return new(min(max(*n, 0), math.MaxInt32))
	}
	if !slices.Contains(rules["Snapshot.upscalingMode"].Words, s.UpscalingMode) {
		s.UpscalingMode = ""
	}
	s.IdleTimeoutSeconds = seconds(s.IdleTimeoutSeconds)
	for i := range s.Groups {
		g := &s.Groups[i]
		g.Min, g.Max, g.NumOfHosts = count(g.Min), count(g.Max), min(max(g.NumOfHosts, 1), nodepool.MostHosts)
		if g.Replicas != nil {
			g.Replicas = new(count(*g.Replicas))
		}
		g.IdleTimeoutSeconds = seconds(g.IdleTimeoutSeconds)
		if g.Resources = bounded(g.Resources, raydemand.MaxAmount); g.Resources == nil {
			g.Resources = raydemand.Bundle{}
		}
		if g.Slice != nil {
			g.Slice = new(soundSlice(*g.Slice))
		}
	}
	for i := range s.Nodes {
		s.Nodes[i] = boundedNode(s.Nodes[i])
	}
	if s.Head != nil {
		s.Head = new(boundedNode(*s.Head))
	}
	for _, list := range []*[]raydemand.Request{&s.Requests, &s.Constraint, &s.KeptResources} {
		*list = boundedRequests(*list)
	}
	s.Gangs = slices.Clone(s.Gangs)
	for i := range s.Gangs {
		g := &s.Gangs[i]
		g.Bundles, g.Fallbacks = boundedBundles(g.Bundles), slices.Clone(g.Fallbacks)
		for k := range g.Fallbacks {
			g.Fallbacks[k] = boundedBundles(g.Fallbacks[k])
		}
	}
	return s
}

func boundedNode(n model.Node) model.Node {
	n.Total, n.Available = bounded(n.Total, raydemand.MaxAmount), bounded(n.Available, raydemand.MaxAmount)
	n.IdleSeconds = min(max(n.IdleSeconds, 0), math.MaxInt32)
	return n
}

func boundedRequests(all []raydemand.Request) []raydemand.Request {
	all = slices.Clone(all)
	for i := range all {
		all[i].Count = min(max(all[i].Count, 1), model.MaxCount)
		all[i].Bundle = boundedDemand(all[i].Bundle)
	}
	return all
}

func boundedBundles(all []raydemand.Bundle) []raydemand.Bundle {
	all = slices.Clone(all)
	for i := range all {
		all[i] = boundedDemand(all[i])
	}
	return all
}

func boundedDemand(b raydemand.Bundle) raydemand.Bundle {
	if b == nil {
		return raydemand.Bundle{}
	}
	return bounded(b, raydemand.Amount(mostAmount))
}

// bounded returns a bundle with amounts from 0 to the most: the bundle itself if it has them.
func bounded(b raydemand.Bundle, most raydemand.Amount) raydemand.Bundle {
	for _, amount := range b {
		if amount < 0 || amount > most {
			b = maps.Clone(b)
			for name, amount := range b {
				b[name] = min(max(amount, 0), most)
			}
			return b
		}
	}
	return b
}

// soundSlice bounds the numbers of a slice, and removes the product if it does not have the profile: one of the two was
// misread.
func soundSlice(s model.Slice) model.Slice {
	if s.MemoryMiB != nil {
		s.MemoryMiB = new(min(max(*s.MemoryMiB, 0), mostSliceMiB))
	}
	if s.ComputeFraction != nil {
		s.ComputeFraction = new(min(max(*s.ComputeFraction, 0), 1))
	}
	s.Kind, s.Isolation = cmp.Or(s.Kind, gpuinfo.UnknownKind), cmp.Or(s.Isolation, gpuinfo.UnknownIsolation)
	if s.Profile == "" {
		return s
	}
	profile, err := gpuinfo.ParseProfile(s.Profile)
	if product, known := gpuinfo.ProductOf(s.Product); err != nil {
		s.Profile = ""
	} else if known && !product.Has(profile) {
		s.Product = ""
	}
	return s
}
