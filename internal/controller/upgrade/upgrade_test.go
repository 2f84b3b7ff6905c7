package upgrade_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/controller/upgrade"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// of returns a bundle: of("GPU", 1, "CPU", 2).
func of(pairs ...any) raydemand.Bundle {
	b := raydemand.Bundle{}
	for i := 0; i < len(pairs); i += 2 {
		b[pairs[i].(string)] = raydemand.Whole(int64(pairs[i+1].(int)))
	}
	return b
}

// deployment wants replicas of bundles.
func deployment(replicas int64, strategy raydemand.Strategy, bundles ...raydemand.Bundle) raydemand.Deployment {
	return raydemand.Deployment{App: "a", Name: "d", Replicas: replicas, Strategy: strategy, Bundles: bundles}
}

func text(needs []upgrade.Need) string {
	var all []string
	for _, n := range needs {
		all = append(all, fmt.Sprintf("%d × %v", n.Count, n.Bundle))
	}
	return strings.Join(all, ", ")
}

func TestReplicasNeedRoomForTheirBundles(t *testing.T) {
	gpu, cpu := of("GPU", 1, "CPU", 1), of("CPU", 1)
	for _, c := range []struct {
		name string
		all  []raydemand.Deployment
		want string
	}{
		{"equal replicas of two deployments add up, the largest come first",
			[]raydemand.Deployment{deployment(2, "", cpu), deployment(3, "", gpu), deployment(1, "", cpu)}, "3 × {CPU 1, GPU 1}, 3 × {CPU 1}"},
		{"bundles on one node are one bundle", []raydemand.Deployment{deployment(2, raydemand.StrictPack, gpu, gpu)}, "2 × {CPU 2, GPU 2}"},
		{"other bundles count by themselves", []raydemand.Deployment{deployment(2, raydemand.Pack, gpu, gpu, cpu)}, "4 × {CPU 1, GPU 1}, 2 × {CPU 1}"},
		{"nothing wanted, or nothing requested", []raydemand.Deployment{deployment(0, "", gpu), deployment(5, ""), deployment(5, "", of("GPU", 0))}, ""},
	} {
		if got := text(upgrade.Needs(c.all)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestLabelsDistinguishNeeds(t *testing.T) {
	a, b := deployment(1, "", of("CPU", 1)), deployment(1, "", of("CPU", 1))
	b.Selectors = []raydemand.Selector{{{Key: "zone", Op: raydemand.In, Values: []string{"a"}}}}
	if got := upgrade.Needs([]raydemand.Deployment{a, b}); len(got) != 2 {
		t.Errorf("%+v", got)
	}
}

func TestWhatIsHeldIsNotMissing(t *testing.T) {
	needs := upgrade.Needs([]raydemand.Deployment{deployment(3, "", of("GPU", 1, "CPU", 1)), deployment(4, "", of("CPU", 2))})
	for _, c := range []struct {
		name string
		held raydemand.Bundle
		want string
	}{
		{"nothing is held", nil, "3 × {CPU 1, GPU 1}, 4 × {CPU 2}"},
		{"the largest come first", of("GPU", 2, "CPU", 2), "1 × {CPU 1, GPU 1}, 4 × {CPU 2}"},
		{"CPUs alone hold no GPU", of("CPU", 4), "3 × {CPU 1, GPU 1}, 2 × {CPU 2}"},
		{"all is held", of("GPU", 3, "CPU", 11), ""},
		{"more than that", of("GPU", 99, "CPU", 99, "disk", 1), ""},
	} {
		if got := text(upgrade.Missing(needs, c.held)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestRoomAndWorkTogetherNeverExceedTheNeeds draws needs and work that holds a part of them.
func TestRoomAndWorkTogetherNeverExceedTheNeeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bundle := rapid.Custom(func(t *rapid.T) raydemand.Bundle {
			return of("GPU", rapid.IntRange(0, 2).Draw(t, "GPU"), "CPU", rapid.IntRange(1, 4).Draw(t, "CPU"))
		})
		var all []raydemand.Deployment
		held, whole := raydemand.Bundle{}, raydemand.Bundle{}
		complete := true
		for range rapid.IntRange(1, 4).Draw(t, "deployments") {
			b, wanted := bundle.Draw(t, "bundle"), rapid.Int64Range(0, 5).Draw(t, "wanted")
			runs := rapid.Int64Range(0, wanted).Draw(t, "run")
			complete = complete && runs == wanted
			all = append(all, deployment(wanted, "", b))
			for name, amount := range b {
				held[name], whole[name] = held[name]+amount.Times(runs), whole[name]+amount.Times(wanted)
			}
		}
		before := held.Clone()
		missing := upgrade.Missing(upgrade.Needs(all), held)
		if diff := cmp.Diff(before, held); diff != "" {
			t.Fatalf("it changes what is held:\n%s", diff)
		}
		if complete && len(missing) > 0 {
			t.Fatalf("%s is missing although all replicas run", text(missing))
		}
		if len(missing) == 0 && !held.Fits(whole) {
			t.Fatalf("nothing is missing although %v of %v is held", held, whole)
		}
		slices.Reverse(all)
		if again := upgrade.Missing(upgrade.Needs(all), held); text(again) != text(missing) {
			t.Fatalf("in another order %s is missing, not %s", text(again), text(missing))
		}
	})
}

// TestReplicasWithANodeOfTheirOwnAreHeldToo has max_replicas_per_node, for which Serve requests an implicit resource.
func TestReplicasWithANodeOfTheirOwnAreHeldToo(t *testing.T) {
	needs := upgrade.Needs([]raydemand.Deployment{deployment(3, "", of("CPU", 1, raydemand.ImplicitPrefix+"a:d", 1))})
	if got := upgrade.Missing(needs, of("CPU", 2)); len(got) != 1 || got[0].Count != 1 {
		t.Errorf("%s, want one", text(got))
	}
}

func TestHeldIsWhatIsUsedAndWhatWaits(t *testing.T) {
	state := raydemand.State{Nodes: []raydemand.Node{
		{Head: true, Status: raydemand.Running, Total: of("CPU", 4), Available: of("CPU", 3)},
		{Status: raydemand.Running, Total: of("CPU", 8, "GPU", 2), Available: of("CPU", 8)},
		{Status: raydemand.Idle, Total: of("CPU", 8), Available: of("CPU", 9)}, // a report that cannot be
		{Status: raydemand.Dead, Total: of("CPU", 100)},
	}}
	state.Demand.Requests = []raydemand.Request{{Bundle: of("GPU", 1), Count: 3}}
	state.Demand.Gangs = []raydemand.Gang{{Bundles: []raydemand.Bundle{of("CPU", 2), of("CPU", 3)}}}
	if got, want := upgrade.Held(&state), of("CPU", 6, "GPU", 5); !got.Equal(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

var (
	now  = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	from = nodepool.ClusterKey{Namespace: "ml", Name: "llm-a"}
)

// newer is the newer RayCluster of an upgrade.
func newer() *nodepool.Cluster {
	key := from
	return &nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: "llm-b"}, CreatedAt: now, UpgradeFrom: &key,
		Owner:  nodepool.Owner{Kind: "RayService", Name: "llm"},
		Policy: &capacity.Written{Source: "annotation", Policy: capacity.Policy{OnUpgrade: capacity.UpgradeMatch}}}
}

// TestAnIncrementalUpgradeKeepsRoomForAll has targets of the older RayCluster that go down step by step.
func TestAnIncrementalUpgradeKeepsRoomForAll(t *testing.T) {
	var tracker upgrade.Tracker
	cluster := newer()
	tracker.Observe(now, cluster, true, &raydemand.State{})
	for i, step := range []struct{ older, newer int }{{10, 0}, {8, 2}, {5, 5}, {0, 9}} {
		at := now.Add(time.Duration(i) * time.Minute)
		tracker.Read(at, from, []raydemand.Deployment{deployment(int64(step.older), "", of("GPU", 1))}, nil)
		state := raydemand.State{Nodes: []raydemand.Node{{Total: of("GPU", step.newer)}}}
		tracker.Observe(at, cluster, true, &state)
		entries := tracker.Entries(at)
		if len(entries) != 1 || entries[0].Count != int64(10-step.newer) || entries[0].Upgrade == "" {
			t.Errorf("with %d replicas of 10: %+v", step.newer, entries)
		}
	}
}

func TestAnotherUpgradeBeginsAnew(t *testing.T) {
	var tracker upgrade.Tracker
	cluster := newer()
	tracker.Observe(now, cluster, false, nil)
	tracker.Asked(now)
	cluster.UpgradeFrom = &nodepool.ClusterKey{Namespace: "ml", Name: "llm-c"}
	tracker.Observe(now, cluster, false, nil)
	tracker.Read(now, from, []raydemand.Deployment{deployment(1, "", of("GPU", 1))}, nil) // the reading had begun before
	tracker.Observe(now, cluster, false, nil)
	if due := tracker.Due(now); len(tracker.Entries(now)) != 0 || due == nil || due.Name != "llm-c" {
		t.Errorf("%+v, due %v", tracker.Entries(now), due)
	}
	cluster.UpgradeFrom = nil
	if tracker.Observe(now, cluster, false, nil); tracker.Active(now) || tracker.Due(now) != nil {
		t.Error("an upgrade goes on although the older RayCluster is gone")
	}
}

// TestWhatIsKnownSurvivesAMomentWithoutThePolicy: a complete upgrade does not begin again.
func TestWhatIsKnownSurvivesAMomentWithoutThePolicy(t *testing.T) {
	var tracker upgrade.Tracker
	cluster := newer()
	tracker.Observe(now, cluster, true, &raydemand.State{})
	tracker.Read(now, from, []raydemand.Deployment{deployment(2, "", of("GPU", 1))}, nil)
	full := raydemand.State{Nodes: []raydemand.Node{{Total: of("GPU", 2)}}}
	for i := range 3 {
		tracker.Observe(now.Add(time.Duration(i)*time.Minute), cluster, true, &full)
	}
	policy := cluster.Policy
	cluster.Policy = nil
	tracker.Observe(now.Add(4*time.Minute), cluster, true, &full)
	cluster.Policy = policy
	at := now.Add(5 * time.Minute)
	tracker.Observe(at, cluster, true, &raydemand.State{})
	if tracker.Active(at) || len(tracker.Entries(at)) != 0 {
		t.Errorf("%+v: the upgrade begins again", tracker.Entries(at))
	}
}

// TestADeploymentCountsOnceWhateverItsReplicasRequest has placement groups that are known at the second reading.
func TestADeploymentCountsOnceWhateverItsReplicasRequest(t *testing.T) {
	var tracker upgrade.Tracker
	cluster := newer()
	for _, bundle := range []raydemand.Bundle{of("CPU", 1), of("GPU", 1), of("GPU", 2)} {
		tracker.Observe(now, cluster, true, &raydemand.State{})
		tracker.Read(now, from, []raydemand.Deployment{deployment(4, "", bundle)}, nil)
	}
	tracker.Observe(now, cluster, true, &raydemand.State{})
	if got := tracker.Entries(now); len(got) != 1 || got[0].Count != 4 || !got[0].Resources.Equal(of("GPU", 2)) {
		t.Errorf("%+v, want 4 × {GPU 2}", got)
	}
}

func TestRoomIsBounded(t *testing.T) {
	var tracker upgrade.Tracker
	cluster := newer()
	tracker.Observe(now, cluster, false, nil)
	all := []raydemand.Deployment{deployment(100_000, "", of("GPU", 8))}
	for i := range 40 {
		d := deployment(1, "", of("CPU", i+1))
		d.Name = fmt.Sprint(i)
		all = append(all, d)
	}
	tracker.Read(now, from, all, nil)
	tracker.Observe(now, cluster, false, nil)
	entries := tracker.Entries(now)
	if len(entries) != 16 || entries[0].Count != capacity.MaxCount {
		t.Errorf("%d entries, the first wants %d", len(entries), entries[0].Count)
	}
	found := tracker.Findings(now, cluster)
	if len(found) != 1 || found[0].Code != upgrade.Warming || !strings.Contains(found[0].Seen, "and 25 other bundles") {
		t.Errorf("%+v", found)
	}
	tracker.Read(now, from, nil, errors.New("timeout"))
	if found = tracker.Findings(now, cluster); len(found) != 2 || found[0].Code != upgrade.Unread || !strings.Contains(found[0].Why, "timeout; what was read before counts") {
		t.Errorf("%+v", found)
	}
	over := now.Add(upgrade.Longest)
	if found = tracker.Findings(over, cluster); len(tracker.Entries(over)) != 0 || len(found) != 1 || found[0].Code != upgrade.Overdue {
		t.Errorf("%+v", found)
	}
}
