package arrival

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

func TestEachPodHasAStage(t *testing.T) {
	for name, c := range map[string]struct {
		pod      Pod
		machines []Machines
		want     *State
	}{
		"it has joined":                        {pod: Pod{Joined: true, Placed: true}},
		"a gate promises nothing":              {Pod{CreatedAt: at(1), Gated: true}, []Machines{{Pods: 1, Stage: NodeLaunched}}, &State{Stage: Gated, Since: at(1)}},
		"no machine is known":                  {Pod{CreatedAt: at(1)}, nil, &State{Stage: WaitsForNode, Since: at(1)}},
		"no machine can be had":                {Pod{CreatedAt: at(1), Refused: "limit reached"}, nil, &State{Stage: WaitsForNode, Message: "limit reached", Since: at(1)}},
		"a node autoscaler adds a node":        {Pod{CreatedAt: at(1), PromisedAt: at(20), Refused: "no"}, nil, &State{Stage: NodeRequested, Since: at(20)}},
		"its node lacks a device":              {Pod{CreatedAt: at(1)}, []Machines{{Pods: 2, Stage: NodeReady, Since: at(90), Lacks: "nvidia.com/gpu"}}, &State{Stage: NodeReady, Since: at(90), Message: "nvidia.com/gpu"}},
		"a promise counts less than a machine": {Pod{CreatedAt: at(1), PromisedAt: at(1), Refused: "no"}, []Machines{{Pods: 1, Stage: NodeLaunched, Since: at(3)}}, &State{Stage: NodeLaunched, Since: at(3)}},
		"it is bound":                          {Pod{CreatedAt: at(1), ScheduledAt: at(5), Placed: true}, nil, &State{Stage: Bound, Since: at(5)}},
		"it pulls an image":                    {Pod{ScheduledAt: at(5), Placed: true, Waits: "ContainerCreating"}, nil, &State{Stage: Starting, Since: at(5)}},
		"its image does not come":              {Pod{ScheduledAt: at(5), Placed: true, Waits: "ImagePullBackOff"}, nil, &State{Stage: Starting, Message: "ImagePullBackOff", Since: at(5)}},
		"Ray starts":                           {Pod{ScheduledAt: at(5), StartedAt: at(9), Placed: true, Running: true}, nil, &State{Stage: JoiningRay, Since: at(9)}},
	} {
		if diff := cmp.Diff([]*State{c.want}, States([]Pod{c.pod}, c.machines)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestMachinesCountForThePodsThatWaitLongest(t *testing.T) {
	pods := []Pod{{UID: "young", CreatedAt: at(3)}, {UID: "gated", Gated: true}, {UID: "old", CreatedAt: at(1)}, {UID: "b", CreatedAt: at(2)}, {UID: "a", CreatedAt: at(2)}, {UID: "bound", Placed: true}}
	machines := []Machines{{Pods: 1, Stage: NodeRegistered}, {Pods: 1, Stage: NodeLaunched}, {Pods: 1, Stage: NodeRequested}}
	var got []Stage
	for _, s := range States(pods, machines) {
		got = append(got, s.Stage)
	}
	if diff := cmp.Diff([]Stage{WaitsForNode, Gated, NodeRegistered, NodeRequested, NodeLaunched, Bound}, got); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
	machines[0].Pods = 50
	for i, s := range States(pods, machines) {
		if want := pods[i].Gated || pods[i].Placed; (s.Stage != NodeRegistered) != want {
			t.Errorf("%s with room for all: %s", pods[i].UID, s.Stage)
		}
	}
}

func TestEachStageHasASentence(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Stages {
		if text := s.Text(); text == string(s) || seen[text] {
			t.Errorf("stage %s: %q", s, text)
		}
		seen[s.Text()] = true
	}
}
