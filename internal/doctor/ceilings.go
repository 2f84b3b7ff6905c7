package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/pools"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// ceilings are checks of whether the nodes that a group's maximum needs can be had.
var ceilings = []Check{
	{
		Code: "node-maximum-below-ours", Severity: raydemand.Warning,
		Why: "the nodes' own autoscaler stops before the group is at its maximum, and the pods beyond wait for ever",
		look: perWorkers(func(x *exam, g group, tell func(sight)) {
			most, list, known := x.mostPods(g)
			hosts := max(1, g.workers.NumOfHosts)
			pods := int64(g.workers.Max) * int64(hosts)
			if !known || g.workers.Max <= 0 || g.workers.Max > immense || hosts > 1000 || pods <= most {
				return
			}
			v := g.get("maxReplicas")
			tell(sight{of: g.of, at: v.at, seen: fmt.Sprintf("maxReplicas %d, and room for %d pods at most: %s", g.workers.Max, most, strings.Join(list, ", ")),
				fix: g.patch(g.of.set(v.at, max(int64(g.workers.Min), most/int64(hosts)))).hint("or raise the maximum of the pool of nodes")})
		}),
	},
}

// immense is a maximum that nobody means as a number of nodes.
const immense = 100_000

// mostPods is how many pods of the group all pools that could take one may ever have room for, were they empty of others, and which pools these are.
// It is false where one of them is not bounded: a pool of which no ceiling is known may grow.
func (x *exam) mostPods(g group) (most int64, list []string, known bool) {
	rooms := x.ground.rooms
	for _, pool := range pools.PodsOf(&g.workers.Pod, rooms, x.placesFor(g)) {
		room, bounded := pool.Most()
		if !bounded {
			return 0, nil, false
		}
		most += room
		at := slices.IndexFunc(rooms, func(r pools.Room) bool { return r.Pool == pool.Pool })
		list = append(list, pool.Pool+" by "+saysWho(rooms[at]))
	}
	return most, list, len(list) > 0
}

func saysWho(room pools.Room) string {
	if room.MaxNodes != nil {
		return fmt.Sprintf("%s (%d nodes)", room.Source, *room.MaxNodes)
	}
	return room.Source + " (limits)"
}

// ceilings are those that were read, and where the Cluster Autoscaler's status is not among them those that its Deployment has in arguments
// --nodes=min:max:name.
func (x *exam) ceilings() []pools.Ceiling {
	if slices.ContainsFunc(x.input.Ceilings, func(c pools.Ceiling) bool { return c.Source == pools.FromClusterAutoscaler }) {
		return x.input.Ceilings
	}
	found := slices.Clone(x.input.Ceilings)
	for _, o := range x.byKind["Deployment"] {
		for _, word := range o.arguments("cluster-autoscaler") {
			spec, isNodes := strings.CutPrefix(word, "--nodes=")
			parts := strings.SplitN(spec, ":", 3)
			if !isNodes || len(parts) != 3 {
				continue
			}
			least, errLeast := strconv.ParseInt(parts[0], 10, 64)
			most, errMost := strconv.ParseInt(parts[1], 10, 64)
			if errLeast == nil && errMost == nil {
				found = append(found, pools.Ceiling{Group: parts[2], MinNodes: &least, MaxNodes: &most, Source: pools.FromClusterAutoscaler})
			}
		}
	}
	return found
}
