package arrival

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// known: a node takes 100 s, and nine in ten 200 s; then a worker takes 10 s, and nine in ten 30 s.
var known = Times{Node: Leg{3, 100, 200}, Join: Leg{3, 10, 30}}

func TestEachPodHasAStageAndAnExpectedTime(t *testing.T) {
	for name, c := range map[string]struct {
		pod      Pod
		machines []Machines
		times    Times
		want     *State
	}{
		"it has joined":                 {pod: Pod{Joined: true, Placed: true}, times: known},
		"a gate promises nothing":       {Pod{CreatedAt: at(1), Gated: true}, []Machines{{Pods: 1, Stage: NodeLaunched}}, known, &State{Stage: Gated, Since: at(1)}},
		"no machine is known":           {Pod{CreatedAt: at(1)}, nil, known, &State{Stage: WaitsForNode, Since: at(1), ExpectedAt: at(111), LateAt: at(231)}},
		"no machine can be had":         {Pod{CreatedAt: at(1), Refused: "limit reached"}, nil, known, &State{Stage: WaitsForNode, Message: "limit reached", Since: at(1)}},
		"a node autoscaler adds a node": {Pod{CreatedAt: at(1), PromisedAt: at(20)}, nil, known, &State{Stage: NodeRequested, Since: at(20), ExpectedAt: at(130), LateAt: at(250)}},
		"its machine is requested":      {Pod{CreatedAt: at(1)}, []Machines{{Pods: 1, Stage: NodeRequested, AskedAt: at(2), Since: at(2)}}, known, &State{Stage: NodeRequested, Since: at(2), ExpectedAt: at(112), LateAt: at(232)}},
		"its machine was asked for again": {Pod{CreatedAt: at(1)}, []Machines{{Pods: 1, Stage: NodeLaunched, AskedAt: at(60), Since: at(61)}}, known,
			&State{Stage: NodeLaunched, Since: at(61), ExpectedAt: at(170), LateAt: at(290)}},
		"its machine is older": {Pod{CreatedAt: at(50)}, []Machines{{Pods: 1, Stage: NodeRegistered, AskedAt: at(0), Since: at(40)}}, known, &State{Stage: NodeRegistered, Since: at(40), ExpectedAt: at(160), LateAt: at(280)}},
		"its node lacks a device": {Pod{CreatedAt: at(1)}, []Machines{{Pods: 2, Stage: NodeReady, AskedAt: at(2), Since: at(90), Lacks: "nvidia.com/gpu"}}, known,
			&State{Stage: NodeReady, Since: at(90), Message: "nvidia.com/gpu", ExpectedAt: at(112), LateAt: at(232)}},
		"a promise counts less than a machine": {Pod{CreatedAt: at(1), PromisedAt: at(1), Refused: "no"}, []Machines{{Pods: 1, Stage: NodeLaunched, AskedAt: at(2), Since: at(3)}}, known,
			&State{Stage: NodeLaunched, Since: at(3), ExpectedAt: at(112), LateAt: at(232)}},
		"it is bound":               {Pod{CreatedAt: at(1), ScheduledAt: at(5), Placed: true}, nil, known, &State{Stage: Bound, Since: at(5), ExpectedAt: at(15), LateAt: at(35)}},
		"it pulls an image":         {Pod{ScheduledAt: at(5), Placed: true, Waits: "ContainerCreating"}, nil, known, &State{Stage: Starting, Since: at(5), ExpectedAt: at(15), LateAt: at(35)}},
		"its image does not come":   {Pod{ScheduledAt: at(5), Placed: true, Waits: "ImagePullBackOff"}, nil, known, &State{Stage: Starting, Message: "ImagePullBackOff", Since: at(5), ExpectedAt: at(15), LateAt: at(35)}},
		"Ray starts":                {Pod{ScheduledAt: at(5), StartedAt: at(9), Placed: true, Running: true}, nil, known, &State{Stage: JoiningRay, Since: at(9), ExpectedAt: at(15), LateAt: at(35)}},
		"bound at an unknown time":  {Pod{Placed: true}, nil, known, &State{Stage: Bound}},
		"too few workers were seen": {Pod{ScheduledAt: at(5), Placed: true}, nil, Times{Join: Leg{2, 10, 30}}, &State{Stage: Bound, Since: at(5)}},
		"no node was waited for":    {Pod{CreatedAt: at(1)}, nil, Times{Join: known.Join}, &State{Stage: WaitsForNode, Since: at(1)}},
	} {
		got := Group{Pods: []Pod{c.pod}, Machines: c.machines}.States(c.times)
		if diff := cmp.Diff([]*State{c.want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestMachinesCountForThePodsThatWaitLongest(t *testing.T) {
	g := Group{
		Pods:     []Pod{{UID: "young", CreatedAt: at(3)}, {UID: "gated", Gated: true}, {UID: "old", CreatedAt: at(1)}, {UID: "b", CreatedAt: at(2)}, {UID: "a", CreatedAt: at(2)}, {UID: "bound", Placed: true}},
		Machines: []Machines{{Pods: 1, Stage: NodeRegistered}, {Pods: 1, Stage: NodeLaunched}, {Pods: 1, Stage: NodeRequested}},
	}
	var got []Stage
	for _, s := range g.States(Times{}) {
		got = append(got, s.Stage)
	}
	if diff := cmp.Diff([]Stage{WaitsForNode, Gated, NodeRegistered, NodeRequested, NodeLaunched, Bound}, got); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
	g.Machines[0].Pods = 50
	for i, s := range g.States(Times{}) {
		if want := g.Pods[i].Gated || g.Pods[i].Placed; (s.Stage != NodeRegistered) != want {
			t.Errorf("%s with room for all: %s", g.Pods[i].UID, s.Stage)
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
