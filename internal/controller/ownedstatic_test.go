package controller

import (
	"errors"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestNothingIsTakenAwayWhileItIsNotKnownWhatOwnersAskFor(t *testing.T) {
	w, _ := newOwnedWorld(t, 3)
	w.cycle()
	w.kube.cluster.OwnedUnknown = "ResourceRequests have not been read yet"
	w.pass(2 * time.Minute)
	for range 10 {
		w.after(20 * time.Second)
	}
	w.nothingWritten("some worker may be held")
	if d, _ := w.c.Decision(key); d.Paused == "" {
		t.Error("the pause is not reported")
	}
	w.kube.cluster.OwnedUnknown = ""
	for range 10 {
		w.after(20 * time.Second)
	}
	if w.group("gpu").Replicas == 3 && len(w.ray.drains) == 0 {
		t.Error("what nobody asks for is kept")
	}
}

func TestWhatIsKnownOfOwnersIsServedWhileTheRestIsNot(t *testing.T) {
	w, _ := newOwnedWorld(t, 1)
	w.kube.cluster.OwnedUnknown = "connection refused"
	w.ask("more", 4, 0)
	w.cycle()
	if w.group("gpu").Replicas != 4 {
		t.Errorf("%d replicas, want 4", w.group("gpu").Replicas)
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

// What was acknowledged is in the API server alone: whoever leads next finds it there, whatever the one before had
// planned and not written.
func TestWhatALeaderAcknowledgedTheNextOnePlans(t *testing.T) {
	for name, before := range map[string]func(*world){
		"it never looked": func(*world) {},
		"its patch failed": func(w *world) {
			w.kube.applyErr = errors.New("connection refused")
			w.cycle()
			w.kube.applyErr = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, owned := newOwnedWorld(t, 0)
			w.ask("a", 3, 10*time.Minute)
			before(w)
			if w.group("gpu").Replicas != 0 {
				t.Fatal("it was planned and written before its leader was killed")
			}
			w.restart(Config{Owned: owned})
			w.after(time.Second)
			if got := w.group("gpu").Replicas; got != 3 {
				t.Errorf("%d replicas by the next leader, want 3", got)
			}
			w.wantStates(map[string]raydemand.RequestState{"a": raydemand.RequestWaiting})
		})
	}
}

// A leader whose clock is an hour ahead reports leases as expired. With the next leader, whose clock is right, they hold
// for what they have left.
func TestALeaseOutlivesALeaderWhoseClockIsAhead(t *testing.T) {
	w, owned := newOwnedWorld(t, 0)
	w.ask("a", 1, 10*time.Minute)
	w.cycle()
	w.after(time.Hour - time.Minute)
	w.wantStates(map[string]raydemand.RequestState{"a": raydemand.RequestExpired})
	w.now = w.now.Add(-time.Hour + time.Minute)
	w.restart(Config{Owned: owned})
	for range 3 {
		w.after(time.Minute)
	}
	w.wantStates(map[string]raydemand.RequestState{"a": raydemand.RequestWaiting})
	w.after(10 * time.Minute)
	w.wantStates(map[string]raydemand.RequestState{"a": raydemand.RequestExpired})
}
