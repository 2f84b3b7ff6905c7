package controller

import (
	"errors"
	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/addon/nodeguard"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/raydemand"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// protected has two workers, of which the first is busy, and no guards yet.
func protected(t *testing.T, config Config) *world {
	w := newWorld(t, config, gpuGroup("gpu", 2, 0, 9)).with(features{protectBusy: true}, config)
	w.unguard()
	w.busy(w.pod(0))
	return w
}

// unguard forgets what was written while the world was made.
func (w *world) unguard() {
	w.kube.cluster.Head.Guard = nodepool.Guard{}
	for i := range w.kube.cluster.Workers {
		w.kube.cluster.Workers[i].Guard = nodepool.Guard{}
	}
	w.kube.guarded = nil
	r := w.c.record(key)
	r.features[0] = w.c.config.Addons[0].New(loop{w.c, r})
}

// guards returns the pods that have a guard of Heliostat, without the prefix of their names.
func (w *world) guards() string {
	var pods []string
	if w.kube.cluster.Head.Guard.By() != "" {
		pods = append(pods, "head")
	}
	for _, p := range w.kube.cluster.Workers {
		if p.Guard.By() != "" {
			pods = append(pods, strings.TrimPrefix(p.Pod, "llm-"))
		}
	}
	return strings.Join(pods, " ")
}

func (w *world) guarded(want, when string) {
	w.t.Helper()
	if got := w.guards(); got != want {
		w.t.Errorf("%s: guarded are %q, want %q", when, got, want)
	}
}

func TestAGuardComesWithWorkAndGoesWhenItHasEnded(t *testing.T) {
	w := protected(t, Config{})
	w.cycle()
	w.guarded("head gpu-1", "one worker is busy")
	w.busy(w.pod(1))
	w.after(100 * time.Millisecond)
	w.guarded("head gpu-1 gpu-2", "the cycle after the other got work")
	w.idles(w.pod(0))
	w.after(time.Second)
	w.guarded("head gpu-1 gpu-2", "idle for a second")
	w.after(2 * time.Second)
	w.guarded("head gpu-2", "idle for three seconds")
	writes := len(w.kube.guarded)
	w.cycles(20, 200*time.Millisecond)
	if len(w.kube.guarded) != writes {
		t.Errorf("at rest %d guards were written", len(w.kube.guarded)-writes)
	}
}

func TestAPodThatRefusesItsGuardKeepsNoOtherFromIts(t *testing.T) {
	w := protected(t, Config{})
	w.kube.unguardable = "llm-head"
	tried := 0
	for range 20 {
		tried += len(w.after(100 * time.Millisecond).Actions)
	}
	if tried > 8 {
		t.Errorf("%d writes in two seconds, want a pause that grows", tried)
	}
	w.guarded("gpu-1", "two seconds after an admission policy refused the head's")
	w.seconds(320)
	w.busy(w.pod(1))
	w.seconds(4)
	w.guarded("gpu-1 gpu-2", "four seconds after the other got work")
	w.kube.unguardable = ""
	if d := w.cycle(); !hasFinding(d, nodeguard.GuardUnwritten) {
		t.Errorf("findings %v, want that the head has no guard", d.Findings)
	}
	w.emitted(addon.ReasonGuardFailed, 1, "it is reported once")
	if d := w.seconds(35); hasFinding(d, nodeguard.GuardUnwritten) {
		t.Error("the finding stays after a write succeeded")
	}
	w.guarded("head gpu-1 gpu-2", "the policy is gone")
}

// TestADrainTakesTheGuardOfAnIdleWorkerOnly has both workers leave, because the maximum is lowered.
func TestADrainTakesTheGuardOfAnIdleWorkerOnly(t *testing.T) {
	w := protected(t, Config{})
	w.ray.immortal = true
	w.want(1, raydemand.Bundle{"nothing": raydemand.One}) // no group serves it
	w.kube.cluster.Workers[1].Guard = nodepool.Guard{DoNotDisrupt: nodepool.MarkedByUs, Ours: true}
	w.works(w.pod(0))
	w.limit("gpu", 0)
	if got := w.ray.drained(); len(got) != 2 {
		t.Fatalf("drained %v, want both", got)
	}
	w.after(100 * time.Millisecond)
	w.guarded("head gpu-1", "100 ms after the drains")
	w.seconds(10)
	w.guarded("head gpu-1", "while the work of the first continues")
}

func TestNoGuardIsTakenAwayWhileRayIsUnknown(t *testing.T) {
	w := protected(t, Config{})
	w.cycle()
	w.idles(w.pod(0))
	w.ray.stateErr = errors.New("no answer")
	w.seconds(60)
	w.guarded("head gpu-1", "Ray has not answered for a minute")
	w.ray.stateErr = nil
	w.ray.session = "session-2"
	w.after(10 * time.Second)
	w.guarded("head gpu-1", "the first reading of a new session")
}

func TestNothingIsGuardedUnasked(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		change func(*world)
	}{
		"the flag is off":         {change: func(w *world) { w.with(features{}, Config{}) }},
		"shadow":                  {change: func(w *world) { w.kube.cluster.Mode = nodepool.Shadow }},
		"off":                     {change: func(w *world) { w.kube.cluster.Mode = nodepool.Off }},
		"frozen":                  {change: func(w *world) { w.kube.cluster.Freeze = true }},
		"suspended":               {change: func(w *world) { w.kube.cluster.Suspended = true }},
		"unreadable":              {change: func(w *world) { w.kube.cluster.Unreadable = true }},
		"managed elsewhere":       {change: func(w *world) { w.kube.cluster.ManagedElsewhere = true }},
		"being deleted":           {change: func(w *world) { w.kube.cluster.Deleting = true }},
		"read-only":               {change: func(w *world) { w.c.config.ReadOnly = true }},
		"another process leads":   {change: func(w *world) { w.kube.deposed = true }},
		"frozen before the write": {change: func(w *world) { w.kube.reading = secondRead(func() { w.kube.cluster.Freeze = true }) }},
		"made again before the write": {
			change: func(w *world) { w.kube.reading = secondRead(func() { w.kube.cluster.UID = "uid-2" }) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := protected(t, c.config)
			c.change(w)
			w.cycle()
			if len(w.kube.guarded) > 0 {
				t.Errorf("written: %+v", w.kube.guarded)
			}
		})
	}
}

