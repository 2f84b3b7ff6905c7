package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// newIdleWorld has a RayCluster that is suspended after two hours without work.
func newIdleWorld(t *testing.T) *world {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
	w.kube.cluster.ResourceVersion = "7"
	w.policy(`{"idle": {"suspendAfter": "2h"}}`)
	return w
}

// rest lets time pass, with a cycle each minute.
func (w *world) rest(d time.Duration) *addon.Decision {
	w.t.Helper()
	var last *addon.Decision
	for ; d > 0; d -= time.Minute {
		last = w.after(min(d, time.Minute))
	}
	return last
}

// has reports whether an Event with a reason was recorded.
func (w *world) has(reason string) bool {
	return slices.ContainsFunc(w.kube.events, func(e string) bool { return strings.Contains(e, reason) })
}

func TestARayClusterWithoutWorkIsAnnouncedAndSuspended(t *testing.T) {
	w := newIdleWorld(t)
	begin := w.now
	d := w.rest(104 * time.Minute)
	if len(w.kube.ended) > 0 || w.has(addon.ReasonIdleAnnounced) || w.ray.looks > 0 {
		t.Fatalf("ended %+v, events %v, %d looks long before the time", w.kube.ended, w.kube.events, w.ray.looks)
	}
	if !strings.Contains(d.Idle, "suspended after 2h without work; without work for 10") {
		t.Errorf("shown: %q", d.Idle)
	}
	d = w.rest(2 * time.Minute)
	if !w.has(addon.ReasonIdleAnnounced) || len(w.kube.ended) > 0 || !strings.Contains(d.Idle, "suspended at 2026-11-20 14:") {
		t.Fatalf("ended %+v, events %v, shown %q", w.kube.ended, w.kube.events, d.Idle)
	}
	looks := w.ray.looks
	if w.rest(12 * time.Minute); w.ray.looks > looks {
		t.Errorf("%d looks between the announcement and the end", w.ray.looks-looks)
	}
	w.rest(5 * time.Minute)
	if len(w.kube.ended) != 1 || w.kube.ended[0].Resume || !w.has(addon.ReasonIdleSuspended) {
		t.Fatalf("ended %+v, events %v", w.kube.ended, w.kube.events)
	}
	if took := w.now.Sub(begin); took < 2*time.Hour || took > 2*time.Hour+10*time.Minute {
		t.Errorf("suspended after %s", took)
	}
	if c := w.kube.ended[0]; c.UID != "uid-1" || c.ResourceVersion != "7" || c.Generation == 0 || c.Since.Before(begin.Add(-time.Minute)) {
		t.Errorf("change %+v", c)
	}
}

func TestWhatPreventsTheSuspension(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world)
		want   string
	}{
		"a connected driver": {func(w *world) { w.ray.occupants.Drivers.Add("python train.py") }, "drivers were connected (python train.py)"},
		"warm capacity": {func(w *world) {
			w.policy(`{"keepWarm": [{"group": "gpu", "count": 1}], "idle": {"suspendAfter": "2h"}}`)
		}, "its capacity policy keeps capacity warm now"},
		"shadow mode":                 {func(w *world) { w.kube.cluster.Mode = nodepool.Shadow }, "shadow"},
		"a freeze":                    {func(w *world) { w.kube.cluster.Freeze = true }, "frozen"},
		"a head that does not answer": {func(w *world) { w.ray.stateErr = errors.New("timeout") }, "Ray's state cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newIdleWorld(t)
			w.rest(10 * time.Minute)
			c.change(w)
			w.rest(3 * time.Hour)
			d := w.after(time.Second)
			if len(w.kube.ended) > 0 || w.kube.cluster.Suspended {
				t.Fatalf("it is suspended: %+v", w.kube.ended)
			}
			if !strings.Contains(d.Idle, c.want) {
				t.Errorf("shown %q, want in it %q", d.Idle, c.want)
			}
		})
	}
}

func ownedBy(owner string) nodepool.OwnedRequest {
	r := nodepool.OwnedRequest{}
	r.ID, r.Owner = "r", owner
	r.Requests = []raydemand.Request{{Bundle: gpu(1), Count: 1}}
	return r
}

