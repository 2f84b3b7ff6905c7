package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// cut fails one of the drains and writes of a sequence: before it is carried out, or after that and before its answer.
// Then the process ends, unless it goes on.
type cut struct {
	at                  int
	carriedOut, goes    bool
	calls               int
	happened, restarted bool
}

func (c *cut) String() string {
	return fmt.Sprintf("call %d, carried out %t, the process goes on %t", c.at, c.carriedOut, c.goes)
}

var errCut = errors.New("the connection was reset")

// into cuts the calls of a world.
func (c *cut) into(w *world) {
	call := func(fails, lost *error) func() {
		return func() {
			*fails, *lost = nil, nil
			if c.calls++; c.calls != c.at {
				return
			}
			if c.happened = true; c.carriedOut {
				*lost = errCut
			} else {
				*fails = errCut
			}
		}
	}
	w.ray.draining = call(&w.ray.drainErr, &w.ray.lostAnswer)
	w.kube.writing = call(&w.kube.nextErr, &w.kube.lostAnswer)
}

// seconds lets so many seconds pass, in which the operator acts.
func (c *cut) seconds(w *world, n int) { c.pass(w, n, time.Second) }

// pass has so many cycles with a pause before each.
func (c *cut) pass(w *world, n int, pause time.Duration) {
	for range n {
		w.after(pause)
		if c.happened && !c.goes && !c.restarted {
			c.restarted = true
			w.restart(Config{})
		}
		w.operate()
	}
}

// everyCut runs a sequence with a cut of each of its calls, of which there are at least so many.
func everyCut(t *testing.T, calls int, run func(c *cut)) {
	t.Helper()
	for _, goes := range []bool{false, true} {
		for _, carriedOut := range []bool{false, true} {
			for at := 1; ; at++ {
				c := &cut{at: at, carriedOut: carriedOut, goes: goes}
				run(c)
				if c.happened {
					continue
				}
				if at <= calls {
					t.Errorf("carried out %t: %d calls, want %d or more", carriedOut, at-1, calls)
				}
				break
			}
		}
	}
}

// rests fails unless nothing is left to do for a group: as many pods as replicas say, no names, and no doubt.
func (c *cut) rests(w *world, group string, replicas int) {
	g := w.group(group)
	if g.Replicas != replicas || len(g.WorkersToDelete) > 0 || observe.GoalPods(*g) != len(w.kube.cluster.Workers) {
		w.t.Errorf("%v: %d replicas, names %v and %d pods, want %d replicas", c, g.Replicas, g.WorkersToDelete,
			len(w.kube.cluster.Workers), replicas)
	}
	if d := w.after(time.Second); d.Mode != nodepool.Managed || d.Paused != "" || d.Err != "" {
		w.t.Errorf("%v: mode %s, paused %q, error %q in the end", c, d.Mode, d.Paused, d.Err)
	}
}

// Two drains, the patch that names both hosts, and the one that clears the names.
func TestAReductionThatIsCutAnywhereEndsOnce(t *testing.T) {
	everyCut(t, 4, func(c *cut) {
		slice := gpuGroup("slice", 2, 0, 4)
		slice.NumOfHosts = 2
		w := newWorld(t, Config{}, slice)
		w.works(w.pod(2), w.pod(3))
		c.into(w)
		c.seconds(w, 300)
		c.rests(w, "slice", 1)
		if w.pod(0) != "llm-slice-3" || slices.Contains(w.ray.drained(), "llm-slice-3") {
			t.Errorf("%v: %v were drained, and %s is left", c, w.ray.drained(), w.pod(0))
		}
	})
}

// The reservation, the drain, the patch that names, the one that clears the names, and the end of the reservation. The
// caller asks again, as long as there is no reservation.
func TestAGiveBackThatIsCutAnywhereIsGivenOnceAndEnds(t *testing.T) {
	everyCut(t, 5, func(c *cut) {
		w := newBusyWorld(t, 3, 0, 8)
		c.into(w)
		until := w.now.Add(30 * time.Minute) // a process that begins anew gives the work its time anew
		for try := 0; w.kube.cluster.GiveBack == nil && try < 3; try++ {
			asked, answered := make(chan struct{}), make(chan error, 1)
			w.kube.enqueued = func() { close(asked) }
			go func() {
				_, err := w.kube.desk.Begin(context.Background(), key, giveback.Ask{GPUs: 1, Group: "gpu", Force: true,
					DeadlineSeconds: 600, Until: until})
				answered <- err
			}()
			<-asked
			w.after(3 * time.Second)
			if err := <-answered; (err != nil) != (c.happened && try == 0) {
				t.Errorf("%v: try %d is answered %v", c, try, err)
			}
			c.seconds(w, 3)
		}
		c.seconds(w, 1900)
		c.rests(w, "gpu", 2)
		if r := w.kube.cluster.GiveBack; r != nil || len(w.ray.drained()) > 2 {
			t.Errorf("%v: reservation %v, drained %v in the end", c, r, w.ray.drained())
		}
	})
}

