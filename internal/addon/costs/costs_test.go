package costs

import (
	"slices"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/price"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestADecisionsPodsCostTheirShareOfTheirNodes has a pod with half of the CPUs of a node that costs 4 an hour.
func TestADecisionsPodsCostTheirShareOfTheirNodes(t *testing.T) {
	nodes := []landing.Node{{Name: "n", Labels: map[string]string{"node.kubernetes.io/instance-type": "big"},
		Allocatable: landing.Quantities{"cpu": raydemand.Whole(16)}}}
	stock := landing.NodesOf(nodes, landing.Pools{})
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c := New(&price.Book{Currency: "EUR", InstanceTypes: map[string]float64{"big": 4}})
	eight := raydemand.Bundle{raydemand.CPU: raydemand.Whole(8)}
	d := &addon.Decision{Cluster: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, Mode: nodepool.Managed}
	d.Kube.Stock = stock
	d.Kube.Groups = []nodepool.WorkerGroup{{Name: "cpu", Pod: landing.PodShape{Requests: landing.Quantities{"cpu": raydemand.Whole(8)}}}}
	d.Pods = addon.LatestOf([]nodepool.Worker{{Pod: "w", Group: "cpu", Node: "n", CreatedAt: begin, ScheduledAt: begin}})
	d.Snapshot.Nodes = []planner.Node{{Pod: "w", Group: "cpu", State: planner.Running, Total: eight, Available: raydemand.Bundle{},
		Activity: []string{raydemand.ActiveWorkers}}}
	see := func(at time.Time) {
		d.At = at
		c.Observe(d)
	}
	see(begin)
	for at := begin; !at.After(begin.Add(time.Hour)); at = at.Add(time.Minute) {
		see(at)
	}
	failed := *d
	failed.ObserveFailed, failed.Pods, failed.At = true, nil, begin.Add(61*time.Minute)
	c.Observe(&failed) // adds nothing, and the decision before holds
	costs := c.Ledger.Counters(d.Cluster)
	if len(costs) != 1 || costs[0].Cause != ledger.Used || costs[0].Money < 1.99 || costs[0].Money > 2.01 ||
		costs[0].PodSeconds != 3600 {
		t.Errorf("%+v", costs)
	}
	d.Kube.Groups[0].Min, d.Kube.Groups[0].NumOfHosts = 1, 1
	d.Snapshot.Nodes[0].State, d.Snapshot.Nodes[0].Available, d.Snapshot.Nodes[0].Activity = planner.Idle, eight, nil
	d.Plan.Stays = map[string]string{"w": "minimum"}
	for at := begin.Add(61 * time.Minute); !at.After(begin.Add(2 * time.Hour)); at = at.Add(time.Minute) {
		see(at)
	}
	rows := c.Ledger.Rows(d.At)
	idle := slices.IndexFunc(rows, func(r ledger.Row) bool { return r.Cause == ledger.Idle })
	if idle < 0 || rows[idle].Why != "minimum" || rows[idle].Money < 1.9 || rows[idle].Money > 2 {
		t.Errorf("a worker that the minimum kept for an hour: %+v", rows)
	}
}
