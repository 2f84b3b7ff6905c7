package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// fakeOwned writes what is reported into the fake cluster, as the API server would.
type fakeOwned struct {
	w       *world
	updates []nodepool.OwnedUpdate
	lost    bool // no update is written
}

func (f *fakeOwned) Report(updates []nodepool.OwnedUpdate) {
	f.updates = append(f.updates, updates...)
	if f.lost {
		return
	}
	for _, u := range updates {
		owned := slices.Clone(f.w.kube.cluster.Owned)
		i := slices.IndexFunc(owned, func(r nodepool.OwnedRequest) bool { return r.UID == u.UID })
		switch {
		case u.Delete:
			owned = slices.Delete(owned, i, i+1)
		default:
			if u.Adopt != nil {
				owned[i].ClusterUID = u.Adopt.UID
			}
			if u.Status != nil {
				owned[i].Status = *u.Status
			}
		}
		f.w.kube.cluster.Owned = owned
	}
}

// newOwnedWorld has a group of GPUs and no workers.
func newOwnedWorld(t *testing.T, workers int) (*world, *fakeOwned) {
	owned := &fakeOwned{}
	w := newWorld(t, Config{Owned: owned}, gpuGroup("gpu", workers, 0, 4))
	owned.w = w
	return w, owned
}

func (w *world) ask(id string, gpus int64, lease time.Duration) *nodepool.OwnedRequest {
	w.kube.cluster.Owned = append(slices.Clone(w.kube.cluster.Owned), nodepool.OwnedRequest{
		Owned:   raydemand.Owned{ID: id, Owner: "owner of " + id, Since: w.now, Requests: []raydemand.Request{{Bundle: gpu(1), Count: gpus}}},
		Cluster: key, UID: "uid of " + id, ResourceVersion: "1", Generation: 1, LeaseSeconds: int32(lease.Seconds()), RenewedAt: w.now,
	})
	return w.request(id)
}

func (w *world) request(id string) *nodepool.OwnedRequest {
	i := slices.IndexFunc(w.kube.cluster.Owned, func(r nodepool.OwnedRequest) bool { return r.ID == id })
	if i < 0 {
		return nil
	}
	return &w.kube.cluster.Owned[i]
}

// states are the states by id, of those that are there.
func (w *world) states() map[string]raydemand.RequestState {
	states := map[string]raydemand.RequestState{}
	for _, r := range w.kube.cluster.Owned {
		states[r.ID] = r.Status.State
	}
	return states
}

func (w *world) wantStates(want map[string]raydemand.RequestState) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.states()); diff != "" {
		w.t.Errorf("states of requests (-want +got): %s", diff)
	}
}

func TestALeaseThatIsOverReleasesItsWorkersAndNobodyElses(t *testing.T) {
	w, owned := newOwnedWorld(t, 0)
	w.ask("short", 2, 10*time.Minute)
	w.ask("long", 1, 0)
	w.cycle()
	w.wantStates(map[string]raydemand.RequestState{"short": raydemand.RequestWaiting, "long": raydemand.RequestWaiting})
	if w.group("gpu").Replicas != 3 || w.request("short").ClusterUID != "uid-1" {
		t.Fatalf("replicas %d for two owners, adopted by %q", w.group("gpu").Replicas, w.request("short").ClusterUID)
	}
	w.operate()
	w.joinAll()
	w.after(time.Second)
	w.wantStates(map[string]raydemand.RequestState{"short": raydemand.RequestSatisfied, "long": raydemand.RequestSatisfied})
	if pods := w.request("short").Status.Pods; len(pods) != 2 {
		t.Errorf("served by %v", pods)
	}

	before := len(owned.updates)
	w.cycles(20, 10*time.Second)
	if len(owned.updates) != before {
		t.Errorf("%d writes while nothing changes: %+v", len(owned.updates)-before, owned.updates[before:])
	}
	if got := w.group("gpu").Replicas; got != 3 {
		t.Errorf("replicas %d while both requests hold idle workers", got)
	}

	w.after(7 * time.Minute)
	w.wantStates(map[string]raydemand.RequestState{"short": raydemand.RequestExpired, "long": raydemand.RequestSatisfied})
	for range 10 {
		w.after(10 * time.Second)
		w.operate()
	}
	if got := w.group("gpu").Replicas; got != 1 {
		t.Errorf("replicas %d after one of two requests has expired, want 1", got)
	}
	if n := w.kube.emitted(addon.ReasonRequestExpired); n != 1 {
		t.Errorf("%d Events of the one expiry", n)
	}

	w.pass(time.Hour)
	w.cycle()
	w.wantStates(map[string]raydemand.RequestState{"long": raydemand.RequestSatisfied})
}

