package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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

func TestADrainIsTimedFromTheReleaseWhereTheIdleStepWasSeenBeforeIt(t *testing.T) {
	c := newClock()
	c.asked = at(0)
	for _, f := range []rig.Fact{{At: at(1), Stage: rig.PodCreated, Pod: "a"}, {At: at(11), Stage: rig.WorkRan, Pod: "a"}, {At: at(51), Stage: rig.NodeIdle, Pod: "a"}} {
		c.since(f)
	}
	c.released = at(52)
	if took, shown := c.since(rig.Fact{At: at(62), Stage: rig.Drained, Pod: "a"}); took != 10*time.Second || !shown {
		t.Errorf("a worker that was idle a moment before the release was drained %v later, want 10 s", took)
	}
}
