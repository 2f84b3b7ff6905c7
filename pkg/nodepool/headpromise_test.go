package nodepool_test

import (
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAHeadWithoutANodeComesBeforeItsWorkers(t *testing.T) {
	pod := landing.PodShape{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.One}}
	nodes := []landing.Node{{Name: "n", Ready: true, Allocatable: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(2)}}}
	none := []landing.Ceiling{{Group: "", MaxNodes: new(int64)}}
	stock := landing.NodesOf(nodes, landing.Pools{Rooms: landing.Rooms(nodes, landing.Config{}, none)})
	for name, test := range map[string]struct {
		head nodepool.Head
		want int64
	}{
		"a head that waits for a node": {nodepool.Head{Pod: "h", Shape: &pod}, 1},
		"a head on a node":             {nodepool.Head{Pod: "h", Node: "n", Shape: &pod}, 2},
		"no head yet":                  {nodepool.Head{}, 2},
	} {
		c := nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: "ray"}, Head: test.head, Stock: stock,
			Groups: []nodepool.WorkerGroup{{Name: "g", Pod: pod}}}
		c.Places, _ = stock.Places([]landing.Kind{stock.KindOf("g", &pod)}, nil)
		c.Groups[0].Kind = &landing.Pod{Name: "g", Requests: pod.Requests}
		c.Promise(nil)
		c.Promise(c.Promised) // the head counts once
		pods := []landing.Pod{*c.Groups[0].Kind}
		for _, p := range c.Promised {
			pods = append(pods, p.Pod)
		}
		taken := landing.New(pods, c.Places).Empty()
		for i, p := range c.Promised {
			taken.Take(1+i, p.Pods)
		}
		if got := taken.Room(0); got != test.want || len(c.Promised) != int(2-test.want) {
			t.Errorf("%s: room for %d workers, promised %+v, want %d", name, got, c.Promised, test.want)
		}
	}
}