func TestWhileRayDoesNotAnswerLeasesRunOnAndNothingElseIsReported(t *testing.T) {
	w, _ := newOwnedWorld(t, 2)
	w.ask("held", 2, 0)
	w.ask("leased", 1, 5*time.Minute)
	w.after(time.Minute)
	satisfied := map[string]raydemand.RequestState{"held": raydemand.RequestSatisfied, "leased": raydemand.RequestWaiting}
	w.wantStates(satisfied)
	w.kube.cluster.Head.Ready, w.kube.cluster.Head.IP = false, ""
	replicas := w.group("gpu").Replicas
	w.after(2 * time.Minute)
	w.wantStates(satisfied)
	w.after(3 * time.Minute)
	w.wantStates(map[string]raydemand.RequestState{"held": raydemand.RequestSatisfied, "leased": raydemand.RequestExpired})
	if w.group("gpu").Replicas != replicas {
		t.Errorf("replicas %d → %d without a word of Ray", replicas, w.group("gpu").Replicas)
	}
}

func TestARequestThatDoesNotCountLaunchesNothingAndSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		change      func(*nodepool.OwnedRequest)
		state       raydemand.RequestState
		code, says  string
		notReported bool
	}{
		"for a RayCluster of that name that is gone": {change: func(r *nodepool.OwnedRequest) { r.ClusterUID = "uid-0" }, notReported: true},
		"unreadable": {change: func(r *nodepool.OwnedRequest) { r.Unreadable = "spec.bundles[0]: resources ask for nothing" },
			state: raydemand.RequestImpossible, code: raydemand.CodeUnreadable, says: "spec.bundles[0]"},
	} {
		w, owned := newOwnedWorld(t, 0)
		c.change(w.ask("a", 2, 0))
		w.cycle()
		got := w.request("a").Status
		if got.State != c.state || got.Code != c.code || !strings.Contains(got.Message, c.says) || w.group("gpu").Replicas != 0 {
			t.Errorf("%s: status %+v, replicas %d", name, got, w.group("gpu").Replicas)
		}
		if c.notReported != (len(owned.updates) == 0) || !c.notReported && got.ObservedRequest != w.request("a").Fingerprint() {
			t.Errorf("%s: reported %+v", name, owned.updates)
		}
	}
}

func TestEveryModeReportsToOwnersAndOnlyAManagedClusterIsScaled(t *testing.T) {
	for name, change := range map[string]func(*nodepool.Cluster){
		"shadow": func(c *nodepool.Cluster) { c.Mode = nodepool.Shadow },
		"off":    func(c *nodepool.Cluster) { c.Mode = nodepool.Off },
		"frozen": func(c *nodepool.Cluster) { c.Freeze = true },
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := newOwnedWorld(t, 0)
			change(&w.kube.cluster)
			w.ask("a", 2, 10*time.Minute)
			w.cycle()
			if got := w.request("a"); got.Status.State != raydemand.RequestWaiting || got.Status.Code != raydemand.CodeNotScaled || got.ClusterUID != "uid-1" {
				t.Errorf("reported %+v, adopted by %q", got.Status, got.ClusterUID)
			}
			w.after(11 * time.Minute)
			w.wantStates(map[string]raydemand.RequestState{"a": raydemand.RequestExpired})
			w.after(nodepool.ExpiredKept)
			w.wantStates(map[string]raydemand.RequestState{})
			w.nothingWritten("the cluster is not managed")
		})
	}
}

// Two Heliostats may stand beside each other, one of which manages what says so and one the rest. What they know of a
// lease differs: by their clocks, and because only one of them may have seen it renewed.
func TestBesideAHeliostatThatManagesOneInShadowWritesNothingToRequests(t *testing.T) {
	w, owned := newOwnedWorld(t, 0)
	beside := func(mode nodepool.Mode) {
		t.Helper()
		manager, before := w.c, len(owned.updates)
		w.restart(Config{Owned: owned, DefaultMode: mode})
		w.after(10 * time.Minute)
		w.after(nodepool.ExpiredKept)
		if updates := owned.updates[before:]; len(updates) > 0 || w.kube.emitted(addon.ReasonRequestExpired) > 0 {
			t.Errorf("one whose clock is ahead and whose mode is %s reported %+v and %d Events", mode, updates, w.kube.emitted(addon.ReasonRequestExpired))
		}
		w.c = manager
		w.pass(-nodepool.ExpiredKept - 10*time.Minute)
	}
	w.ask("leased", 2, 5*time.Minute)
	w.ask("bad", 2, 0).Unreadable = "spec.bundles[0]: resources ask for nothing"
	beside(nodepool.Shadow) // nobody has adopted them yet
	beside(nodepool.Off)
	w.cycle()
	waiting := map[string]raydemand.RequestState{"leased": raydemand.RequestWaiting, "bad": raydemand.RequestImpossible}
	w.wantStates(waiting)
	beside(nodepool.Shadow)
	w.wantStates(waiting)
	w.after(5 * time.Minute)
	w.wantStates(map[string]raydemand.RequestState{"leased": raydemand.RequestExpired, "bad": raydemand.RequestImpossible})
	w.kube.events = nil
	beside(nodepool.Shadow) // it would let the expired one go
}

