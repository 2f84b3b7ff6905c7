package observe

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// A node that is in use before and after Ray was unreadable may have been idle in between, and may be getting an actor
// now: drained as one that only a placement group reserves, it would end, and the actor with it.
func TestUseBeforeAnOutageOfRayProvesNothingAfterIt(t *testing.T) {
	start := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	reserved := []raydemand.Node{{Status: raydemand.Running, Activity: []string{"Resource: GPU currently in use."}}}
	for _, c := range []struct {
		outage, want time.Duration
	}{{unseen, raydemand.ProcessStart + unseen}, {unseen + 1, 0}} {
		var clock UseClock
		clock.Observe(start, reserved)
		for at := time.Duration(0); at <= raydemand.ProcessStart; at += time.Second {
			clock.Observe(start.Add(at), reserved)
		}
		now := start.Add(raydemand.ProcessStart + c.outage)
		clock.Observe(now, reserved)
		if got := clock.For(now, reserved[0].ID); got != c.want {
			t.Errorf("after an outage of %v: %v, want %v", c.outage, got, c.want)
		}
	}
}
