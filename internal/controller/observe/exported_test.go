package observe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestWhateverTheLoopCanExportReadsBackAndPlansToTheSameBytes takes RayClusters, pods and heads of every odd kind:
// those are the ones that somebody wants to replay.
func TestWhateverTheLoopCanExportReadsBackAndPlansToTheSameBytes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		snapshot := Assemble(oddSight(rt))
		exported, err := json.Marshal(snapshot)
		if err != nil {
			rt.Fatal(err)
		}
		read, err := snapshotfile.ReadSnapshot(bytes.NewReader(exported), "exported")
		if err != nil {
			rt.Fatalf("%v\n%s", err, exported)
		}
		if diff := cmp.Diff(planBytes(rt, snapshot), planBytes(rt, read)); diff != "" {
			rt.Errorf("plan (-exported +read):\n%s\n%s", diff, exported)
		}
	})
}

func planBytes(t *rapid.T, s planner.Snapshot) string {
	text, err := json.Marshal(planner.Compute(s, s.Policy))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func oddSight(t *rapid.T) SnapshotInput {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	cluster := oddCluster(t)
	nodes := []raydemand.Node{{ID: nodeID("head"), Head: true, Status: raydemand.Idle, Total: oddBundle(t), Available: oddBundle(t)}}
	s := SnapshotInput{Now: now, Head: &nodes[0], Demand: oddDemand(t), Idle: map[raydemand.NodeID]time.Duration{}, Breakers: Breakers{}, Shapes: Shapes{}}
	for i := range rapid.IntRange(0, 4).Draw(t, "pods") {
		w := nodepool.Worker{
			Pod: fmt.Sprintf("pod-%d", i), Group: oddName(t), Replica: rapid.SampledFrom([]string{"", "r"}).Draw(t, "replica"), CreatedAt: now,
			Terminating: rapid.Bool().Draw(t, "terminating"), Failed: rapid.Bool().Draw(t, "failed"),
		}
		cluster.Workers = append(cluster.Workers, w)
		if rapid.Bool().Draw(t, "joined") {
			n := raydemand.Node{
				ID: nodeID(w.Pod), Instance: w.Pod, Group: w.Group, Total: oddBundle(t), Available: oddBundle(t),
				Status: rapid.SampledFrom([]raydemand.NodeStatus{raydemand.Running, raydemand.Idle, raydemand.Draining, raydemand.Dead, raydemand.Unspecified}).Draw(t, "status"),
			}
			nodes = append(nodes, n)
			s.Idle[n.ID] = rapid.SampledFrom([]time.Duration{-time.Second, 0, time.Minute, math.MaxInt64}).Draw(t, "idle")
		}
	}
	s.Cluster, s.Members = cluster, Join(cluster, nodes)
	s.PlainRequests = oddRequests(t)
	return s
}

// oddCluster is marked as the adapter marks what it has read.
func oddCluster(t *rapid.T) nodepool.Cluster {
	cluster := nodepool.Cluster{
		Key: llm, InTreeAutoscaling: rapid.Bool().Draw(t, "inTree"), Suspended: rapid.Bool().Draw(t, "suspended"),
		IdleTimeout:   time.Duration(oddNumber(t)) * time.Second,
		UpscalingMode: rapid.SampledFrom([]string{"", "Default", "Conservative", "Turbo"}).Draw(t, "mode"),
	}
	seen := map[string]bool{}
	for i := range rapid.IntRange(0, 4).Draw(t, "groups") {
		g := nodepool.WorkerGroup{
			Index: i, Name: oddName(t), Resources: oddBundle(t), Min: oddNumber(t), Max: oddNumber(t), Replicas: oddNumber(t),
			NumOfHosts: oddNumber(t), Priority: oddNumber(t), Suspended: rapid.Bool().Draw(t, "groupSuspended"),
		}
		if rapid.Bool().Draw(t, "ownTimeout") {
			timeout := time.Duration(oddNumber(t)) * time.Second
			g.IdleTimeout = &timeout
		}
		g.Broken = g.Name == "" || seen[g.Name] || g.Min < 0 || g.Max < 0 || g.Min > g.Max || g.NumOfHosts < 1 || g.NumOfHosts > nodepool.MostHosts
		if first, twice := cluster.Group(g.Name); twice {
			first.Broken = true
		}
		seen[g.Name] = true
		cluster.Groups = append(cluster.Groups, g)
	}
	return cluster
}

func oddName(t *rapid.T) string { return rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "name") }

func oddNumber(t *rapid.T) int {
	return rapid.SampledFrom([]int{math.MinInt32, -7, 0, 1, 2, 200_000, math.MaxInt32}).Draw(t, "number")
}

func oddBundle(t *rapid.T) raydemand.Bundle {
	bundle := raydemand.Bundle{}
	for _, name := range []string{raydemand.CPU, raydemand.GPU} {
		if rapid.Bool().Draw(t, "has "+name) {
			bundle[name] = rapid.SampledFrom([]raydemand.Amount{0, 1, raydemand.One, raydemand.Whole(900_000_000_000_000), raydemand.MaxAmount}).Draw(t, name)
		}
	}
	return bundle
}

func oddDemand(t *rapid.T) raydemand.Demand {
	d := raydemand.Demand{Requests: oddRequests(t), Constraint: oddRequests(t)}
	if rapid.Bool().Draw(t, "gang") {
		d.Gangs = []raydemand.Gang{{ID: "g", Strategy: raydemand.Pack, Bundles: []raydemand.Bundle{oddBundle(t), oddBundle(t)},
			Fallbacks: [][]raydemand.Bundle{{oddBundle(t)}}}}
	}
	return d
}

func oddRequests(t *rapid.T) []raydemand.Request {
	var all []raydemand.Request
	for range rapid.IntRange(0, 2).Draw(t, "requests") {
		all = append(all, raydemand.Request{Bundle: oddBundle(t), Count: rapid.SampledFrom([]int64{1, 3, 1 << 40, math.MaxInt64}).Draw(t, "count")})
	}
	return slices.Clip(all)
}
