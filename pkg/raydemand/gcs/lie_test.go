package gcs

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestManyEmptyElementsDoNotTakeTheMemory sends 32 MiB of empty shapes, and of empty constraints in one selector.
func TestManyEmptyElementsDoNotTakeTheMemory(t *testing.T) {
	wrap := func(field protowire.Number, inner []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), inner)
	}
	empties := func(field protowire.Number) []byte { return bytes.Repeat(wrap(field, nil), 16<<20) }
	for name, state := range map[string][]byte{
		"shapes":      empties(4),
		"nodes":       empties(3),
		"constraints": wrap(4, wrap(1, wrap(3, empties(1)))),
		"activities":  wrap(3, empties(12)),
	} {
		r := newReplay(t)
		reply := wrap(1, state)
		r.set("GetClusterResourceState", answer{reply: reply})
		client := dial(t, r, func(c *Config) { c.Timeout = time.Minute })
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := client.State(t.Context())
		runtime.ReadMemStats(&after)
		if !errors.Is(err, raydemand.ErrBadReply) || !strings.Contains(err.Error(), "elements") {
			t.Errorf("%s: %v, want ErrBadReply that tells why", name, err)
		}
		// The server and gRPC's buffers hold several copies of the reply. The decoded reply would take 1.5 GB.
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 400<<20 {
			t.Errorf("%s: the call took %d MiB", name, grown>>20)
		}
	}
}

func TestNodeListedTwiceCountsOnce(t *testing.T) {
	d := &decoder{}
	id := bytes.Repeat([]byte{7}, 28)
	nodes := d.nodes([]*autoscalerpb.NodeState{
		{NodeId: id, InstanceId: "a", Status: autoscalerpb.NodeStatus_RUNNING, TotalResources: map[string]float64{"GPU": 8}},
		{NodeId: id, InstanceId: "b", TotalResources: map[string]float64{"GPU": 8}},
	}, nil)
	if len(nodes) != 1 || nodes[0].Instance != "a" || len(d.findings) != 1 || d.findings[0].Seen != "listed twice" {
		t.Errorf("nodes %+v, findings %+v; want the first and a word about the second", nodes, d.findings)
	}
}

func TestPlacementGroupListedTwiceCountsOnce(t *testing.T) {
	d := &decoder{}
	one := &autoscalerpb.GangResourceRequest{Details: "ab:PACK|PENDING", Requests: []*autoscalerpb.ResourceRequest{wireBundleRequest(1)}}
	nameless := &autoscalerpb.GangResourceRequest{Requests: one.Requests}
	gangs := d.gangs([]*autoscalerpb.GangResourceRequest{one, nameless, one, nameless})
	if len(gangs) != 3 || len(d.findings) != 1 {
		t.Errorf("%d gangs, findings %+v; want ab once and both nameless ones", len(gangs), d.findings)
	}
}

func TestDemandBeyondAllReasonIsCutAndTold(t *testing.T) {
	wire := &autoscalerpb.ClusterResourceState{}
	for i := range maxShapes + 5 {
		wire.PendingResourceRequests = append(wire.PendingResourceRequests, wireShape(1, map[string]float64{"memory": float64(i + 1)}))
	}
	big := &autoscalerpb.GangResourceRequest{Details: "ab:PACK|PENDING"}
	for range maxBundles/2 + 1 {
		big.Requests = append(big.Requests, wireBundleRequest(1))
	}
	wire.PendingGangResourceRequests = []*autoscalerpb.GangResourceRequest{big, {Details: "cc:PACK|PENDING", Requests: big.Requests}, {Details: "cd:PACK|PENDING", Requests: big.Requests[:1]}}
	d := &decoder{}
	state := d.state(wire, beside{})
	if len(state.Demand.Requests) != maxShapes || len(state.Demand.Gangs) != 1 || !state.Truncated {
		t.Errorf("%d shapes, %d gangs, truncated %v", len(state.Demand.Requests), len(state.Demand.Gangs), state.Truncated)
	}
	if len(state.Findings) != 3 {
		t.Errorf("%d findings, want one for the shapes, one for the gangs, one for Ray's own limit", len(state.Findings))
	}
}

func TestMoreNodesThanAnyClusterHasAreABadReply(t *testing.T) {
	wire := &autoscalerpb.GetClusterResourceStateReply{ClusterResourceState: &autoscalerpb.ClusterResourceState{}}
	for range maxNodes + 1 {
		wire.ClusterResourceState.NodeStates = append(wire.ClusterResourceState.NodeStates, &autoscalerpb.NodeState{})
	}
	r := newReplay(t)
	r.set("GetClusterResourceState", replyOf(t, wire))
	if _, err := dial(t, r).State(t.Context()); !errors.Is(err, raydemand.ErrBadReply) {
		t.Errorf("State: %v, want ErrBadReply", err)
	}
}

// TestSlowAnswersShareOneDeadline sends three answers of a v1 head. Each is within the timeout, but all three together
// are not.
func TestSlowAnswersShareOneDeadline(t *testing.T) {
	r := newReplay(t)
	r.set("GetClusterResourceState", recordedAnswer(t, "2.40.0", "idle-1.GetClusterResourceState.binpb"))
	r.slow(200 * time.Millisecond)
	client := dial(t, r, func(c *Config) { c.Timeout = 300 * time.Millisecond })
	if _, err := client.State(t.Context()); !errors.Is(err, raydemand.ErrUnavailable) {
		t.Errorf("State: %v, want ErrUnavailable", err)
	}
}

// TestAResourceOfWhichNothingIsLeftStaysInWhatIsAvailable reads a node without an implicit resource: none there means 1,
// and 0 means that it is in use.
func TestAResourceOfWhichNothingIsLeftStaysInWhatIsAvailable(t *testing.T) {
	const implicit = "node:__internal_implicit_resource_x"
	d := &decoder{}
	node := d.node(raydemand.NodeID{1}, &autoscalerpb.NodeState{
		TotalResources: map[string]float64{"CPU": 8}, AvailableResources: map[string]float64{"CPU": 8, implicit: 0}}, nil)
	if amount, there := node.Available[implicit]; !there || amount != 0 {
		t.Errorf("available are %v, want 0 of %s", node.Available, implicit)
	}
	idle := d.node(raydemand.NodeID{2}, &autoscalerpb.NodeState{
		TotalResources: map[string]float64{"CPU": 8}, AvailableResources: map[string]float64{"CPU": 8}}, nil)
	if !idle.Available.Equal(raydemand.Bundle{"CPU": raydemand.Whole(8)}) {
		t.Errorf("available on an idle node are %v", idle.Available)
	}
}
