package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/test/rig"
)

// shown lists the stages that the story shows, in their order.
var shown = []rig.Stage{rig.DemandSeen, rig.GroupPatched, rig.PodCreated, rig.Scheduled, rig.NodeAlive, rig.WorkRan,
	rig.NodeIdle, rig.Drained, rig.PodGone}

// clock remembers when what happened, so that each fact can be printed with the time since the previous one.
type clock struct {
	// asked and released are the last times at which work was asked for or ended.
	asked, released time.Time
	// live: the story is over, and whoever asks now is only seen by the demand.
	live bool
	// demand is when demand was seen last, patched when each group was.
	demand  time.Time
	patched map[string]time.Time
	// pods has the last stage of each pod; worked says that work has run on it.
	pods   map[string]time.Time
	worked map[string]bool
}

func newClock() *clock {
	return &clock{patched: map[string]time.Time{}, pods: map[string]time.Time{}, worked: map[string]bool{}}
}

// since records a fact and returns the time since the stage before it. It returns false for facts outside the story: a
// node that is idle before its first work, a second report of a drain.
func (c *clock) since(f rig.Fact) (time.Duration, bool) {
	switch f.Stage {
	case rig.DemandSeen:
		c.demand = f.At
		if c.live {
			c.asked = f.At
		}
		return f.At.Sub(c.asked), true
	case rig.GroupPatched:
		if f.To < f.From {
			return 0, false // the pods that leave show it
		}
		c.patched[f.Group] = f.At
		return f.At.Sub(later(c.asked, c.demand)), true
	case rig.PodCreated:
		c.pods[f.Pod] = f.At
		return f.At.Sub(c.patched[f.Group]), true
	case rig.Scheduled, rig.NodeAlive, rig.PodGone:
		return c.step(f, c.pods[f.Pod]), true
	case rig.Drained: // a worker may be seen idle just before the release is known
		return c.step(f, later(c.released, c.pods[f.Pod])), true
	case rig.WorkRan:
		first := !c.worked[f.Pod]
		c.worked[f.Pod] = true
		return c.step(f, later(c.pods[f.Pod], c.asked)), first
	case rig.NodeIdle:
		if c.released.IsZero() {
			return 0, false
		}
		return c.step(f, later(c.released, c.pods[f.Pod])), true
	}
	return 0, false
}

// ahead reports whether a group grew although nobody has seen yet what was asked for.
func (c *clock) ahead(f rig.Fact) bool {
	return f.Stage == rig.GroupPatched && f.To > f.From && !c.live && c.demand.Before(c.asked)
}

// step makes f the last stage of its pod and returns the time since before.
func (c *clock) step(f rig.Fact, before time.Time) time.Duration {
	c.pods[f.Pod] = f.At
	return f.At.Sub(before)
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// earlier returns the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// row is one line of the closing table.
type row struct {
	stage    rig.Stage
	count    int
	p50, max time.Duration
}

// stages summarises how long each stage took since the one before it.
func stages(took map[rig.Stage][]time.Duration) []row {
	var rows []row
	for _, stage := range shown {
		times := slices.Sorted(slices.Values(took[stage]))
		if len(times) == 0 {
			continue
		}
		rows = append(rows,
			row{stage: stage, count: len(times), p50: times[(len(times)-1)/2], max: times[len(times)-1]})
	}
	return rows
}

// verify says which step did not happen: every worker must have passed every stage in order, drained before its pod was
// stopped, and no work may have been lost.
func verify(facts []rig.Fact, lost []rig.Event) error {
	var errs []error
	for _, loss := range lost {
		errs = append(errs, fmt.Errorf("%s was lost: %s", loss.ID, loss.Error))
	}
	pods := rig.Pods(facts, "")
	want := 0
	for _, c := range chapters {
		want += c.total()
	}
	if len(pods) != want {
		errs = append(errs, fmt.Errorf("%d workers were created, %d were needed", len(pods), want))
	}
	for _, pod := range pods {
		errs = append(errs, verifyPod(facts, pod))
	}
	return errors.Join(errs...)
}

// verifyPod checks the life of one worker. That work ran is checked with the work: a worker that only keeps room for a
// request has none.
func verifyPod(facts []rig.Fact, pod string) error {
	var before time.Time
	stages := []rig.Stage{rig.PodCreated, rig.Scheduled, rig.NodeAlive, rig.Drained, rig.PodStopping, rig.PodGone}
	for _, stage := range stages {
		at, ok := rig.OfPod(facts, pod, stage)
		if !ok {
			return fmt.Errorf("worker %s was never seen as: %s", pod, stage)
		}
		// The observers of Kubernetes and of Ray look independently, Ray's every 50 ms.
		if at.Before(before.Add(-100 * time.Millisecond)) {
			return fmt.Errorf("worker %s: %s came %s too early", pod, stage, before.Sub(at))
		}
		before = at
	}
	if _, ok := rig.OfPod(facts, pod, rig.NodeIdle); !ok {
		return fmt.Errorf("worker %s was never seen as: %s", pod, rig.NodeIdle)
	}
	return nil
}
