package conformance

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/simray"
)

func drainRefused(t *testing.T, h head) {
	idle := h.node(t, cpuWorker.Instance, raydemand.Idle)
	stop := h.Do(t, Work{Tasks: []Task{{Resources: res{"CPU": 0, "pin": 0.01}, Count: 1, Actor: true}}})
	busy := h.node(t, cpuWorker.Instance, raydemand.Running)
	// The node is busy only because of the lease.
	h.livingActor(t, "an actor lives", func(*raypb.ActorTableData) bool { return true })
	_, err := h.ours.Drain(t.Context(), raydemand.Drain{Node: busy, Reason: raydemand.DrainIdle})
	if !errors.Is(err, raydemand.ErrNotIdle) {
		t.Errorf("our client asked a busy node to leave: %v", err)
	}
	reply, err := h.ours.Drain(t.Context(),
		raydemand.Drain{Node: idle, Reason: raydemand.DrainIdle, Message: "seen idle a moment ago"})
	if err != nil || reply.Accepted || reply.Message != "The node to be idle terminated is no longer idle." {
		t.Errorf("drain of a node that became busy: %+v, %v, want a refusal", reply, err)
	}
	h.livingActor(t, "it is marked as preempted", (*raypb.ActorTableData).GetPreempted)
	stop()
	h.node(t, cpuWorker.Instance, raydemand.Idle)
}

// working waits until a worker process has a lease. Ray allocates resources before that process starts. If a node is
// drained in between, it counts as idle: it terminates at once, and its task is pending again.
func (h head) working(t *testing.T, instance string) (found raydemand.Node) {
	t.Helper()
	h.eventually(t, func() string {
		found = h.node(t, instance, raydemand.Running)
		if !slices.Contains(found.Activity, "Busy workers on node.") {
			return fmt.Sprintf("%s only says %q", instance, found.Activity)
		}
		return ""
	})
	return found
}

// livingActor waits until a living actor satisfies want.
func (h head) livingActor(t *testing.T, claim string, want func(*raypb.ActorTableData) bool) {
	t.Helper()
	h.eventually(t, func() string {
		list, err := h.actors.GetAllActorInfo(t.Context(), &raypb.GetAllActorInfoRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range list.GetActorTableData() {
			if a.GetState() == raypb.ActorTableData_ALIVE && want(a) {
				return ""
			}
		}
		return "not true that " + claim
	})
}

func drainBusy(t *testing.T, h head) {
	idle := h.node(t, cpuWorker.Instance, raydemand.Idle)
	stop := h.Do(t, Work{Tasks: []Task{{Resources: res{"CPU": 1, "pin": 1}, Count: 1}}})
	busy := h.working(t, cpuWorker.Instance)
	deadline := time.Now().Add(h.Notice())
	reply, err := h.ours.Drain(t.Context(),
		raydemand.Drain{Node: busy, Reason: raydemand.DrainPreemption, Message: "spot reclaim", Deadline: deadline})
	if err != nil || !reply.Accepted {
		t.Fatalf("preemption: %+v, %v", reply, err)
	}
	h.node(t, cpuWorker.Instance, raydemand.Draining)
	list, err := h.resources.GetDrainingNodes(t.Context(), &raypb.GetDrainingNodesRequest{})
	if err != nil || len(list.GetDrainingNodes()) != 1 ||
		list.GetDrainingNodes()[0].GetDrainingDeadlineTimestampMs() != deadline.UnixMilli() {
		t.Errorf("draining nodes %v, %v, want one with deadline %d", list, err, deadline.UnixMilli())
	}
	// The test sends the node as it was when idle. The client does not send a drain for a node that is Draining.
	again, err := h.ours.Drain(t.Context(), raydemand.Drain{Node: idle, Reason: raydemand.DrainIdle})
	if accepted := h.Version() != simray.Ray240; err != nil || again.Accepted != accepted {
		t.Errorf("second drain of a draining node: %+v, %v, want accepted %v", again, err, accepted)
	}
	pause(t.Context(), time.Until(deadline)+h.Notice()/2)
	h.node(t, cpuWorker.Instance, raydemand.Draining) // at the deadline the node does not end; it ends with its work
	stop()
	h.node(t, cpuWorker.Instance, raydemand.Dead)
	h.died(t, cpuWorker.Instance, raypb.NodeDeathInfo_AUTOSCALER_DRAIN_PREEMPTED)
}

func drainIdle(t *testing.T, h head) {
	idle := h.node(t, gpuWorker.Instance, raydemand.Idle)
	reply, err := h.ours.Drain(t.Context(),
		raydemand.Drain{Node: idle, Reason: raydemand.DrainIdle, Message: "idle for 60s"})
	if err != nil || !reply.Accepted {
		t.Fatalf("drain of an idle node: %+v, %v", reply, err)
	}
	h.node(t, gpuWorker.Instance, raydemand.Dead)
	h.died(t, gpuWorker.Instance, raypb.NodeDeathInfo_AUTOSCALER_DRAIN_IDLE)
}

func (h head) died(t *testing.T, instance string, want raypb.NodeDeathInfo_Reason) {
	t.Helper()
	h.eventually(t, func() string {
		list, err := h.nodes.GetAllNodeInfo(t.Context(), &raypb.GetAllNodeInfoRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range list.GetNodeInfoList() {
			if n.GetInstanceId() == instance && n.GetDeathInfo().GetReason() == want {
				return ""
			}
		}
		return instance + " did not die of " + want.String()
	})
}

func drainNobody(t *testing.T, h head) {
	dead := h.node(t, gpuWorker.Instance, raydemand.Dead)
	const idle = autoscalerpb.DrainNodeReason_DRAIN_NODE_REASON_IDLE_TERMINATION
	for name, id := range map[string][]byte{"nil": nil, "unknown": make([]byte, 28), "dead": dead.ID[:]} {
		reply, err := h.autoscaler.DrainNode(t.Context(), &autoscalerpb.DrainNodeRequest{NodeId: id, Reason: idle})
		if err != nil || !reply.GetIsAccepted() {
			t.Errorf("drain of a %s node: %v, %v, want accepted", name, reply, err)
		}
	}
	var trailer metadata.MD
	_, err := h.autoscaler.DrainNode(t.Context(), &autoscalerpb.DrainNodeRequest{NodeId: dead.ID[:], Reason: idle,
		DeadlineTimestampMs: -5}, grpc.Trailer(&trailer))
	text := trailer.Get("grpc-status-details-bin")
	if status.Code(err) != codes.Aborted || status.Convert(err).Message() != "Invalid" || len(text) != 1 ||
		text[0] != "Draining deadline must be non-negative, received -5" {
		t.Errorf("negative deadline: %v, trailer %q", err, text)
	}
}
