package controller

import (
	"fmt"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
)

// sessionPause is how long a Ray session is observed before anything is taken away from it: two rounds in which the
// GCS polls its raylets.
const sessionPause = 2 * time.Second

// paused returns why nothing may be taken away now, or "".
func (c *Controller) paused(r *record, v observe.View) string {
	m := &r.memory
	switch doubt := c.doubt(r, v); {
	case doubt != "":
		return doubt
	case v.Cluster.Unknown() != "":
		return v.Cluster.Unknown()
	case m.Patches.reverts.Pause(v.Now) != "":
		// A reduction lowers replicas and names its pods. If the names are set back and the number is not yet, or the
		// number is lowered further, the operator deletes other pods.
		return m.Patches.reverts.Pause(v.Now)
	case m.Patches.rest.Resting(v.Now):
		// The pod of a drained node could not be named. The next patch comes before any drain.
		return "the last patch failed, and the next one is not due yet"
	case m.freshRest.Resting(v.Now):
		return fmt.Sprintf("reading the RayCluster again before a reduction failed: %v", m.freshErr)
	}
	return ""
}

// doubt returns why Ray's reading does not prove that a node is idle, or "".
func (c *Controller) doubt(r *record, v observe.View) string {
	switch guard := &r.memory.guard; {
	case !v.Live():
		return "Ray's state cannot be read"
	case v.Head == nil:
		return "the GCS does not list its own head, so its list of nodes is incomplete"
	case guard.Doubts():
		return guard.Message
	case v.Now.Sub(r.gcs.Since) < sessionPause:
		return "this Ray session is new to Heliostat, and not all of its nodes may be back yet"
	}
	if age := c.config.Now().Sub(v.ReadAt); age > c.config.MaxDataAge {
		return fmt.Sprintf("Ray's state is %s old", planner.Span(age.Seconds()))
	}
	return ""
}

// WantsFreshList reports whether the drop guard waits for a list from the API server, and it may be read now.
func (m *memory) WantsFreshList(now time.Time) bool {
	return m.guard.WantsFreshList(now) && !m.Patches.rest.Resting(now) && !m.freshRest.Resting(now)
}

// FreshRead notes how a reading from the API server ended.
func (m *memory) FreshRead(now time.Time, err error) {
	m.freshErr = err
	if err != nil {
		m.freshRest.Fail(now)
		return
	}
	m.freshRest = addon.Pause{}
}
