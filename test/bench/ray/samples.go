package main

import (
	"fmt"
	"math/rand/v2"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// samples draws count small snapshots with everything that a cluster can have: nodes of all states, requests,
// selectors, gangs of all strategies, request_resources, limits. Equal seeds give equal samples.
func samples(count int, seed uint64) []planner.Snapshot {
	drawn := make([]planner.Snapshot, count)
	for i := range drawn {
		d := dice{rand.New(rand.NewPCG(seed, uint64(i)))}
		drawn[i] = d.snapshot()
		drawn[i].Name = fmt.Sprintf("sample-%d-%04d", seed, i)
	}
	return drawn
}

// dice draws a sample.
type dice struct{ *rand.Rand }

// one is true once in n times.
func (d dice) one(n int) bool { return d.IntN(n) == 0 }

func (d dice) snapshot() planner.Snapshot {
	s := planner.Snapshot{LaunchConfigCheckDisabled: true}
	priced := !d.one(3)
	ranked := d.one(8)
	for i := range 1 + d.IntN(4) {
		g := d.group(i)
		if priced {
			g.Price = price(g.Resources, 1+0.4*d.Float64())
		}
		if ranked {
			g.Priority = d.IntN(3)
		}
		s.Groups = append(s.Groups, g)
	}
	if d.one(3) {
		s.IdleTimeoutSeconds = pointer(30.0)
	}
	if d.one(3) {
		s.Head = &planner.Node{Group: "headgroup", State: planner.Running, Total: cpus(4), Available: cpus(d.Int64N(5))}
	}
	for i := range d.IntN(6) {
		s.Nodes = append(s.Nodes, d.node(i, pick(d.Rand, s.Groups...)))
	}
	if d.one(3) {
		s.MaxWorkers = pointer(len(s.Nodes) + d.IntN(6) - 1)
		*s.MaxWorkers = max(*s.MaxWorkers, 1)
	}
	s.Requests = d.requests(d.IntN(4), 6)
	for i := range d.IntN(3) {
		s.Gangs = append(s.Gangs, d.gang(i))
	}
	if d.one(4) {
		s.Constraint = d.requests(1+d.IntN(2), 4)
	}
	d.spoil(&s)
	if d.one(8) {
		s.UpscalingMode = "Conservative"
	}
	return s
}

// price is what a machine like this costs on a public cloud; the factor depends on the provider.
func price(resources raydemand.Bundle, factor float64) *float64 {
	dollars := (0.05*resources[raydemand.CPU].Float() + resources[raydemand.GPU].Float()) * factor
	return pointer(float64(int(dollars*1000)) / 1000)
}

func (d dice) group(i int) planner.Group {
	g := planner.Group{
		Name: fmt.Sprintf("group-%d", i), NumOfHosts: 1, Min: max(0, d.IntN(6)-3), Labels: map[string]string{},
		Resources: raydemand.Bundle{raydemand.CPU: raydemand.Whole(pick[int64](d.Rand, 1, 2, 4, 8, 16))},
	}
	g.Max = g.Min + d.IntN(7)
	if d.one(2) {
		g.Resources[raydemand.GPU] = raydemand.Whole(pick[int64](d.Rand, 1, 2, 4, 8))
		g.Labels[acceleratorLabel] = pick(d.Rand, "A100", "L4")
	}
	if d.one(6) {
		g.Resources["disk"] = raydemand.Whole(2)
	}
	if d.one(3) {
		g.Labels["zone"] = pick(d.Rand, "a", "b")
	}
	if d.one(4) {
		g.IdleTimeoutSeconds = pointer(float64(10 + d.IntN(100)))
	}
	if d.one(12) {
		g.NumOfHosts = 2
	}
	return g
}

// node is a pod of a group: at work, idle, on its way, given up or leaving.
func (d dice) node(i int, g planner.Group) planner.Node {
	n := planner.Node{Pod: fmt.Sprintf("pod-%d", i), Group: g.Name}
	switch d.IntN(10) {
	case 0, 1:
		n.State = planner.Pending
		return n
	case 2:
		n.State = planner.AllocationTimeout
		return n
	case 3:
		n.State, n.IMState = planner.Leaving, pick(d.Rand, "RAY_STOP_REQUESTED", "RAY_STOPPING")
		return n
	case 4, 5, 6:
		n.State, n.IdleSeconds = planner.Idle, float64(1+d.IntN(120))
		n.Available = g.Resources.Clone()
	default:
		n.State, n.Available = planner.Running, raydemand.Bundle{}
		for _, name := range g.Resources.Names() {
			n.Available[name] = g.Resources[name] * raydemand.Amount(d.IntN(4)) / 4
		}
	}
	n.Total, n.Labels = g.Resources.Clone(), map[string]string{"ray.io/node-id": fmt.Sprintf("%056x", i+1)}
	for key, value := range g.Labels {
		n.Labels[key] = value
	}
	return n
}

func (d dice) requests(shapes int, most int64) []raydemand.Request {
	var requests []raydemand.Request
	seen := map[string]bool{}
	for range shapes {
		r := raydemand.Request{Bundle: d.bundle(), Count: 1 + d.Int64N(most), Selectors: d.selectors()}
		if !seen[keyOf(r)] {
			requests = append(requests, r)
		}
		seen[keyOf(r)] = true
	}
	return requests
}

func (d dice) bundle() raydemand.Bundle {
	b := raydemand.Bundle{raydemand.CPU: raydemand.Whole(pick[int64](d.Rand, 1, 1, 1, 2, 2, 4, 8))}
	if d.one(2) {
		gpu := pick(d.Rand, 0.2, 0.4, 0.5, 0.6, 1, 1, 1, 2, 4)
		b[raydemand.GPU] = raydemand.Amount(gpu * float64(raydemand.One))
	}
	if d.one(12) {
		b["disk"] = raydemand.One
	}
	return b
}

// selectors is mostly empty; else one selector, or two in order of preference.
func (d dice) selectors() []raydemand.Selector {
	if !d.one(4) {
		return nil
	}
	selectors := []raydemand.Selector{d.selector()}
	if d.one(3) {
		selectors = append(selectors, d.selector())
	}
	return selectors
}

func (d dice) selector() raydemand.Selector {
	return raydemand.NewSelector(pick(d.Rand,
		raydemand.Constraint{Key: acceleratorLabel, Op: raydemand.In, Values: []string{"A100"}},
		raydemand.Constraint{Key: acceleratorLabel, Op: raydemand.In, Values: []string{"L4", "A100"}},
		raydemand.Constraint{Key: "zone", Op: raydemand.In, Values: []string{"a"}},
		raydemand.Constraint{Key: "zone", Op: raydemand.NotIn, Values: []string{"a"}},
		raydemand.Constraint{Key: "zone", Op: raydemand.NotIn, Values: []string{"a", "c"}},
	))
}

func (d dice) gang(i int) raydemand.Gang {
	g := raydemand.Gang{
		ID:       fmt.Sprintf("%036x", i+1),
		Strategy: pick(d.Rand, raydemand.Pack, raydemand.Spread, raydemand.StrictPack, raydemand.StrictSpread),
	}
	bundle, selected := d.bundle(), d.one(4)
	for range 1 + d.IntN(4) {
		if d.one(4) {
			bundle = d.bundle()
		}
		g.Bundles = append(g.Bundles, bundle)
		if selected {
			g.BundleSelectors = append(g.BundleSelectors, d.selector())
		}
	}
	if d.one(10) {
		g.Fallbacks = [][]raydemand.Bundle{{d.bundle(), d.bundle()}}
	}
	return g
}

// cpus is a bundle with only CPUs.
func cpus(count int64) raydemand.Bundle {
	return raydemand.Bundle{raydemand.CPU: raydemand.Whole(count)}
}

// spoil occasionally adds contradictions that a live cluster can contain.
func (d dice) spoil(s *planner.Snapshot) {
	switch d.IntN(60) {
	case 0:
		s.Nodes = append(s.Nodes, planner.Node{
			Pod: "pod-of-removed-group", Group: "removed", State: planner.Running, Total: cpus(4), Available: cpus(1),
		})
	case 1:
		if len(s.Nodes) > 0 && s.Nodes[0].Available != nil {
			s.Nodes[0].Available[raydemand.CPU] = s.Nodes[0].Total[raydemand.CPU] + raydemand.One
		}
	case 2:
		s.Groups[0].Min = s.Groups[0].Max + 1
	case 3:
		s.Requests = append(s.Requests, raydemand.Request{Bundle: raydemand.Bundle{}, Count: 1})
	}
}

// pointer returns a pointer to a copy of the value.
func pointer[T any](value T) *T { return &value }
