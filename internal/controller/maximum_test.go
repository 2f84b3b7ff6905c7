package controller

import (
	"slices"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestIdleWorkersGoFirstWhenTheMaximumIsLowered(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 3, 0, 3))
	w.works(w.pod(0), w.pod(2))
	w.group("gpu").Max = 2
	w.cycle()
	if len(w.ray.drains) != 1 || w.ray.drains[0].Node.Instance != w.pod(1) || w.ray.drains[0].Reason != raydemand.DrainIdle {
		t.Errorf("drains = %+v, want the idle worker by an idle drain", w.ray.drains)
	}
}

func TestPodsThatNobodyNeedsAnyMoreGoOnlyAfterTheIdleTimeout(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
	w.want(2, gpu(1))
	w.cycle()
	w.lastChange()
	w.operate()
	w.want(0, nil)
	w.after(time.Second)
	w.after(55 * time.Second)
	w.lastNothing("the demand may come back")
	w.after(10 * time.Second)
	if got := w.lastChange(); got.Replicas != 0 || len(got.WorkersToDelete) != 2 {
		t.Errorf("target = %+v, want both pods gone by name", got)
	}
}

func TestADrainFoundUnderWayGetsADeadlineToo(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 2))
	w.works(w.pod(0), w.pod(1))
	w.group("gpu").Max = 1
	w.cycle()
	w.restart(Config{DrainDeadline: 5 * time.Minute})
	w.after(time.Second)
	w.after(299 * time.Second)
	w.lastNothing("the deadline, counted anew after our restart, is not over")
	w.after(2 * time.Second)
	if got := w.lastChange(); got.Replicas != 1 || len(got.WorkersToDelete) != 1 {
		t.Errorf("target = %+v, want the draining worker gone by name", got)
	}
	w.drains(1, "no second drain: the one under way is recognised")
}

func TestStuckPodsGoByNameOnceTheyAreOldEnough(t *testing.T) {
	w := newWorld(t, Config{AllocationTimeout: time.Minute, BreakerCooldown: time.Hour}, gpuGroup("gpu", 0, 0, 4))
	w.group("gpu").Replicas = 2
	w.want(2, gpu(1))
	w.operate()
	w.cycle()
	w.after(50 * time.Second)
	late := w.kube.cluster.Workers[1]
	late.Pod = "llm-gpu-late"
	w.kube.cluster.Workers[1] = late // the operator replaced one
	w.after(15 * time.Second)
	w.emitted(addon.ReasonGroupFailing, 1, "the group broken off")
	if got := w.lastChange(); got.Replicas != 1 || slices.Contains(got.WorkersToDelete, "llm-gpu-late") {
		t.Errorf("target = %+v, want only the old pod gone", got)
	}
}

func TestAPodWithANodeMayTakeLongToStart(t *testing.T) {
	for name, c := range map[string]struct {
		runsAfter time.Duration // 0: its containers are never made
		want      time.Duration
	}{
		"a pod that is never made goes after half an hour":                       {want: 30 * time.Minute},
		"a pod that runs goes when it has not joined within the timeout by then": {runsAfter: 7 * time.Minute, want: 12 * time.Minute},
	} {
		w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
		w.group("gpu").Replicas = 1
		w.operate()
		w.want(1, gpu(1))
		start := w.now
		pod := &w.kube.cluster.Workers[0]
		pod.ScheduledAt = start
		for len(w.kube.changes) == 0 && w.now.Sub(start) < time.Hour {
			if c.runsAfter > 0 && w.now.Sub(start) == c.runsAfter {
				pod.Running, pod.StartedAt = true, w.now
			}
			w.after(10 * time.Second)
		}
		// The breaker is open for 5, 10, 20 minutes with pauses of 5 minutes in between, in which nothing goes.
		if got := w.now.Sub(start); got < c.want || got > c.want+6*time.Minute {
			t.Errorf("%s: patched after %v, want from %v on", name, got, c.want)
		}
		if got := w.lastChange(); !slices.Equal(got.WorkersToDelete, []string{pod.Pod}) {
			t.Errorf("%s: target = %+v, want the pod gone by name", name, got)
		}
	}
}

func TestAStuckPodOfTheMinimumStays(t *testing.T) {
	w := newWorld(t, Config{AllocationTimeout: time.Minute, BreakerCooldown: time.Hour}, gpuGroup("gpu", 0, 0, 4))
	w.group("gpu").Min, w.group("gpu").Replicas = 1, 1
	w.operate()
	w.cycles(30, 10*time.Second)
	w.emitted(addon.ReasonGroupFailing, 1, "the group broken off")
	w.nothingWritten("the operator would only make it anew")
}

func TestOverdueReplicasGoWholeAndOnlyAsFarAsTheMaximumDemands(t *testing.T) {
	slice := gpuGroup("slice", 4, 0, 4)
	slice.NumOfHosts = 2
	w := newWorld(t, Config{DrainDeadline: time.Minute}, slice)
	for i := range 8 {
		w.busy(w.pod(i))
	}
	w.works()
	w.group("slice").Max = 2
	w.after(100 * time.Millisecond)
	w.drains(4, "two replicas of two hosts")
	gone := w.ray.drains[0].Node.Instance
	w.node(gone).Status = raydemand.Dead // its work ended, so Ray let the node go
	w.group("slice").Max = 3
	for range 70 {
		w.after(time.Second)
		w.operate()
	}
	if left := len(w.kube.cluster.Workers); left != 6 || w.exists(gone) {
		t.Errorf("%d workers are left and the one that ended stands: %v, want 6 without it", left, w.exists(gone))
	}
}

