package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/test/rig"
)

// at returns a moment of the tests, in seconds.
func at(seconds float64) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

// perfect returns the facts of a story in which every worker that the chapters need lives as it should.
func perfect() []rig.Fact {
	var facts []rig.Fact
	for _, c := range chapters {
		for group, n := range c.workers {
			for i := range n {
				pod := fmt.Sprintf("%s-%s-%d", c.title, group, i)
				for step, stage := range []rig.Stage{rig.PodCreated, rig.Scheduled, rig.NodeAlive, rig.NodeIdle, rig.Drained, rig.PodStopping, rig.PodGone} {
					facts = append(facts, rig.Fact{At: at(float64(step)), Stage: stage, Group: group, Pod: pod})
				}
			}
		}
	}
	return facts
}

func TestAPerfectStoryIsVerified(t *testing.T) {
	if err := verify(perfect(), nil); err != nil {
		t.Error(err)
	}
}

func TestEveryMissingStepIsNamed(t *testing.T) {
	for _, stage := range []rig.Stage{rig.Scheduled, rig.NodeAlive, rig.NodeIdle, rig.Drained, rig.PodStopping, rig.PodGone} {
		facts := perfect()
		i := slices.IndexFunc(facts, func(f rig.Fact) bool { return f.Stage == stage })
		err := verify(slices.Delete(facts, i, i+1), nil)
		if err == nil || !strings.Contains(err.Error(), string(stage)) {
			t.Errorf("without %q: %v", stage, err)
		}
	}
}

func TestAStoryWithWrongEndsIsRefused(t *testing.T) {
	early := perfect()
	for i := range early {
		if early[i].Stage == rig.PodStopping {
			early[i].At = at(2) // before it was drained
			break
		}
	}
	extra := append(perfect(), rig.Fact{Stage: rig.PodCreated, Pod: "one-too-many"})
	for _, test := range []struct {
		name, want string
		facts      []rig.Fact
		lost       []rig.Event
	}{
		{"a pod that is stopped before it is drained", "too early", early, nil},
		{"a worker that nothing needed", "were needed", extra, nil},
		{"work that was lost", "whole was lost: node died", perfect(), []rig.Event{{ID: "whole", Error: "node died"}}},
	} {
		if err := verify(test.facts, test.lost); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q in it", test.name, err, test.want)
		}
	}
}

func TestAStageIsTimedFromTheOneBefore(t *testing.T) {
	c := newClock()
	c.asked = at(10)
	var got []string
	for _, f := range []rig.Fact{
		{At: at(10.5), Stage: rig.DemandSeen},
		{At: at(11), Stage: rig.GroupPatched, Group: "gpu", From: 0, To: 1},
		{At: at(12), Stage: rig.PodCreated, Group: "gpu", Pod: "a"},
		{At: at(14), Stage: rig.Scheduled, Pod: "a"},
		{At: at(18), Stage: rig.NodeAlive, Pod: "a"},
		{At: at(18.1), Stage: rig.NodeIdle, Pod: "a"}, // before its work
		{At: at(19), Stage: rig.WorkRan, Pod: "a"},
		{At: at(20), Stage: rig.WorkRan, Pod: "a"}, // a second task there
	} {
		since, part := c.since(f)
		got = append(got, fmt.Sprintf("%s %s %t", f.Stage, since, part))
	}
	want := []string{
		"demand seen 500ms true", "group patched 500ms true", "pod created 1s true", "scheduled 2s true",
		"Ray node alive 4s true", "idle 0s false", "work ran 1s true", "work ran 1s false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
}

// After the story, the clock does not know what is asked for: what is seen starts a count of its own.
func TestAfterTheStoryTimesCountFromWhatIsSeen(t *testing.T) {
	c := newClock()
	c.asked, c.released, c.live = at(10), at(20), true
	var got []string
	for _, f := range []rig.Fact{
		{At: at(200), Stage: rig.DemandSeen},
		{At: at(200.5), Stage: rig.GroupPatched, Group: "gpu", From: 0, To: 1},
		{At: at(201), Stage: rig.PodCreated, Group: "gpu", Pod: "a"},
		{At: at(208), Stage: rig.NodeAlive, Pod: "a"},
		{At: at(209), Stage: rig.NodeIdle, Pod: "a"},
	} {
		since, _ := c.since(f)
		got = append(got, fmt.Sprintf("%s %s", f.Stage, since))
	}
	want := []string{"demand seen 0s", "group patched 500ms", "pod created 500ms", "Ray node alive 7s", "idle 1s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
}

func TestStagesAreSummedUp(t *testing.T) {
	got := stages(map[rig.Stage][]time.Duration{
		rig.Scheduled:  {3 * time.Second},
		rig.DemandSeen: {4 * time.Second, time.Second, 3 * time.Second, 2 * time.Second},
	})
	want := []row{
		{stage: rig.DemandSeen, count: 4, p50: 2 * time.Second, max: 4 * time.Second},
		{stage: rig.Scheduled, count: 1, p50: 3 * time.Second, max: 3 * time.Second},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestTheManifestIsTheStorysCluster(t *testing.T) {
	cluster, err := manifest()
	if err != nil {
		t.Fatal(err)
	}
	if cluster.GetNamespace() != namespace || cluster.GetName() != name {
		t.Errorf("raycluster.yaml is %s/%s, the story is about %s/%s", cluster.GetNamespace(), cluster.GetName(), namespace, name)
	}
	groups := rig.Replicas(cluster)
	for _, c := range chapters {
		for group := range c.workers {
			if replicas, ok := groups[group]; !ok || replicas != 0 {
				t.Errorf("%s needs group %s to start at 0; raycluster.yaml has %v", c.title, group, groups)
			}
		}
	}
}
