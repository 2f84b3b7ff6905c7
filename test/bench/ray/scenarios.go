package main

import (
	"fmt"
	"math/rand/v2"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// scenario is a snapshot whose decision is timed.
type scenario struct {
	name     string
	snapshot planner.Snapshot
}

// scenarios lists the timed snapshots: large ones that a planner must handle without delay, and smaller ones that show
// how the time grows.
func scenarios() []scenario {
	none := raydemand.Demand{}
	return []scenario{
		timed("1,000 idle nodes, no demand", idleNodes(1000), none),
		timed("2,000 identical bundles, 1,000 half-full nodes", halfFull(1000), identical(2000)),
		timed("4,000 identical bundles, 1,000 half-full nodes", halfFull(1000), identical(4000)),
		timed("10,000 identical bundles, 1,000 half-full nodes", halfFull(1000), identical(10_000)),
		timed("10,000 identical bundles, empty cluster", nil, identical(10_000)),
		timed("10,000 identical bundles, 10,000 half-full nodes", halfFull(10_000), identical(10_000)),
		timed("20 shapes × 50, 1,000 half-full nodes", halfFull(1000), shapes(20, 50)),
		timed("40 shapes × 50, 1,000 half-full nodes", halfFull(1000), shapes(40, 50)),
		timed("200 shapes × 50, 1,000 half-full nodes", halfFull(1000), shapes(200, 50)),
		timed("200 shapes × 50, 10,000 half-full nodes", halfFull(10_000), shapes(200, 50)),
		timed("13,315 tasks, 1,337 busy nodes", busyNodes(1337), tasks(13_315)),
		timed("125 gangs of 4, 200 half-full nodes", halfFull(200), gangs(125)),
		timed("250 gangs of 4, 200 half-full nodes", halfFull(200), gangs(250)),
		timed("500 gangs of 4, 200 half-full nodes", halfFull(200), gangs(500)),
	}
}

func timed(name string, nodes []planner.Node, demand raydemand.Demand) scenario {
	idle := 60.0
	return scenario{
		name,
		planner.Snapshot{
			Name:                      name,
			LaunchConfigCheckDisabled: true,
			IdleTimeoutSeconds:        &idle,
			Groups:                    fleet(),
			Nodes:                     nodes,
			Demand:                    demand,
		},
	}
}

// fleet has 20 groups, 14 of them with GPUs.
func fleet() []planner.Group {
	var groups []planner.Group
	for _, family := range [][]machine{m5, g4dn, g5, p4d, p5[:1]} {
		for _, m := range family {
			groups = append(groups, m.group())
		}
	}
	return groups
}

// nodes creates nodes of the fleet's groups in turn, as Ray reports them, each with a resource and a label of its own.
// free returns how much of its total a node has free of each resource.
func nodes(count int, free func(total raydemand.Amount) raydemand.Amount) []planner.Node {
	groups := fleet()
	made := make([]planner.Node, count)
	for i := range made {
		g := groups[i%len(groups)]
		n := planner.Node{
			Pod:       fmt.Sprintf("pod-%05d", i),
			Group:     g.Name,
			State:     planner.Running,
			Total:     g.Resources.Clone(),
			Available: raydemand.Bundle{},
			Labels:    map[string]string{"ray.io/node-id": fmt.Sprintf("%056x", i)},
		}
		for key, value := range g.Labels {
			n.Labels[key] = value
		}
		n.Total[fmt.Sprintf("node:10.0.%d.%d", i/250, i%250)] = raydemand.One
		for _, name := range n.Total.Names() {
			n.Available[name] = free(n.Total[name])
		}
		made[i] = n
	}
	return made
}

func idleNodes(count int) []planner.Node {
	made := nodes(count, func(total raydemand.Amount) raydemand.Amount { return total })
	for i := range made {
		made[i].State, made[i].IdleSeconds = planner.Idle, 30
	}
	return made
}

// halfFull nodes have a random quarter of each resource free, none to all of it.
func halfFull(count int) []planner.Node {
	random := rand.New(rand.NewPCG(1, 2))
	return nodes(count, func(total raydemand.Amount) raydemand.Amount {
		return total / raydemand.One * raydemand.Amount(random.IntN(5)) / 4 * raydemand.One
	})
}

// busyNodes have only memory free.
func busyNodes(count int) []planner.Node {
	made := nodes(count, func(total raydemand.Amount) raydemand.Amount { return 0 })
	for i := range made {
		made[i].Available[raydemand.Memory] = made[i].Total[raydemand.Memory] / 2
	}
	return made
}

func identical(count int64) raydemand.Demand {
	bundle := raydemand.Bundle{raydemand.CPU: raydemand.One, raydemand.GPU: raydemand.One}
	return raydemand.Demand{Requests: []raydemand.Request{{Bundle: bundle, Count: count}}}
}

// tasks ask for one to four CPUs, as Ray's tasks commonly do.
func tasks(count int64) raydemand.Demand {
	var d raydemand.Demand
	for cpus := range int64(4) {
		share := count / 4
		if cpus == 0 {
			share = count - 3*(count/4)
		}
		d.Requests = append(
			d.Requests,
			raydemand.Request{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.Whole(cpus + 1)}, Count: share},
		)
	}
	return d
}

// shapes are all different.
func shapes(count int, each int64) raydemand.Demand {
	random := rand.New(rand.NewPCG(3, 4))
	var d raydemand.Demand
	for i := range count {
		b := raydemand.Bundle{
			raydemand.CPU:    raydemand.Whole(1 + random.Int64N(16)),
			raydemand.Memory: raydemand.Whole((1 + random.Int64N(32)) * gib),
		}
		b[raydemand.Memory] += raydemand.Whole(int64(i))
		if random.IntN(3) == 0 {
			b[raydemand.GPU] = raydemand.Whole(1 + random.Int64N(3))
		}
		d.Requests = append(d.Requests, raydemand.Request{Bundle: b, Count: each})
	}
	return d
}

// gangs have four bundles each, of all strategies in turn.
func gangs(count int) raydemand.Demand {
	strategies := []raydemand.Strategy{raydemand.Pack, raydemand.StrictSpread, raydemand.StrictPack, raydemand.Spread}
	var d raydemand.Demand
	for i := range count {
		g := raydemand.Gang{ID: fmt.Sprintf("%036x", i), Strategy: strategies[i%4]}
		for range 4 {
			g.Bundles = append(
				g.Bundles,
				raydemand.Bundle{raydemand.CPU: raydemand.Whole(2), raydemand.GPU: raydemand.One},
			)
		}
		d.Gangs = append(d.Gangs, g)
	}
	return d
}