// secondRead runs f at the second read of the caches in a cycle, which is the one right before a write.
func secondRead(f func()) func() {
	reads := 0
	return func() {
		if reads++; reads == 2 {
			f()
		}
	}
}

func TestGuardsAreWrittenAtABoundedRate(t *testing.T) {
	config := Config{GuardsPerSecond: 20}
	w := newWorld(t, config, gpuGroup("gpu", 100, 0, 100)).with(features{protectBusy: true}, config)
	w.now = w.now.Add(time.Minute)
	w.unguard()
	for i := range 100 {
		w.busy(w.pod(i))
	}
	for step, most := range []int{16, 20, 20, 20, 20, 20} {
		w.cycle()
		if got := len(w.kube.guarded); got > most {
			t.Errorf("cycle %d: %d guards written, want at most %d", step, got, most)
		}
	}
	w.cycles(45, 100*time.Millisecond)
	if got := len(w.kube.guarded); got != 101 {
		t.Errorf("%d guards written after 4.5 s, want all 101", got)
	}
}

// TestGuardsOfARayClusterThatIsNoLongerManaged has two workers with work, of which the second becomes idle.
func TestGuardsOfARayClusterThatIsNoLongerManaged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		want   string
		left   bool // a finding says that nobody removes them
	}{
		"handed back": {func(w *world) { w.kube.cluster.Mode = nodepool.Shadow }, "gpu-1", false},
		"another process only watches": {func(w *world) { w.restart(Config{DefaultMode: nodepool.Shadow}) },
			"head gpu-1 gpu-2", true},
		"the flag is off in another process": {func(w *world) {
			w.features.protectBusy = false
			w.restart(Config{})
		}, "head gpu-1 gpu-2", true},
		"the sidecar manages it, and removes them": {func(w *world) { w.kube.cluster.Head.Sidecar = nodepool.OurSidecar },
			"head gpu-1 gpu-2", false},
	} {
		w := protected(t, Config{})
		w.busy(w.pod(1))
		w.cycle()
		w.guarded("head gpu-1 gpu-2", "both workers are busy")
		c.change(w)
		w.idles(w.pod(1))
		d := w.seconds(10)
		w.guarded(c.want, name)
		if hasFinding(d, nodeguard.GuardLeft) != c.left {
			t.Errorf("%s: findings %v", name, d.Findings)
		}
	}
}

func TestNothingBesideAFrozenRayClusterIsWritten(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*nodepool.Cluster)
		may    bool
	}{
		"frozen":            {func(c *nodepool.Cluster) { c.Freeze = true }, false},
		"being deleted":     {func(c *nodepool.Cluster) { c.Deleting = true }, false},
		"suspended":         {func(c *nodepool.Cluster) { c.Suspended = true }, true},
		"frozen, suspended": {func(c *nodepool.Cluster) { c.Freeze, c.Suspended = true, true }, false},
	} {
		w := protected(t, Config{})
		c.change(&w.kube.cluster)
		now, before := w.kube.cluster, observe.View{Cluster: w.kube.cluster}
		before.Mode, _ = w.c.config.Effective(now)
		if may := w.c.mayGuardNow(before, now); may != c.may {
			t.Errorf("%s: what belongs to it may be written: %v", name, may)
		}
	}
}
