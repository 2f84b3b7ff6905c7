package simray_test

import (
	"errors"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/pkg/raydemand/gcs"
	"heliostat.dev/heliostat/test/simray"
)

// clock is a clock that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func start(t *testing.T, options simray.Options) (*simray.Head, *gcs.Client) {
	t.Helper()
	head, err := simray.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(head.Close)
	client, err := gcs.Dial(gcs.Config{Address: head.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return head, client
}

func read(t *testing.T, client *gcs.Client) raydemand.State {
	t.Helper()
	state, err := client.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func gpus(n int64) raydemand.Bundle { return raydemand.Bundle{"GPU": raydemand.Whole(n)} }

func find(t *testing.T, state raydemand.State, instance string) raydemand.Node {
	t.Helper()
	for _, n := range state.Nodes {
		if n.Instance == instance {
			return n
		}
	}
	t.Fatalf("no node %s in %+v", instance, state.Nodes)
	return raydemand.Node{}
}

func TestTaskWaitsRunsAndLeavesItsNodeIdle(t *testing.T) {
	clock := newClock()
	head, client := start(t, simray.Options{Clock: clock})
	head.Submit(simray.Task{Bundle: gpus(1), Runs: 10 * time.Second})
	if requests := read(t, client).Demand.Requests; len(requests) != 1 || requests[0].Count != 1 {
		t.Fatalf("requests %+v, want the task", requests)
	}
	head.AddNode(simray.Node{Instance: "w1", Group: "gpu", Resources: gpus(1)})
	state := read(t, client)
	if len(state.Demand.Requests) != 0 || find(t, state, "w1").Status != raydemand.Running {
		t.Errorf("after the node joined: %+v", state)
	}
	if counts := head.Counts(); counts != (simray.Counts{Running: 1, Ending: 1}) {
		t.Errorf("counts while the task runs: %+v", counts)
	}
	clock.move(25 * time.Second)
	worker := find(t, read(t, client), "w1")
	if worker.Status != raydemand.Idle || worker.Idle != 15*time.Second || worker.Available["GPU"] != raydemand.One {
		t.Errorf("15 s after the task's end: %+v", worker)
	}
	if counts := head.Counts(); counts != (simray.Counts{}) {
		t.Errorf("counts %+v", counts)
	}
	head.Submit(simray.Task{Bundle: gpus(1)})
	if counts := head.Counts(); counts != (simray.Counts{Running: 1}) {
		t.Errorf("counts with work that runs until it is canceled: %+v", counts)
	}
}

func TestQueuedTasksRunOneAfterTheOtherWithinOneStepOfTheClock(t *testing.T) {
	clock := newClock()
	head, client := start(t, simray.Options{Clock: clock})
	head.AddNode(simray.Node{Instance: "w1", Group: "gpu", Resources: gpus(1)})
	for range 3 {
		head.Submit(simray.Task{Bundle: gpus(1), Runs: 10 * time.Second})
	}
	clock.move(32 * time.Second)
	if worker := find(t, read(t, client), "w1"); worker.Idle != 2*time.Second {
		t.Errorf("idle for %v after three tasks of 10 s in 32 s, want 2 s", worker.Idle)
	}
}

func TestPlacementGroupsFollowTheirStrategy(t *testing.T) {
	tests := []struct {
		name   string
		gang   simray.Gang
		labels []string // the value of label "rack" on each node with one GPU
		placed bool
	}{
		{"strict pack needs one node", simray.Gang{Strategy: raydemand.StrictPack, Bundles: []raydemand.Bundle{gpus(1), gpus(1)}}, []string{"", ""}, false},
		{"pack may use two", simray.Gang{Strategy: raydemand.Pack, Bundles: []raydemand.Bundle{gpus(1), gpus(1)}}, []string{"", ""}, true},
		{"strict spread needs as many nodes as bundles", simray.Gang{Strategy: raydemand.StrictSpread, Bundles: []raydemand.Bundle{gpus(0), gpus(0)}}, []string{}, false},
		{"all or nothing", simray.Gang{Strategy: raydemand.Spread, Bundles: []raydemand.Bundle{gpus(1), gpus(1), gpus(1)}}, []string{"", ""}, false},
		{"topology keeps to one rack", simray.Gang{TopologyLabel: "rack", Bundles: []raydemand.Bundle{gpus(1), gpus(1)}}, []string{"a", "b"}, false},
		{"topology finds the rack with room", simray.Gang{TopologyLabel: "rack", Bundles: []raydemand.Bundle{gpus(1), gpus(1)}}, []string{"a", "b", "b"}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			head, client := start(t, simray.Options{Clock: newClock()})
			for _, value := range test.labels {
				head.AddNode(simray.Node{Group: "gpu", Resources: gpus(1), Labels: map[string]string{"rack": value}})
			}
			head.SubmitGang(test.gang)
			if placed := len(read(t, client).Demand.Gangs) == 0; placed != test.placed {
				t.Errorf("placed %v, want %v", placed, test.placed)
			}
		})
	}
}

func TestLostNodeTakesActorsAndReturnsBundles(t *testing.T) {
	head, client := start(t, simray.Options{Clock: newClock()})
	var nodes []raydemand.NodeID
	for _, name := range []string{"w1", "w2"} {
		nodes = append(nodes, head.AddNode(simray.Node{Instance: name, Group: "gpu", Resources: gpus(2)}))
	}
	head.SubmitGang(simray.Gang{Strategy: raydemand.StrictSpread, Bundles: []raydemand.Bundle{gpus(1), gpus(1)}})
	head.Submit(simray.Task{Bundle: gpus(1), Actor: true})
	if placed := find(t, read(t, client), "w2").PlacedLabels; len(placed) != 1 {
		t.Fatalf("placed labels %v", placed)
	}
	head.KillNode(nodes[0])
	state := read(t, client)
	if find(t, state, "w1").Status != raydemand.Dead || head.Counts().Lost != 2 {
		t.Errorf("counts %+v, nodes %+v", head.Counts(), state.Nodes)
	}
	if gangs := state.Demand.Gangs; len(gangs) != 1 || len(gangs[0].Bundles) != 1 {
		t.Errorf("gangs %+v, want the one lost bundle: the other is still placed", gangs)
	}
}

// TestRestartedGCSWithFaultToleranceKeepsAllButWhatRedisDoesNot checks the behavior of a real 2.60.0 head with Redis.
func TestRestartedGCSWithFaultToleranceKeepsAllButWhatRedisDoesNot(t *testing.T) {
	for _, v1 := range []bool{false, true} {
		clock := newClock()
		head, client := start(t, simray.Options{Clock: clock, V1: v1})
		worker := head.AddNode(simray.Node{Instance: "gpu-a", Group: "gpu", Resources: gpus(1)})
		for range 3 {
			head.Submit(simray.Task{Bundle: gpus(1)})
		}
		gang := head.SubmitGang(simray.Gang{Strategy: raydemand.Pack, Bundles: []raydemand.Bundle{gpus(8)}})
		head.RequestResources([]raydemand.Request{{Bundle: gpus(2), Count: 1}})
		clock.move(time.Second)
		id := head.ClusterID()
		read(t, client)
		before := read(t, client)
		if err := head.RestartGCS(); err != nil {
			t.Fatal(err)
		}
		var after raydemand.State
		for after.Session == "" { // the client can need a moment to detect that the old connection is broken
			var err error
			if after, err = client.State(t.Context()); err != nil && !errors.Is(err, raydemand.ErrUnavailable) {
				t.Fatal(err)
			}
		}
		if after.Session != before.Session || after.Version != 1 || head.ClusterID() != id || after.SameGCS(before) {
			t.Errorf("v1 %v: session %s version %d after %s version %d", v1, after.Session, after.Version, before.Session, before.Version)
		}
		if n := find(t, after, "gpu-a"); n.ID != worker || n.Status != raydemand.Running || n.Available["GPU"] != 0 {
			t.Errorf("v1 %v: worker %+v, want it as before and still at work", v1, n)
		}
		heads := 0
		for _, n := range after.Nodes {
			if n.Head && n.Status != raydemand.Dead {
				heads++
			}
		}
		if heads != 1 || len(after.Nodes) != len(before.Nodes)+1 {
			t.Errorf("v1 %v: %d living heads of %d nodes, want a new one beside the dead", v1, heads, len(after.Nodes))
		}
		if d := after.Demand; len(d.Requests) != 1 || d.Requests[0].Count != 2 || len(d.Gangs) != 1 {
			t.Errorf("v1 %v: demand %+v, want what waited before", v1, d)
		}
		if kept := len(after.Demand.Constraint) == 1; kept != v1 {
			t.Errorf("v1 %v: request_resources %+v: the KV store is in Redis, the constraint is not", v1, after.Demand.Constraint)
		}
		if report, calls := head.Report(); report != nil || calls != 0 {
			t.Errorf("v1 %v: a report survived", v1)
		}
		head.Cancel(gang)
		if state := read(t, client); len(state.Demand.Gangs) != 0 {
			t.Errorf("v1 %v: gang cannot be canceled after the restart", v1)
		}
	}
}

func TestFaultsReachTheClient(t *testing.T) {
	head, client := start(t, simray.Options{})
	const method = "GetClusterResourceState"
	for name, test := range map[string]struct {
		fault simray.Fault
		want  error
	}{
		"garbage":     {simray.Fault{Garbage: []byte("\xff\xff\xff")}, raydemand.ErrBadReply},
		"unavailable": {simray.Fault{Code: codes.Unavailable}, raydemand.ErrUnavailable},
		"unknown":     {simray.Fault{Code: codes.Unimplemented}, raydemand.ErrUnsupported},
	} {
		head.SetFault(method, test.fault)
		if _, err := client.State(t.Context()); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
	head.SetFault(method, simray.Fault{Lie: func(s *autoscalerpb.ClusterResourceState) {
		s.NodeStates[0].TotalResources["CPU"] = math.NaN()
	}})
	if state := read(t, client); len(state.Findings) != 1 {
		t.Errorf("a lie gave findings %+v", state.Findings)
	}
	head.SetFault(method, simray.Fault{})
	head.SetPassive(true)
	if _, err := client.State(t.Context()); err == nil || !strings.Contains(err.Error(), "GcsPassive") {
		t.Errorf("passive head: %v", err)
	}
	head.SetPassive(false)
	read(t, client)
}

// TestARestartWaitsForItsAddress has something else hold the address for a while.
func TestARestartWaitsForItsAddress(t *testing.T) {
	head, err := simray.Start(simray.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer head.Close()
	head.Close()
	other, err := net.Listen("tcp", head.Addr())
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = other.Close() })
	if err := head.Restart(); err != nil {
		t.Fatal(err)
	}
}
