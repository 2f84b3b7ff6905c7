package rig

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAnEventIsReadAsTheDriverPrintsIt(t *testing.T) {
	for line, want := range map[string]Event{
		`{"id": "t", "event": "running", "at": 1795266032.5, "pod": "p"}`:            {ID: "t", Event: "running", At: time.Unix(1795266032, 5e8), Pod: "p"},
		`{"id": "g", "event": "placed", "at": 2, "nodes": ["a", "b"]}`:               {ID: "g", Event: "placed", At: time.Unix(2, 0), Nodes: []string{"a", "b"}},
		`{"id": "t", "event": "lost", "at": 3, "error": "WorkerCrashedError: gone"}`: {ID: "t", Event: "lost", At: time.Unix(3, 0), Error: "WorkerCrashedError: gone"},
	} {
		var got Event
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

func TestAWaitSeesWhatIsThereAndWhatComes(t *testing.T) {
	j := NewJournal(nil)
	j.Add(Fact{Stage: PodCreated, Pod: "a"})
	both := func(facts []Fact) bool { return len(Pods(facts, "")) == 2 }
	done := make(chan error)
	go func() { done <- j.Wait(context.Background(), "two pods", both) }()
	j.Add(Fact{Stage: PodCreated, Pod: "b"})
	if err := <-done; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	late := errors.New("late")
	cancel(late)
	if err := j.Wait(ctx, "three pods", func([]Fact) bool { return false }); !errors.Is(err, late) {
		t.Errorf("a wait that is cut short returns %v", err)
	}
}

func TestLivingPodsAreThoseThatAreNotGone(t *testing.T) {
	facts := []Fact{
		{Stage: PodCreated, Group: "gpu", Pod: "a"}, {Stage: PodCreated, Group: "cpu", Pod: "b"}, {Stage: PodCreated, Group: "gpu", Pod: "c"},
		{Stage: PodStopping, Group: "gpu", Pod: "a"}, {Stage: PodGone, Group: "gpu", Pod: "a"}, {Stage: PodStopping, Group: "gpu", Pod: "c"},
	}
	if diff := cmp.Diff([]string{"b", "c"}, Living(facts, "")); diff != "" {
		t.Errorf("of all groups (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"c"}, Living(facts, "gpu")); diff != "" {
		t.Errorf("of one group (-want +got):\n%s", diff)
	}
}

func TestANodesLifeIsRecordedOnce(t *testing.T) {
	j := NewJournal(nil)
	node := raydemand.Node{Instance: "pod", Group: "gpu"}
	before := raydemand.NodeStatus("")
	for _, status := range []raydemand.NodeStatus{raydemand.Running, raydemand.Idle, raydemand.Draining, raydemand.Dead} {
		node.Status = status
		noteNode(j, node, before, time.Time{})
		before = status
	}
	var got []Stage
	for _, f := range j.Facts() {
		got = append(got, f.Stage)
	}
	if diff := cmp.Diff([]Stage{NodeAlive, NodeBusy, NodeIdle, Drained}, got); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
}

func TestTheUsageOfThisProcessIsRead(t *testing.T) {
	u, err := UsageOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if u.Resident < 1<<20 || u.Peak < u.Resident || u.CPU < 0 {
		t.Errorf("usage is %+v", u)
	}
	if _, err := UsageOf(-1); err == nil {
		t.Error("a process that does not exist has a usage")
	}
}
