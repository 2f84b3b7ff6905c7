package engine

import (
	"maps"
	"slices"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// shadowFollow is how long the other autoscaler may take to do what Heliostat wanted before, and wants no longer, for
// it to count as the same change. Ray's own autoscaler drains a worker and lowers replicas in a later round
// (docs/reference/facts.md#ray-lowers-replicas-late); in between, Heliostat's goal goes back.
const shadowFollow = 30 * time.Second

// shadowDifferences bounds the differences kept for one RayCluster.
const shadowDifferences = 100

// Shadow compares, for every RayCluster in shadow mode, what Heliostat would want with what another autoscaler writes.
// It starts empty. Its methods are safe for concurrent use.
type Shadow struct {
	mu       sync.Mutex // guards clusters and all in it
	clusters map[nodepool.ClusterKey]*comparison
}

// newShadow returns an empty Shadow.
func newShadow() *Shadow { return &Shadow{clusters: map[nodepool.ClusterKey]*comparison{}} }

// Comparison compares ours, Heliostat's goals, with theirs, the other autoscaler's, for one RayCluster. All counts are
// pods.
type Comparison struct {
	// Since is when comparing began; Compared is for how long both sides were known since then, Agreed for how long of
	// that all groups were equal.
	Since            time.Time
	Compared, Agreed time.Duration
	// Writer is the field manager that last wrote the worker groups; empty if unknown.
	Writer string
	Groups []ComparedGroup
	// Differences are the latest ones, newest first.
	Differences []Difference
}

// ComparedGroup is what both sides want of one worker group now.
type ComparedGroup struct {
	Name         string
	Ours, Theirs int
	// Reason is ours.
	Reason planner.Reason
}

// Outcome says how a difference ended.
type Outcome string

const (
	// StillDiffers: the difference has not ended.
	StillDiffers Outcome = "differs"
	// OursFirst and TheirsFirst: one side wanted first what the other wanted later.
	OursFirst   Outcome = "ours_first"
	TheirsFirst Outcome = "theirs_first"
	// OursWithdrawn and TheirsWithdrawn: one side went back to what both wanted before.
	OursWithdrawn   Outcome = "ours_withdrawn"
	TheirsWithdrawn Outcome = "theirs_withdrawn"
	// Settled: both agree, and it is unknown who was first, because they differed when comparing began; or the group
	// is gone.
	Settled Outcome = "settled"
)

// Difference is a time in which the two sides wanted different numbers of pods of a group.
type Difference struct {
	Group string
	// At is when it began; Until is when it ended, zero while it lasts.
	At, Until time.Time
	// Ours and Theirs are what each side last wanted before both agreed.
	Ours, Theirs int
	Outcome      Outcome
	// Lead is how much earlier than the other side Heliostat wanted the final number; negative if it was later. It is
	// set with OursFirst and TheirsFirst alone.
	Lead time.Duration
	// Reason is ours, as of when Heliostat began to want Ours, or else as of when they began to differ. Later, when
	// the pods of the other side are seen before its replicas, no pod more is needed. Writer is theirs, as of the last
	// time they differed.
	Reason planner.Reason
	Writer string
}

// comparison is the state of one RayCluster.
type comparison struct {
	uid    string
	report Comparison
	sides  map[string]*sides
	last   time.Time // time of the last decision that was compared; zero after one that was not
	agreed bool      // whether that decision agreed
}

// sides are what both sides want of one group, since when, and the current difference.
type sides struct {
	ours, theirs side
	// base is what both sides wanted when they last agreed; negative before that.
	base int
	open *Difference
	// openGoal is our last goal in open.
	openGoal side
	// withdrawn is the latest difference that ended because our goal went back, with the goal we had in it.
	withdrawn     *Difference
	withdrawnGoal side
}

// side is what one side wants.
type side struct {
	pods int
	// since is when it began to want that; seen says that the change was observed.
	since time.Time
	seen  bool
}

func (s *side) want(pods int, now time.Time, first bool) {
	if first || pods != s.pods {
		*s = side{pods: pods, since: now, seen: !first}
	}
}

// Observe adds one decision. A decision about a RayCluster that is managed or off ends its comparison. One without
// Ray's state does not show what would be decided, so its time does not count.
func (s *Shadow) Observe(d *decision.Decision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clusters[d.Cluster]
	switch {
	case d.Mode != nodepool.Shadow:
		delete(s.clusters, d.Cluster)
		return
	case d.ObserveFailed || d.RayErr != "":
		if c != nil {
			c.last = time.Time{}
		}
		return
	}
	if c == nil || c.uid != d.UID {
		c = &comparison{uid: d.UID, report: Comparison{Since: d.At}, sides: map[string]*sides{}}
		s.clusters[d.Cluster] = c
	}
	c.observe(d)
}

// Forget drops a RayCluster that is gone.
func (s *Shadow) Forget(key nodepool.ClusterKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clusters, key)
}