// busyPair is a world with one replica of two busy hosts, whose drain never ends in Ray.
func busyPair(t *testing.T, config Config) *world {
	t.Helper()
	pair := gpuGroup("pair", 1, 0, 2)
	pair.NumOfHosts = 2
	w := newWorld(t, config, pair)
	w.works(w.pod(0), w.pod(1))
	return w
}

// limit sets the group's maximum and looks at once.
func (w *world) limit(group string, most int) {
	w.group(group).Max = most
	w.after(300 * time.Millisecond)
}

// goesAfter fails unless the pods stay for just that long and then are all named in one patch.
func (w *world) goesAfter(wait time.Duration, pods int, why string) {
	w.t.Helper()
	w.cycles(int(wait/time.Second)-1, time.Second)
	w.lastNothing(why)
	w.after(time.Second)
	w.after(time.Second)
	if got := w.lastChange(); len(got.WorkersToDelete) != pods {
		w.t.Errorf("target = %+v, want %d pods gone by name: %s", got, pods, why)
	}
}

func TestAMaximumThatIsLoweredAgainGivesTheWholeDeadlineAgain(t *testing.T) {
	w := busyPair(t, Config{DrainDeadline: 25 * time.Second})
	w.limit("pair", 0)
	if len(w.ray.drains) != 2 || w.ray.drains[0].Reason != raydemand.DrainPreemption ||
		!w.ray.drains[0].Deadline.Equal(w.now.Add(25*time.Second)) {
		t.Fatalf("drains = %+v, want one of each host with the deadline", w.ray.drains)
	}
	w.after(5 * time.Second)
	w.limit("pair", 2)
	w.after(45 * time.Second)
	w.lastNothing("the maximum was raised before the deadline")
	w.limit("pair", 0)
	w.goesAfter(25*time.Second, 2, "a new deadline has begun")
	w.drains(2, "no drain of a node that drains already")
}

func TestADrainOfSomebodyElseHasADeadlineOnlyFromTheLoweredMaximumOn(t *testing.T) {
	w := newWorld(t, Config{DrainDeadline: 25 * time.Second}, gpuGroup("gpu", 2, 0, 2))
	w.busy(w.pod(0))
	w.busy(w.pod(1))
	w.node(w.pod(1)).Status = raydemand.Draining
	w.after(time.Second)
	w.after(time.Hour)
	w.lastNothing("the group is within its maximum")
	w.limit("gpu", 1)
	w.goesAfter(25*time.Second, 1, "the drain is old, the deadline is not")
}

func TestNoDeadlineRunsWhileNothingMayBeWritten(t *testing.T) {
	for name, forbid := range map[string]func(*nodepool.Cluster, bool){
		"frozen": func(c *nodepool.Cluster, yes bool) { c.Freeze = yes },
		"off": func(c *nodepool.Cluster, yes bool) {
			c.Mode = nodepool.Managed
			if yes {
				c.Mode = nodepool.Off
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := busyPair(t, Config{DrainDeadline: 25 * time.Second})
			w.limit("pair", 0)
			w.after(20 * time.Second)
			forbid(&w.kube.cluster, true)
			w.after(time.Second)
			w.after(time.Hour)
			w.lastNothing("nothing may be written")
			forbid(&w.kube.cluster, false)
			w.after(time.Second)
			w.after(sessionPause)
			w.goesAfter(23*time.Second, 2, "the deadline begins anew with the right to write")
		})
	}
}

func TestAMaximumRaisedWhileRayDoesNotAnswerEndsTheDeadline(t *testing.T) {
	w := busyPair(t, Config{DrainDeadline: 25 * time.Second})
	w.limit("pair", 0)
	w.ray.stateErr = errOff
	w.limit("pair", 2)
	w.limit("pair", 0)
	w.after(time.Minute)
	w.ray.stateErr = nil
	w.limit("pair", 0)
	w.lastNothing("between the two limits there was no deadline")
	w.goesAfter(25*time.Second, 2, "the second deadline has begun")
}

func TestARefusedDrainLeavesNoDeadlineToALaterOne(t *testing.T) {
	w := newWorld(t, Config{DrainDeadline: 25 * time.Second}, gpuGroup("gpu", 2, 0, 2))
	w.works(w.pod(0), w.pod(1))
	w.ray.refuse[w.pod(0)], w.ray.refuse[w.pod(1)] = true, true
	w.limit("gpu", 1)
	refused := w.ray.drained()
	if len(refused) != 1 {
		t.Fatalf("drained %v, want one", refused)
	}
	w.after(24 * time.Second)
	w.node(refused[0]).Status = raydemand.Draining // somebody else's drain
	w.after(time.Second)
	w.goesAfter(25*time.Second, 1, "the refused drain's deadline is not the accepted one's")
}