// The request, the patch that launches, four pods that use its capacity, and its release.
func TestALaunchWithAProvisioningRequestThatIsCutAnywhereLeavesNothing(t *testing.T) {
	everyCut(t, 7, func(c *cut) {
		w := provisioningWorld(t, Config{})
		c.into(w)
		c.seconds(w, 20)
		if n := len(w.kube.changes); n > 0 || len(w.kube.cluster.Workers) > 0 {
			if c.at > 1 || c.carriedOut || !c.goes {
				t.Errorf("%v: launched without a request, which only this process does that could create none", c)
			}
			return
		}
		w.answer(nodepool.CapacityProvisioned)
		c.seconds(w, 20)
		if got := w.consuming(); got != 4 {
			t.Errorf("%v: %d pods use the capacity, want 4", c, got)
		}
		for i := range w.kube.cluster.Workers {
			w.kube.cluster.Workers[i].Node = "machine"
		}
		w.joinAll()
		w.ray.demand.Gangs = nil
		c.seconds(w, 20)
		c.rests(w, "gpu", 4)
		if left := len(w.kube.cluster.Provisioning.Requests); left > 0 {
			t.Errorf("%v: %d ProvisioningRequests are left", c, left)
		}
	})
}

// The suspension and the resumption.
func TestASuspensionThatIsCutAnywhereHappensAndEnds(t *testing.T) {
	everyCut(t, 2, func(c *cut) {
		w := newIdleWorld(t)
		c.into(w)
		c.pass(w, 300, time.Minute)
		if !w.kube.cluster.Suspended || w.kube.cluster.IdleSince.IsZero() {
			t.Errorf("%v: not suspended after 5 h", c)
		}
		w.kube.cluster.RequestResources = []raydemand.Request{{Bundle: gpu(1), Count: 1}}
		c.seconds(w, 60)
		if w.kube.cluster.Suspended || len(w.kube.ended) != 2 {
			t.Errorf("%v: not resumed, or suspended again: %+v", c, w.kube.ended)
		}
	})
}

// The guards of the head and of a worker, the removal of the worker's, its drain, and two patches.
func TestGuardsThatAreCutAnywhereComeAndGo(t *testing.T) {
	everyCut(t, 5, func(c *cut) {
		w := protected(t, Config{})
		c.into(w)
		c.seconds(w, 20)
		w.guarded("head gpu-1", c.String())
		w.idles(w.pod(0))
		c.seconds(w, 200)
		w.guarded("head", c.String())
		c.rests(w, "gpu", 0)
	})
}

func TestANumberOfGPUsThatIsCutAnywhereIsWritten(t *testing.T) {
	everyCut(t, 1, func(c *cut) {
		w := newWorld(t, Config{}, sliceGroup(nodepool.SyncEnforce, 1))
		*w.group("slices") = sliceGroup(nodepool.SyncEnforce, 1)
		w.kube.synced = nil
		c.into(w)
		c.seconds(w, 20)
		if got := w.group("slices").GPUs.Derived; got == nil || *got != raydemand.Whole(3) || len(w.kube.synced) != 1 {
			t.Errorf("%v: the number is %v after %d writes", c, got, len(w.kube.synced))
		}
	})
}

// A buffer that comes, and goes with the policy.
func TestWarmNodesThatAreCutAnywhereComeAndGo(t *testing.T) {
	everyCut(t, 2, func(c *cut) {
		w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
		w.kube.cluster.Buffers = &nodepool.Buffers{Templates: map[string]string{"gpu": "t"}}
		w.policy(`{"keepWarmNodes": [{"group": "gpu", "count": 2}]}`)
		c.into(w)
		c.seconds(w, 20)
		if list := w.kube.cluster.Buffers.List; len(list) != 1 || list[0].Pods != 2 {
			t.Errorf("%v: buffers %+v", c, list)
		}
		w.kube.cluster.Policy = nil
		c.seconds(w, 20)
		if list := w.kube.cluster.Buffers.List; len(list) > 0 || len(w.kube.buffers) != 2 {
			t.Errorf("%v: buffers %+v are left after %+v", c, list, w.kube.buffers)
		}
	})
}

// The reservation, the drain, the patches of both RayClusters, and the end of the reservation.
func TestATakingThatIsCutAnywhereEndsWithOneWorkerEach(t *testing.T) {
	everyCut(t, 4, func(c *cut) {
		p := newPair(t, taking, 1, func(*pair) {})
		p.low.busy(p.low.pod(0))
		p.low.busy(p.low.pod(1))
		p.low.idles(p.low.pod(1))
		p.high.want(1, gpu(1))
		c.into(p.low)
		c.into(p.high)
		for range 1500 {
			p.seconds(1)
			if c.happened && !c.goes && !c.restarted {
				c.restarted = true
				p.restart()
			}
			if len(p.high.kube.cluster.Workers) > 0 && p.high.ray.demand.Requests != nil && p.high.kube.cluster.Workers[0].Node != "" {
				p.high.want(0, nil)
				p.high.busy(p.high.pod(0))
			}
		}
		p.have(c.String(), 1, 1)
		if r := p.low.kube.cluster.GiveBack; r != nil {
			t.Errorf("%v: the reservation %v is left", c, r)
		}
	})
}