// Comparison returns the comparison of a RayCluster; false if there is none.
func (s *Shadow) Comparison(key nodepool.ClusterKey) (Comparison, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clusters[key]
	if c == nil {
		return Comparison{}, false
	}
	report := c.report
	report.Groups = slices.Clone(report.Groups)
	report.Differences = slices.Clone(report.Differences)
	slices.Reverse(report.Differences)
	for _, name := range slices.Sorted(maps.Keys(c.sides)) {
		if open := c.sides[name].open; open != nil {
			report.Differences = slices.Insert(report.Differences, 0, *open)
		}
	}
	return report, true
}

func (c *comparison) observe(d *decision.Decision) {
	if !c.last.IsZero() {
		passed := d.At.Sub(c.last)
		c.report.Compared += passed
		if c.agreed {
			c.report.Agreed += passed
		}
	}
	c.last, c.agreed = d.At, true
	c.report.Writer, c.report.Groups = d.Kube.ScaledBy, nil
	seen := map[string]bool{}
	for _, plan := range d.Plan.Groups {
		group, known := d.Kube.Group(plan.Name)
		if !known {
			continue
		}
		seen[plan.Name] = true
		row := ComparedGroup{Name: plan.Name, Ours: plan.Desired, Theirs: group.Goal() * group.NumOfHosts}
		if len(plan.Reasons) > 0 {
			row.Reason = plan.Reasons[0]
		}
		c.report.Groups = append(c.report.Groups, row)
		c.agreed = c.agreed && row.Ours == row.Theirs
		c.compare(row, d.At)
	}
	for name, s := range c.sides {
		if !seen[name] {
			c.end(s, d.At, Settled)
			delete(c.sides, name)
		}
	}
}

// compare adds what both sides want of one group now.
func (c *comparison) compare(row ComparedGroup, now time.Time) {
	s := c.sides[row.Name]
	first := s == nil
	if first {
		s = &sides{base: -1}
		c.sides[row.Name] = s
	}
	ours := s.ours
	s.ours.want(row.Ours, now, first)
	s.theirs.want(row.Theirs, now, first)
	if row.Ours == row.Theirs {
		c.end(s, now, s.outcome(s.ours != ours))
		s.base = row.Ours
		c.follow(s, now)
		return
	}
	s.openGoal = s.ours
	if s.open == nil {
		s.withdrawn = nil
		s.open = &Difference{Group: row.Name, At: now, Outcome: StillDiffers, Reason: row.Reason}
	}
	if s.ours != ours {
		s.open.Reason = row.Reason
	}
	s.open.Ours, s.open.Theirs, s.open.Writer = row.Ours, row.Theirs, c.report.Writer
}

// outcome returns how the two sides came to agree; oursMoved says that our change ended the difference.
func (s *sides) outcome(oursMoved bool) Outcome {
	switch {
	case s.ours.pods == s.base && oursMoved:
		return OursWithdrawn
	case s.ours.pods == s.base:
		return TheirsWithdrawn
	case !s.ours.seen || !s.theirs.seen:
		return Settled
	case s.ours.since.Before(s.theirs.since):
		return OursFirst
	case s.theirs.since.Before(s.ours.since):
		return TheirsFirst
	}
	return Settled
}

// follow turns a goal that we withdrew into one that the other side followed, once it does.
func (c *comparison) follow(s *sides, now time.Time) {
	if s.withdrawn == nil || !s.theirs.since.Equal(now) || !s.withdrawnGoal.seen {
		return
	}
	withdrawn, goal := *s.withdrawn, s.withdrawnGoal
	s.withdrawn = nil
	if s.theirs.pods != goal.pods || now.Sub(withdrawn.Until) > shadowFollow {
		return
	}
	for i := range slices.Backward(c.report.Differences) {
		if d := &c.report.Differences[i]; d.Group == withdrawn.Group && d.At.Equal(withdrawn.At) {
			d.Until, d.Outcome, d.Lead = now, OursFirst, now.Sub(goal.since)
			return
		}
	}
}

// end closes the current difference, if there is one.
func (c *comparison) end(s *sides, now time.Time, outcome Outcome) {
	if s.open == nil {
		return
	}
	ended := *s.open
	s.open = nil
	ended.Until, ended.Outcome = now, outcome
	if outcome == OursFirst || outcome == TheirsFirst {
		ended.Lead = s.theirs.since.Sub(s.ours.since)
	}
	c.report.Differences = append(c.report.Differences, ended)
	if outcome == OursWithdrawn {
		s.withdrawn, s.withdrawnGoal = &ended, s.openGoal
	}
	if over := len(c.report.Differences) - shadowDifferences; over > 0 {
		c.report.Differences = slices.Delete(c.report.Differences, 0, over)
	}
}
