package controller

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// record is what the process keeps of one RayCluster between cycles: the connection to its head, the memory that
// decisions are made from, how the calls of each step ended, and when the next cycle may begin.
type record struct {
	mu sync.Mutex // one cycle at a time; guards all below but decision, and motion, which Controller.mu guards too
	remembered
	stands standing

	motion motion // written with both locks held
	// allowedAt is when the next cycle may begin while the limiter delays it; zero otherwise. urgent: it needs no
	// place there, because a reading asked for it.
	allowedAt time.Time
	urgent    bool
	// restUntil is when the next cycle starts at the earliest: after a heavy plan, the RayCluster rests for as long as
	// the plan took, so that it takes at most half of a core and leaves room for others.
	restUntil time.Time

	decision atomic.Pointer[addon.Decision]
}

// remembered is what is kept of one RayCluster, and not of an earlier one with the same name.
type remembered struct {
	uid    string
	gcs    connection
	memory memory

	conditions conditions
	recent     []addon.Action

	// Of the steps of a cycle, in the order of steps.
	numGPUs numGPUs
	// lastReport is what Ray was last told, at reportedAt: it is sent again when it changes, or after ReportEvery.
	lastReport raydemand.Report
	reportedAt time.Time

	features []addon.Feature
}

func newRecord(c *Controller) *record {
	r := &record{}
	c.remember(r, "")
	return r
}

// remember begins anew for a RayCluster.
func (c *Controller) remember(r *record, uid string) {
	r.remembered = remembered{uid: uid, memory: newMemory(), conditions: conditions{},
		features: make([]addon.Feature, len(c.config.Addons))}
	for i := range c.config.Addons {
		r.features[i] = c.config.Addons[i].New(loop{c, r})
	}
}

// recreated begins anew when the RayCluster was deleted and created again under the same name.
func (c *Controller) recreated(r *record, uid string) {
	if r.uid != "" && r.uid != uid {
		r.gcs.Close()
		c.remember(r, uid)
	}
	r.uid = uid
}

// voidRay forgets what was observed of a Ray session that is over, and what was reported to it.
func (r *record) voidRay() {
	r.memory.session = newSession()
	r.lastReport, r.reportedAt = raydemand.Report{}, time.Time{}
}

// keepRecent keeps the latest actions for the web page; those that scale nothing would displace the others.
func (r *record) keepRecent(actions []addon.Action) {
	const kept = 30
	r.recent = append(r.recent, slices.DeleteFunc(slices.Clone(actions), addon.Action.ScalesNothing)...)
	if surplus := len(r.recent) - kept; surplus > 0 {
		r.recent = append([]addon.Action(nil), r.recent[surplus:]...)
	}
}