func TestAReadOnlyProcessReportsNothingToOwners(t *testing.T) {
	w, owned := newOwnedWorld(t, 0)
	w.restart(Config{Owned: owned, ReadOnly: true})
	w.kube.cluster.Mode = nodepool.Managed
	w.ask("leased", 2, 5*time.Minute)
	w.cycle()
	w.after(10 * time.Minute)
	w.after(nodepool.ExpiredKept)
	if len(owned.updates)+len(w.kube.events) > 0 {
		t.Errorf("reported %+v, and Events %v", owned.updates, w.kube.events)
	}
	w.nothingWritten("whatever the annotation says")
}

func TestARequestStaysSatisfiedSinceThenThoughItsStatusIsNotWritten(t *testing.T) {
	w, owned := newOwnedWorld(t, 2)
	owned.lost = true
	since, id := w.now, w.ask("a", 2, 0).UID
	w.cycle()
	for range 3 {
		d := w.after(time.Minute)
		if got := d.Snapshot.OwnedRequests[0].SatisfiedSince; !got.Equal(since) {
			t.Errorf("it is planned as satisfied since %v, want %v", got, since)
		}
		if last := owned.updates[len(owned.updates)-1]; last.UID != id || !last.Status.Since.Equal(since) || !last.Status.SatisfiedSince.Equal(since) {
			t.Errorf("its owner sees %+v, want that it is satisfied since %v", last.Status, since)
		}
	}
	w.request("a").Requests = []raydemand.Request{{Bundle: gpu(1), Count: 1}}
	if d := w.after(time.Minute); !d.Snapshot.OwnedRequests[0].SatisfiedSince.IsZero() {
		t.Error("what it asks for now was never satisfied")
	}
}

func TestARequestStaysExpiredSinceThenThoughItsStatusIsNotWritten(t *testing.T) {
	w, owned := newOwnedWorld(t, 0)
	w.ask("a", 1, 30*time.Second)
	w.cycle()
	owned.lost = true
	last := func() nodepool.OwnedStatus { return *owned.updates[len(owned.updates)-1].Status }
	w.after(time.Minute)
	since := w.now
	for range 3 {
		if got := last(); got.State != raydemand.RequestExpired || !got.Since.Equal(since) || !got.ExpiredSince.Equal(since) {
			t.Errorf("its owner sees %+v, want that it is expired since %v", got, since)
		}
		w.after(time.Minute)
	}
	w.request("a").RenewedAt = w.now
	w.after(time.Minute)
	if got := last(); got.State != raydemand.RequestExpired || !got.Since.Equal(w.now) {
		t.Errorf("its owner sees %+v of a lease that was renewed and is over again, want since %v", got, w.now)
	}
	w.request("a").RenewedAt = w.now
	w.after(time.Second)
	w.after(time.Minute)
	if n := w.kube.emitted(addon.ReasonRequestExpired); n != 2 {
		t.Errorf("%d Events, want one more of an expiry after it was seen to count again", n)
	}
}

func TestTheHourOfAnExpiredRequestBeginsWithItsExpiredStatus(t *testing.T) {
	w, owned := newOwnedWorld(t, 0)
	r := w.ask("late", 1, 10*time.Minute)
	// a clock that is far behind, or nobody who looked
	r.Since, r.RenewedAt = w.now.Add(-3*time.Hour), w.now.Add(-3*time.Hour)
	w.cycle()
	w.wantStates(map[string]raydemand.RequestState{"late": raydemand.RequestExpired})
	w.after(nodepool.ExpiredKept - time.Minute)
	w.wantStates(map[string]raydemand.RequestState{"late": raydemand.RequestExpired})
	// It is renewed, and over again, between two looks.
	w.request("late").RenewedAt = w.now
	w.after(30 * time.Minute)
	w.after(30 * time.Minute)
	w.wantStates(map[string]raydemand.RequestState{"late": raydemand.RequestExpired})
	w.after(nodepool.ExpiredKept)
	w.wantStates(map[string]raydemand.RequestState{})
	if last := owned.updates[len(owned.updates)-1]; !last.Delete || last.ResourceVersion != "1" {
		t.Errorf("deleted by %+v, want the version that was looked at", last)
	}
}
