package controller

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// newStrandedWorld has a RayCluster that is gone, and what is asked for it.
func newStrandedWorld(t *testing.T, config Config) (*world, *fakeOwned) {
	owned := &fakeOwned{}
	config.Owned = owned
	w := newWorld(t, config, gpuGroup("gpu", 0, 0, 4))
	owned.w = w
	w.kube.clusterErr = nodepool.ErrGone
	return w, owned
}

// look runs a cycle and returns when the next is due.
func (w *world) look() time.Duration { return w.c.Cycle(w.t.Context(), key) }

func TestARequestForAClusterThatIsNotThereIsReported(t *testing.T) {
	w, owned := newStrandedWorld(t, Config{})
	w.ask("held", 1, 0)
	w.look()
	got := w.request("held").Status
	want := nodepool.OwnedStatus{State: raydemand.RequestWaiting, Code: raydemand.CodeUnknownCluster,
		Message: "Heliostat does not watch a RayCluster ml/llm, or it does not exist", ObservedGeneration: 1, ObservedRequest: w.request("held").Fingerprint(),
		Since: w.now, SatisfiedSince: w.now, ExpiredSince: w.now}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got): %s", diff)
	}
	if next := w.look(); next != 0 || len(owned.updates) != 1 || w.request("held").ClusterUID != "" {
		t.Errorf("a status that is already reported: looked at again in %v, %d writes, adopted by %q", next, len(owned.updates), w.request("held").ClusterUID)
	}

	w.kube.clusterErr = nil
	w.cycle()
	if got := w.request("held"); got.Status.Code != planner.CodeLaunch || got.ClusterUID != "uid-1" || w.group("gpu").Replicas != 1 {
		t.Errorf("once the RayCluster is there: %+v, replicas %d", got.Status, w.group("gpu").Replicas)
	}
}

func TestALeaseForAClusterThatIsNotThereRunsOnAndItsRequestGoes(t *testing.T) {
	w, _ := newStrandedWorld(t, Config{})
	w.ask("leased", 1, 10*time.Minute)
	if next := w.look(); next != recheckPause {
		t.Errorf("a status that was just reported is looked at again in %v", next)
	}
	if next := w.look(); next != 10*time.Minute {
		t.Errorf("looked at again in %v, want when the lease is over", next)
	}
	w.pass(10 * time.Minute)
	w.look()
	w.wantStates(map[string]raydemand.RequestState{"leased": raydemand.RequestExpired})
	if next := w.look(); next != nodepool.ExpiredKept {
		t.Errorf("looked at again in %v, want when it goes", next)
	}
	w.pass(nodepool.ExpiredKept)
	w.look()
	w.wantStates(map[string]raydemand.RequestState{})
	if next := w.look(); next != 0 {
		t.Errorf("with nothing left looked at again in %v", next)
	}
}

func TestRequestsThatGoWithTheirClusterOrMayBeAnothersGetNoStatus(t *testing.T) {
	w, owned := newStrandedWorld(t, Config{})
	w.ask("owned", 1, 0).ClusterUID = "uid-0"
	w.ask("going", 1, 0).Deleting = true
	w.look()
	shadow, ownedInShadow := newStrandedWorld(t, Config{DefaultMode: nodepool.Shadow})
	shadow.ask("held", 1, 0)
	shadow.look()
	if all := slices.Concat(owned.updates, ownedInShadow.updates); len(all) > 0 {
		t.Errorf("reported %+v", all)
	}
}

func TestARayClusterThatAnotherProcessDecidesAboutIsReleasedButNotGone(t *testing.T) {
	var gone, released int
	w := newWorld(t, Config{
		Forgotten: func(nodepool.ClusterKey) { gone++ }, Released: func(nodepool.ClusterKey) { released++ },
	}, gpuGroup("gpu", 2, 0, 9))
	w.cycle()
	w.kube.cluster.Groups[0].Replicas = 4
	for range 2 {
		w.c.Watch(context.Background(), key)
	}
	if _, known := w.c.Decision(key); known || w.ray.closed != 1 || released != 1 || gone != 0 {
		t.Errorf("known %v, %d lines closed, released %d times, gone %d times", known, w.ray.closed, released, gone)
	}
	other := nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: "own"}}
	if before := w.c.promises.Before(&other, w.c.config.Now()); len(before) != 1 || before[0].RayCluster != key {
		t.Errorf("promised are %v, want the pods that it waits for", before)
	}
	w.cycle()
	w.kube.clusterErr = fmt.Errorf("getting: %w", nodepool.ErrGone)
	w.c.Watch(context.Background(), key)
	if gone != 1 {
		t.Errorf("gone %d times, want once", gone)
	}
}
