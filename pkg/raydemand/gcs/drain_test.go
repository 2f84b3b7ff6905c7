package gcs

import (
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/raydemand"
)

func idleDrain() raydemand.Drain {
	return raydemand.Drain{Node: raydemand.Node{ID: raydemand.NodeID{1}, Status: raydemand.Idle}, Reason: raydemand.DrainIdle}
}

// TestDrainSendsRecordedBytes compares drain requests with the recorded requests that real heads answered.
func TestDrainSendsRecordedBytes(t *testing.T) {
	tests := []struct {
		file     string
		reason   raydemand.DrainReason
		status   raydemand.NodeStatus
		message  string
		deadline bool
		want     raydemand.DrainReply
	}{
		{"drain-refused-busy.DrainNode.binpb", raydemand.DrainIdle, raydemand.Idle, "idle for 60 s", false,
			raydemand.DrainReply{Message: "The node to be idle terminated is no longer idle."}},
		{"draining-busy.DrainNode.binpb", raydemand.DrainPreemption, raydemand.Running, "spot reclaim", true,
			raydemand.DrainReply{Accepted: true}},
	}
	for _, version := range versions {
		for _, test := range tests {
			e := recording(t, version, test.file)
			request, err := hex.DecodeString(e.Request)
			must(t, err)
			id, err := raydemand.ParseNodeID(request[2:30])
			must(t, err)
			drain := raydemand.Drain{Node: raydemand.Node{ID: id, Status: test.status}, Reason: test.reason, Message: test.message}
			if test.deadline {
				drain.Deadline = time.UnixMilli(varint(request[len(request)-6:]))
			}
			r := newReplay(t)
			r.set("DrainNode", recordedAnswer(t, version, test.file))
			reply, err := dial(t, r).Drain(t.Context(), drain)
			must(t, err)
			if diff := cmp.Diff(test.want, reply); diff != "" {
				t.Errorf("%s %s: reply (-want +got):\n%s", version, test.file, diff)
			}
			if diff := cmp.Diff(request, r.called("DrainNode")[0].request); diff != "" {
				t.Errorf("%s %s: request (-recorded +ours):\n%s", version, test.file, diff)
			}
		}
	}
}

func varint(bytes []byte) (value int64) {
	for i, b := range bytes {
		value |= int64(b&0x7f) << (7 * i)
	}
	return value
}

func TestNodeNotSeenIdleIsNeverAskedToIdleTerminate(t *testing.T) {
	r := newReplay(t)
	client := dial(t, r)
	for _, s := range []raydemand.NodeStatus{raydemand.Running, raydemand.Unspecified, ""} {
		drain := idleDrain()
		drain.Node.Status = s
		if _, err := client.Drain(t.Context(), drain); !errors.Is(err, raydemand.ErrNotIdle) {
			t.Errorf("Drain of a %s node: %v, want ErrNotIdle", s, err)
		}
	}
	if calls := r.called("DrainNode"); len(calls) > 0 {
		t.Errorf("%d calls were sent", len(calls))
	}
}

func TestNodeThatAlreadyLeavesNeedsNoCall(t *testing.T) {
	r := newReplay(t)
	client := dial(t, r)
	for _, s := range []raydemand.NodeStatus{raydemand.Draining, raydemand.Dead} {
		drain := idleDrain()
		drain.Node.Status = s
		if reply, err := client.Drain(t.Context(), drain); err != nil || !reply.Accepted {
			t.Errorf("Drain of a %s node: %+v, %v", s, reply, err)
		}
	}
	if calls := r.called("DrainNode"); len(calls) > 0 {
		t.Errorf("%d calls were sent", len(calls))
	}
}

func TestHarmfulDrainsAreNotSent(t *testing.T) {
	r := newReplay(t)
	client := dial(t, r)
	for name, change := range map[string]func(*raydemand.Drain){
		"reason 0":             func(d *raydemand.Drain) { d.Reason = 0 },
		"reason 3":             func(d *raydemand.Drain) { d.Reason = 3 },
		"zero node id":         func(d *raydemand.Drain) { d.Node.ID = raydemand.NodeID{} },
		"nil node id":          func(d *raydemand.Drain) { d.Node.ID = nilNodeID },
		"deadline before 1970": func(d *raydemand.Drain) { d.Deadline = time.UnixMilli(-5) },
	} {
		drain := idleDrain()
		change(&drain)
		if _, err := client.Drain(t.Context(), drain); err == nil || errors.Is(err, raydemand.ErrUnsupported) {
			t.Errorf("%s: %v, want a refusal before the call", name, err)
		}
	}
	if calls := r.called("DrainNode"); len(calls) > 0 {
		t.Errorf("%d calls were sent", len(calls))
	}
}
