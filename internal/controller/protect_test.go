package controller

import (
	"errors"
	"fmt"
	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/addon/nodeguard"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
	"heliostat.dev/heliostat/pkg/raydemand"
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

func (w *world) free(pod string) {
	n := w.node(pod)
	n.Status, n.Available = raydemand.Idle, n.Total.Clone()
}

func TestAGuardComesWithWorkAndGoesWhenItHasEnded(t *testing.T) {
	w := protected(t, Config{})
	w.cycle()
	w.guarded("head gpu-1", "one worker is busy")
	w.busy(w.pod(1))
	w.after(100 * time.Millisecond)
	w.guarded("head gpu-1 gpu-2", "the cycle after the other got work")
	w.free(w.pod(0))
	w.after(time.Second)
	w.guarded("head gpu-1 gpu-2", "idle for a second")
	w.after(2 * time.Second)
	w.guarded("head gpu-2", "idle for three seconds")
	writes := len(w.kube.guarded)
	for range 20 {
		w.after(200 * time.Millisecond)
	}
	if len(w.kube.guarded) != writes {
		t.Errorf("at rest %d guards were written", len(w.kube.guarded)-writes)
	}
}

func TestAPodThatRefusesItsGuardKeepsNoOtherFromIts(t *testing.T) {
	w := protected(t, Config{})
	w.kube.cluster.Head.Pod, w.kube.cluster.Head.PodUID = "llm-head", "head-uid"
	w.kube.unguardable = "llm-head"
	w.cycle()
	for range 20 {
		w.after(100 * time.Millisecond)
	}
	w.guarded("gpu-1", "two seconds after an admission policy refused the head's")
	for range 300 {
		w.after(time.Second)
	}
	w.busy(w.pod(1))
	for range 4 {
		w.after(time.Second)
	}
	w.guarded("gpu-1 gpu-2", "four seconds after the other got work")
	if d := w.cycle(); !hasFinding(d, nodeguard.GuardUnwritten) {
		t.Error("nothing reports that the head has no guard")
	}
	w.kube.unguardable = ""
	for range 5 {
		w.after(time.Second)
	}
	w.guarded("head gpu-1 gpu-2", "the policy is gone")
}

func TestAWorkerIsGuardedBeforeItJoinsAndWhileDemandWaits(t *testing.T) {
	w := protected(t, Config{})
	w.want(1, gpu(1))
	w.cycle()
	w.guarded("head gpu-1 gpu-2", "demand waits")
	w.want(0, nil)
	w.group("gpu").Replicas = 3
	w.operate()
	w.after(100 * time.Millisecond)
	w.guarded("head gpu-1 gpu-2", "a pod without a node appeared")
	w.kube.cluster.Workers[2].Node = "machine"
	w.after(100 * time.Millisecond)
	w.guarded("head gpu-1 gpu-2 gpu-3", "the pod got a node")
}

func TestAnIdleWorkerThatLeavesLosesItsGuardAtOnce(t *testing.T) {
	w := protected(t, Config{})
	w.ray.immortal = true
	w.group("gpu").Max, w.group("gpu").IdleTimeout = 9, new(time.Second)
	w.want(1, raydemand.Bundle{"nothing": raydemand.One}) // no group serves it
	w.kube.cluster.Workers[1].Guard = nodepool.Guard{DoNotDisrupt: nodepool.MarkedByUs, Ours: true}
	w.node(w.pod(1)).Idle = time.Hour
	w.cycle()
	if got := w.ray.drained(); len(got) != 1 {
		t.Fatalf("drained %v, want the idle worker", got)
	}
	w.after(100 * time.Millisecond)
	w.guarded("head gpu-1", "100 ms after the drain")
}

func TestADrainingWorkerKeepsItsGuardUntilItsWorkEnds(t *testing.T) {
	w := protected(t, Config{})
	w.cycle()
	w.limit("gpu", 0)
	for range 100 {
		w.after(100 * time.Millisecond)
	}
	if n := w.node(w.pod(0)); n.Status != raydemand.Draining {
		t.Fatalf("the busy worker is %s, want DRAINING", n.Status)
	}
	if !strings.Contains(w.guards(), "gpu-1") {
		t.Errorf("guarded are %q, want the worker whose work goes on", w.guards())
	}
}

func TestNoGuardIsTakenAwayWhileRayIsUnknown(t *testing.T) {
	w := protected(t, Config{})
	w.cycle()
	w.free(w.pod(0))
	w.ray.stateErr = errors.New("no answer")
	for range 60 {
		w.after(time.Second)
	}
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

func TestAPatchThatFailsLeavesNoBusyWorkerUnguarded(t *testing.T) {
	w := protected(t, Config{})
	w.kube.applyErr = errors.New("the webhook is down")
	w.want(5, gpu(1))
	w.cycle()
	w.guarded("head gpu-1 gpu-2", "the patch failed")
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
	for range 45 {
		w.after(100 * time.Millisecond)
	}
	if got := len(w.kube.guarded); got != 101 {
		t.Errorf("%d guards written after 4.5 s, want all 101", got)
	}
}

func TestAGuardThatCannotBeWrittenIsReportedOnce(t *testing.T) {
	w := protected(t, Config{})
	w.kube.guardErr = fmt.Errorf("pods is forbidden: %w", nodepool.ErrDenied)
	var d *addon.Decision
	tried := 0
	for range 50 {
		d = w.after(100 * time.Millisecond)
		tried += len(d.Actions)
	}
	if !hasFinding(d, nodeguard.GuardUnwritten) || w.kube.emitted(addon.ReasonGuardFailed) != 1 {
		t.Errorf("findings %v, events %v", d.Findings, w.kube.events)
	}
	if tried > 10 {
		t.Errorf("%d tries in 5 s, want a pause that grows", tried)
	}
	w.kube.guardErr = nil
	d = w.after(time.Minute)
	w.guarded("head gpu-1", "the right was granted")
	if hasFinding(d, nodeguard.GuardUnwritten) {
		t.Error("the finding stays after a write succeeded")
	}
}

func TestAConflictIsTriedAgainOnTheNewVersion(t *testing.T) {
	w := protected(t, Config{})
	old := clone(w.kube.cluster)
	w.kube.cached = &old
	for i := range w.kube.cluster.Workers {
		w.kube.cluster.Workers[i].Guard.Version = "newer"
	}
	w.cycle()
	w.after(100 * time.Millisecond)
	w.guarded("head", "the caches are behind")
	if tries := len(w.kube.guarded); tries != 2 {
		t.Errorf("%d writes while the caches are behind, want one for the head and one for the worker", tries)
	}
	w.kube.cached = nil
	w.after(100 * time.Millisecond)
	w.guarded("head gpu-1", "the caches have caught up")
}

func TestARayClusterThatIsHandedBackLosesItsGuardsAsItsWorkEnds(t *testing.T) {
	w := protected(t, Config{})
	w.busy(w.pod(1))
	w.cycle()
	w.guarded("head gpu-1 gpu-2", "both workers are busy")
	w.kube.cluster.Mode = nodepool.Shadow
	w.free(w.pod(1))
	for range 5 {
		w.after(time.Second)
	}
	w.guarded("gpu-1", "in shadow, one worker is idle")
	w.busy(w.pod(1))
	w.after(100 * time.Millisecond)
	w.guarded("gpu-1", "in shadow, a worker got work")
}

func TestAHeliostatThatNeverManagedARayClusterReportsItsGuardsAndLeavesThem(t *testing.T) {
	w := protected(t, Config{})
	w.cycle()
	w.free(w.pod(0))
	w.restart(Config{DefaultMode: nodepool.Shadow})
	var d *addon.Decision
	for range 10 {
		d = w.after(time.Second)
	}
	w.guarded("head gpu-1", "another process only watches")
	if !hasFinding(d, nodeguard.GuardLeft) {
		t.Errorf("findings %v, want %s", d.Findings, nodeguard.GuardLeft)
	}
	w.features.protectBusy = false
	w.restart(Config{})
	if d = w.after(time.Second); !hasFinding(d, nodeguard.GuardLeft) {
		t.Errorf("--protect-busy is off: findings %v, want %s", d.Findings, nodeguard.GuardLeft)
	}
	w.guarded("head gpu-1", "--protect-busy is off")
}

func TestGuardsStayWhereAnotherHeliostatTakesOver(t *testing.T) {
	w := protected(t, Config{})
	w.cycle()
	w.free(w.pod(0))
	w.kube.cluster.Head.Sidecar = nodepool.OurSidecar
	var d *addon.Decision
	for range 10 {
		d = w.after(time.Second)
	}
	w.guarded("head gpu-1", "the sidecar manages the RayCluster")
	if hasFinding(d, nodeguard.GuardLeft) {
		t.Errorf("findings %v: the sidecar removes the guards", d.Findings)
	}
}

// Heliostat adds the annotation that is missing. The one that the user wrote still says that the worker is to stay.
func TestAWorkerThatItsUserProtectsIsNotGivenBack(t *testing.T) {
	w := protected(t, Config{})
	for i := range w.kube.cluster.Workers {
		w.kube.cluster.Workers[i].Guard.DoNotDisrupt = nodepool.MarkedByUser
	}
	w.seconds(1)
	if g := w.kube.cluster.Workers[0].Guard; g.SafeToEvict != nodepool.MarkedByUs || g.By() != nodepool.GuardedByUser {
		t.Fatalf("guard %+v is by %q, want one annotation of each, which counts as the user's", g, g.By())
	}
	w.seconds(10)
	if got, err := w.giveBack(giveback.Ask{GPUs: 1, Group: "gpu"}); !errors.Is(err, giveback.ErrRefused) ||
		!strings.Contains(err.Error(), "its user keeps it from being evicted") {
		t.Errorf("%+v, %v; want a refusal, also for the idle worker", got, err)
	}
	if got, err := w.giveBack(giveback.Ask{GPUs: 1, Group: "gpu", Force: true}); err != nil || len(got.Workers) != 1 {
		t.Errorf("with force: %+v, %v", got, err)
	}
}
