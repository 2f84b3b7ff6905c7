package consolidation

import (
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// overdue remembers when the actors on overdue drains were last read.
type overdue struct {
	looked time.Time
	// since is since when the RayCluster lets them end without interruption; zero if it does not.
	since time.Time
}

// drains returns the draining workers whose deadline is over, if their actors are to be read in this cycle: the
// RayCluster lets restartable actors move, and the last look was not just now. Until the view says that they may, none
// may end. After a restart of this process, and after the RayCluster has opted in or is managed again, a drain has its
// whole time again.
func (e *overdue) drains(v *observe.View, asked scaledown.Drains, deadline time.Duration) []observe.Member {
	const lookAgain = 5 * time.Second
	switch {
	case v.Mode != nodepool.Managed || !v.Cluster.Consolidate.Allows(nodepool.ConsolidateRestartable):
		e.since = time.Time{}
		return nil
	case e.since.IsZero():
		e.since = v.Now
	}
	if !v.Live() || v.Now.Sub(e.looked) < lookAgain || v.Now.Sub(e.since) < deadline {
		return nil
	}
	var due []observe.Member
	for _, member := range v.Members {
		if member.Joined() && member.Node.Status == raydemand.Draining && member.Counted() && member.Going == nil &&
			asked.AcceptedFor(member.Node.ID, v.Now) >= deadline {
			due = append(due, member)
		}
	}
	return due
}
