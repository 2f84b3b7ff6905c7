package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// kindsOfGPU is how many kinds of GPU an instance of a set offers.
type kindsOfGPU string

// One kind is what most clusters have. Mixed offers every family of a cloud, cheap and expensive ones.
const (
	oneKind    kindsOfGPU = "one-kind"
	mixedKinds kindsOfGPU = "mixed-kinds"
)

// instances draws count empty clusters with demand, each a snapshot; equal seeds give equal instances.
func instances(set kindsOfGPU, count int, seed uint64) []planner.Snapshot {
	drawn := make([]planner.Snapshot, count)
	for i := range drawn {
		// Each instance has its own generator, so that a longer list begins with the shorter one.
		random := rand.New(rand.NewPCG(seed, uint64(i)<<8|uint64(len(set))))
		drawn[i] = draw(random, set)
		drawn[i].Name = fmt.Sprintf("%s-%03d", set, i)
	}
	return drawn
}

func draw(random *rand.Rand, set kindsOfGPU) planner.Snapshot {
	provider := clouds[random.IntN(len(clouds))]
	accelerated := provider.accelerated
	if set == oneKind {
		accelerated = [][]machine{pick(random, accelerated...)}
	}
	s := planner.Snapshot{LaunchConfigCheckDisabled: true}
	for _, family := range append(provider.plain[:len(provider.plain):len(provider.plain)], accelerated...) {
		for _, m := range family {
			s.Groups = append(s.Groups, m.group())
		}
	}
	random.Shuffle(len(s.Groups), func(i, j int) { s.Groups[i], s.Groups[j] = s.Groups[j], s.Groups[i] })
	for shapes := 3 + random.IntN(10); len(s.Requests) < shapes; {
		request := raydemand.Request{Bundle: shape(random), Count: logUniform(random, 1, 150)}
		if set == mixedKinds && request.Bundle["GPU"] > 0 && random.IntN(3) == 0 {
			family := pick(random, accelerated...)
			kind := pick(random, family...).kind
			request.Selectors = []raydemand.Selector{raydemand.NewSelector(raydemand.Constraint{
				Key: acceleratorLabel, Op: raydemand.In, Values: []string{kind},
			})}
		}
		if possible(s.Groups, request) {
			s.Requests = append(s.Requests, request)
		}
	}
	return s
}

// shape draws what one task or actor asks for. Three in five ask for GPUs: serving replicas (a share or one), trainers
// (several); loaders ask for none.
func shape(random *rand.Rand) raydemand.Bundle {
	b := raydemand.Bundle{"CPU": raydemand.Whole(pick[int64](random, 1, 1, 2, 2, 4, 8, 16))}
	if random.IntN(5) < 3 {
		gpu := pick(random, 0.25, 0.5, 1, 1, 1, 1, 2, 4, 8)
		b["GPU"] = raydemand.Amount(gpu * float64(raydemand.One))
		b["CPU"] = raydemand.Whole(pick[int64](random, 1, 2, 4, 6, 8) * int64(math.Ceil(gpu)))
	}
	if random.IntN(2) == 0 {
		b["memory"] = raydemand.Whole(pick[int64](random, 1, 2, 4, 8, 12, 16, 24, 48) * gib)
	}
	return b
}

// possible reports whether some group's pod holds the request.
func possible(groups []planner.Group, request raydemand.Request) bool {
	for _, g := range groups {
		suits := len(request.Selectors) == 0
		for _, selector := range request.Selectors {
			suits = suits || selector.Matches(g.Labels)
		}
		if suits && g.Resources.Fits(request.Bundle) {
			return true
		}
	}
	return false
}

// pick returns one of the values, each as likely as the others.
func pick[T any](random *rand.Rand, values ...T) T { return values[random.IntN(len(values))] }

// logUniform returns a whole number of [least, most], small ones as often as large ones on a logarithmic scale.
func logUniform(random *rand.Rand, least, most float64) int64 {
	return int64(math.Round(least * math.Pow(most/least, random.Float64())))
}
