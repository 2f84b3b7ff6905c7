package doctor

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// ceilings are checks of whether the nodes that a group's maximum needs can be had.
var ceilings = []Check{
	{
		Code: "node-maximum-below-ours", Severity: raydemand.Warning,
		Why: "the Cluster Autoscaler stops before the group is at its maximum, and the pods beyond wait for ever",
		look: perWorkers(func(x *exam, g group, tell func(sight)) {
			need, pool := x.nodesFor(g)
			most, known := x.mostNodes(pool)
			perNode := 0
			if need > 0 {
				perNode = (g.workers.Max*g.workers.NumOfHosts + need - 1) / need
			}
			if !known || need <= most {
				return
			}
			v := g.get("maxReplicas")
			tell(sight{of: g.of, at: v.at, seen: fmt.Sprintf("maxReplicas %d needs %d nodes, the Cluster Autoscaler's maximum is %d", g.workers.Max, need, most),
				fix: g.patch(g.of.set(v.at, max(g.workers.Min, most*perNode/max(1, g.workers.NumOfHosts)))) + comment("or raise the maximum of the node group")})
		}),
	},
}

// immense is a maximum that nobody means as a number of nodes.
const immense = 100_000

// nodesFor is how many nodes as there are now the group's maximum needs, by its GPUs alone, and their pool. 0 where that is not known: nodes
// on which it lands differ, or are of several pools.
func (x *exam) nodesFor(g group) (nodes int, pool string) {
	asks := g.asks()
	if len(asks) == 0 || g.workers.Max <= 0 || g.workers.Max > immense || g.workers.NumOfHosts > 1000 {
		return 0, ""
	}
	var fits int64
	for i, n := range x.nodes {
		if g.workers.Pod.Land([]nodepool.Node{n.Node.Landing}).Nodes == 0 {
			continue
		}
		on := ""
		if n.gpus.Pool != nil {
			on = *n.gpus.Pool
		}
		here := g.podsOn(&x.nodes[i])
		if here < 1 || fits > 0 && (here != fits || on != pool) {
			return 0, ""
		}
		fits, pool = here, on
	}
	if fits == 0 {
		return 0, ""
	}
	return int((int64(g.workers.Max*g.workers.NumOfHosts) + fits - 1) / fits), pool
}

// podsOn is how many of the group's pods the GPUs of an empty node hold.
func (g group) podsOn(n *examNode) int64 {
	var fewest int64
	for name, each := range g.workers.Pod.Requests {
		if !isDevices(name) || each < raydemand.One {
			continue
		}
		if here := n.Node.GPUs.Allocatable[name] / int64(each/raydemand.One); fewest == 0 || here < fewest {
			fewest = here
		}
	}
	return fewest
}

// nodeGroup is a node group of the Cluster Autoscaler and how many nodes it may have.
type nodeGroup struct {
	name string
	most int
}

// mostNodes is how many nodes the pool may have. known is false without a node group that is surely the pool's: its name has the pool's in it,
// as with AKS, GKE and eksctl, or it is the only one.
func (x *exam) mostNodes(pool string) (most int, known bool) {
	groups := x.nodeGroups()
	if len(groups) == 1 {
		return groups[0].most, true
	}
	for _, g := range groups {
		if pool != "" && namesPool(g.name, pool) {
			most, known = most+g.most, true
		}
	}
	return most, known
}

// namesPool reports whether the pool's name stands in the node group's as a word.
func namesPool(group, pool string) bool {
	return regexp.MustCompile(`(^|[^a-z0-9])` + regexp.QuoteMeta(strings.ToLower(pool)) + `($|[^a-z0-9])`).MatchString(strings.ToLower(group))
}

// nodeGroups are those of the status ConfigMap, which tells of all, else those of the arguments --nodes=min:max:name.
func (x *exam) nodeGroups() []nodeGroup {
	for _, o := range x.byKind["ConfigMap"] {
		if o.Name == "cluster-autoscaler-status" {
			if groups := groupsOfStatus(o.root().get("data", "status").text()); len(groups) > 0 {
				return groups
			}
		}
	}
	var groups []nodeGroup
	for _, o := range x.byKind["Deployment"] {
		for _, word := range o.arguments("cluster-autoscaler") {
			if spec, ok := strings.CutPrefix(word, "--nodes="); ok {
				parts := strings.SplitN(spec, ":", 3)
				if most, err := strconv.Atoi(parts[min(1, len(parts)-1)]); err == nil && len(parts) == 3 {
					groups = append(groups, nodeGroup{parts[2], most})
				}
			}
		}
	}
	return groups
}

// oldStatus finds a node group in the text that the Cluster Autoscaler wrote before 1.30.
var oldStatus = regexp.MustCompile(`(?m)^\s*Name:\s+(\S+)\n\s*Health:.*maxSize=(\d+)`)

func groupsOfStatus(text string) []nodeGroup {
	var groups []nodeGroup
	var status struct {
		NodeGroups []struct {
			Name   string `json:"name"`
			Health struct {
				MaxSize int `json:"maxSize"`
			} `json:"health"`
		} `json:"nodeGroups"`
	}
	if yaml.Unmarshal([]byte(text), &status) == nil {
		for _, g := range status.NodeGroups {
			groups = append(groups, nodeGroup{g.Name, g.Health.MaxSize})
		}
	}
	if len(groups) > 0 {
		return groups
	}
	for _, found := range oldStatus.FindAllStringSubmatch(text, -1) {
		most, err := strconv.Atoi(found[2])
		if err == nil {
			groups = append(groups, nodeGroup{found[1], most})
		}
	}
	return groups
}
