package nodepool

import (
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestADeletedNodePoolHoldsWhatItsNodesHold(t *testing.T) {
	left := landing.Node{Name: "n", Pool: "gone", Ready: true, Labels: map[string]string{"karpenter.sh/nodepool": "gone"},
		Allocatable: landing.Quantities{"nvidia.com/gpu": raydemand.One}}
	shape := &landing.PodShape{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.One}, Selector: map[string]string{"karpenter.sh/nodepool": "gone"}}
	for name, c := range map[string]struct {
		nodes []landing.Node
		most  int64
	}{
		"a node is left": {[]landing.Node{left}, 1},
		"nothing is":     {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			rooms := landing.Rooms(c.nodes, landing.Config{}, nil)
			group := WorkerGroup{PoolPods: landing.NodesOf(c.nodes, landing.Pools{Rooms: rooms, NodePools: true}).Where(shape).Pods}
			if len(group.PoolPods) != 1 || group.PoolPods[0].Pool != "gone" {
				t.Fatalf("pods in %+v, want in pool gone alone", group.PoolPods)
			}
			if most, bounded := group.PoolPods[0].Most(); most != c.most || !bounded {
				t.Errorf("at most %d pods, bounded %t; want %d", most, bounded, c.most)
			}
		})
	}
}

func TestANodePoolBoundsTheGroupAsLongAsItMayAddANode(t *testing.T) {
	shape := &landing.PodShape{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.One}, Selector: map[string]string{"team": "a"}}
	pool := func(team string, change func(*landing.Ceiling)) landing.Ceiling {
		c := landing.Ceiling{Group: "g1", Source: landing.FromKarpenter, Template: &landing.NodeTemplate{Labels: map[string]string{"team": team}}}
		if change != nil {
			change(&c)
		}
		return c
	}
	for name, c := range map[string]struct {
		ceiling landing.Ceiling
		most    int64 // -1: nothing bounds it
	}{
		"without limits":      {pool("a", nil), -1},
		"of another team":     {pool("b", nil), -1},
		"at its limit":        {pool("a", func(c *landing.Ceiling) { c.Limits = landing.Quantities{"nvidia.com/gpu": 0} }), 0},
		"static, of no nodes": {pool("a", func(c *landing.Ceiling) { c.MaxNodes, c.Replicas = new(int64), new(int64) }), 0},
	} {
		t.Run(name, func(t *testing.T) {
			rooms := landing.Rooms(nil, landing.Config{}, []landing.Ceiling{c.ceiling})
			group := WorkerGroup{PoolPods: landing.NodesOf(nil, landing.Pools{Rooms: rooms}).Where(shape).Pods}
			most, bounded := int64(0), false
			if len(group.PoolPods) > 0 {
				most, bounded = group.PoolPods[0].Most()
			}
			if bounded != (c.most >= 0) || bounded && most != c.most {
				t.Errorf("at most %d pods, bounded %t; want %d", most, bounded, c.most)
			}
		})
	}
}
