package simray

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestAStateIsEncodedAsItIs compares the kept wire form of nodes with a state that is built anew, after each change.
func TestAStateIsEncodedAsItIs(t *testing.T) {
	clock := &stepClock{now: time.Date(2026, 8, 20, 12, 0, 0, 0, time.UTC)}
	h, err := Start(Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	check := func(after string) {
		t.Helper()
		clock.now = clock.now.Add(time.Second)
		h.look(func(c *cluster, now time.Time) {
			got := &autoscalerpb.GetClusterResourceStateReply{}
			if err := proto.Unmarshal(c.encode(now), got); err != nil {
				t.Fatal(err)
			}
			c.version--
			if want := c.state(now); !proto.Equal(want, got.GetClusterResourceState()) {
				t.Errorf("after %s: got %v, want %v", after, got, want)
			}
		})
	}
	check("the start")
	id := h.AddNode(Node{Instance: "w", Group: "cpu", Resources: raydemand.Bundle{raydemand.CPU: raydemand.One}})
	check("a node has joined")
	task := Task{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.One}}
	first := h.Submit(task)
	check("a task")
	h.Submit(task)
	check("a task that waits")
	h.Cancel(first)
	check("the end of a task")
	h.SetBusy(id, "copying")
	check("other use")
	h.SetIdle(id, time.Minute)
	check("no use")
	h.KillNode(id)
	check("the end of a node")
}

type stepClock struct{ now time.Time }

func (c *stepClock) Now() time.Time { return c.now }