func TestWhatTheFreshReadShowsPreventsTheSuspension(t *testing.T) {
	for name, test := range map[string]struct {
		change func(c *nodepool.Cluster)
		want   string
	}{
		"another version": {func(c *nodepool.Cluster) { c.ResourceVersion = "8" }, "the RayCluster has changed"},
		"another object":  {func(c *nodepool.Cluster) { c.UID = "uid-2" }, "the RayCluster has changed"},
		"a freeze":        {func(c *nodepool.Cluster) { c.Freeze = true }, "frozen"},
		"a request": {func(c *nodepool.Cluster) {
			c.RequestResources = []raydemand.Request{{Bundle: gpu(1), Count: 1}}
		}, "a request over REST holds capacity: "},
		"a request that does not count": {func(c *nodepool.Cluster) {
			of := ownedBy("ann")
			of.ClusterUID = "uid-0"
			c.Owned = []nodepool.OwnedRequest{of}
		}, "request r of ann holds capacity: "},
		"an owner": {func(c *nodepool.Cluster) { c.Owner = nodepool.Owner{Kind: "RayService", Name: "s"} }, "RayService s owns it"},
	} {
		w := newIdleWorld(t)
		w.rest(110 * time.Minute)
		fresh := clone(w.kube.cluster)
		test.change(&fresh)
		w.kube.fresh = &fresh
		d := w.rest(20 * time.Minute)
		if len(w.kube.ended) > 0 || !strings.HasPrefix(d.Idle, "not suspended at ") ||
			!strings.Contains(d.Idle, test.want) {
			t.Errorf("%s: ended %+v, shown %q, want in it %q", name, w.kube.ended, d.Idle, test.want)
		}
	}
	w := newIdleWorld(t)
	w.rest(110 * time.Minute)
	w.kube.onFresh = func() { w.want(1, raydemand.Bundle{"TPU": raydemand.One}) }
	if w.rest(20 * time.Minute); len(w.kube.ended) > 0 {
		t.Errorf("work that came during the last read: ended %+v", w.kube.ended)
	}
	w = newIdleWorld(t)
	w.rest(110 * time.Minute)
	w.kube.onFresh = func() { w.ray.occupants.Drivers = raydemand.Living{Count: 1, Names: []string{"notebook"}} }
	if w.rest(20 * time.Minute); len(w.kube.ended) > 0 {
		t.Errorf("a driver that connected during the last read: ended %+v", w.kube.ended)
	}
}

func TestASuspendedRayClusterIsResumedByARequest(t *testing.T) {
	w := newIdleWorld(t)
	w.rest(130 * time.Minute)
	if !w.kube.cluster.Suspended {
		t.Fatal("not suspended")
	}
	w.kube.cluster.Head.IP = ""
	w.kube.cluster.RequestResources = []raydemand.Request{{Bundle: gpu(1), Count: 1}}
	w.after(time.Second)
	if last := w.kube.ended[len(w.kube.ended)-1]; !last.Resume || w.kube.cluster.Suspended || !w.has(addon.ReasonIdleResumed) {
		t.Fatalf("ended %+v, events %v", w.kube.ended, w.kube.events)
	}
}

func TestWhatAUserSuspendedIsLeftAlone(t *testing.T) {
	w := newIdleWorld(t)
	w.kube.cluster.Suspended = true
	w.kube.cluster.RequestResources = []raydemand.Request{{Bundle: gpu(1), Count: 1}}
	if w.rest(30 * time.Hour); len(w.kube.ended) > 0 {
		t.Errorf("ended %+v", w.kube.ended)
	}
}

func TestTheSidecarEndsNoRayCluster(t *testing.T) {
	w := newIdleWorld(t)
	w.restart(Config{Form: Sidecar})
	if d := w.rest(3 * time.Hour); len(w.kube.ended) > 0 || !strings.Contains(d.Idle, "sidecar") {
		t.Errorf("ended %+v, shown %q", w.kube.ended, d.Idle)
	}
}

func TestAnEndThatCannotBeWrittenIsTriedAgainAndShown(t *testing.T) {
	w := newIdleWorld(t)
	w.kube.idleErr = errors.New("forbidden")
	if d := w.rest(125 * time.Minute); !strings.Contains(d.Idle, ": forbidden") {
		t.Errorf("shown %q", d.Idle)
	}
	w.kube.idleErr = nil
	if d := w.after(time.Millisecond); len(w.kube.ended) > 0 || !strings.Contains(d.Idle, ": forbidden") {
		t.Errorf("in the pause after it: ended %+v, shown %q", w.kube.ended, d.Idle)
	}
	if w.rest(10 * time.Minute); len(w.kube.ended) != 1 {
		t.Errorf("ended %+v", w.kube.ended)
	}
}

func TestAConflictIsNotTriedAgainInEachCycle(t *testing.T) {
	for _, err := range []error{nodepool.ErrConflict, nodepool.ErrReadOnly} {
		w := newIdleWorld(t)
		w.rest(119 * time.Minute)
		w.kube.idleErr = fmt.Errorf("suspend: %w", err)
		w.rest(3 * time.Minute)
		before := w.kube.freshReads
		if w.seconds(600); w.kube.freshReads-before > 30 {
			t.Errorf("%v: %d fresh readings in 10 minutes", err, w.kube.freshReads-before)
		}
	}
}
