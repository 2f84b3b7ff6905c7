package controller

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// busyPair is a world with one replica of two busy hosts, whose drain never ends in Ray.
func busyPair(t *testing.T, config Config) *world {
	t.Helper()
	pair := gpuGroup("pair", 1, 0, 2)
	pair.NumOfHosts = 2
	w := newWorld(t, config, pair)
	w.busy(w.pod(0))
	w.busy(w.pod(1))
	w.cycle()
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
	for range int(wait/time.Second) - 1 {
		w.after(time.Second)
	}
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
	if len(w.ray.drains) != 2 {
		t.Fatalf("drained %v, want both hosts", w.ray.drained())
	}
	w.after(5 * time.Second)
	w.limit("pair", 2)
	w.after(45 * time.Second)
	w.lastNothing("the maximum was raised before the deadline")
	w.kube.events = nil
	w.limit("pair", 0)
	if got := w.kube.emitted(addon.ReasonDraining); got != 2 {
		t.Errorf("events = %v, want a new deadline reported for each host", w.kube.events)
	}
	w.goesAfter(25*time.Second, 2, "a new deadline has begun")
	if len(w.ray.drains) != 2 {
		t.Errorf("drained %v, want no drain of a node that drains already", w.ray.drained())
	}
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
	w.busy(w.pod(0))
	w.busy(w.pod(1))
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
