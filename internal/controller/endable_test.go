package controller

import (
	"errors"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestADrainHasItsWholeTimeAfterOptingIn: the actors are read once it is over, and not in each cycle.
func TestADrainHasItsWholeTimeAfterOptingIn(t *testing.T) {
	const deadline = time.Minute
	m, v, s := newMemory(), viewOf(1), settings()
	v.State.Nodes[1].Status = raydemand.Draining
	joined(&v)
	overdue := func(after time.Duration) int {
		v = later(v, after)
		m.Remember(&v, s)
		return len(m.OverdueDrains(&v, deadline))
	}
	if got := overdue(0) + overdue(time.Hour); got > 0 {
		t.Errorf("%d drains are overdue although no actor may move", got)
	}
	v.Cluster.Consolidate = nodepool.ConsolidateRestartable
	if got := overdue(0) + overdue(deadline-1); got > 0 {
		t.Errorf("%d drains are overdue within a minute after opting in", got)
	}
	if got := overdue(1); got != 1 {
		t.Errorf("%d drains are overdue a minute after opting in, want 1", got)
	}
	m.LooksAtActors(v.Now)
	if got := overdue(time.Second); got != 0 {
		t.Errorf("the actors are read again a second later")
	}
	if got := overdue(5 * time.Second); got != 1 {
		t.Errorf("the actors are not read again after five seconds")
	}
	v.StateErr = errors.New("no answer")
	if got := overdue(time.Minute); got != 0 {
		t.Error("the actors are read although Ray does not answer")
	}
}
