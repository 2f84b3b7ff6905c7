package history

import (
	"maps"
	"slices"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// shadowFollow is how long somebody else may take to do what Heliostat had wanted, and no longer shows, for it to count as
// the same wish. Ray's own autoscaler drains a worker, and lowers replicas in a later round
// (docs/reference/facts.md#ray-lowers-replicas-late); between the two ours goes back.
const shadowFollow = 30 * time.Second

// shadowDifferences bounds the differences that are remembered of one RayCluster.
const shadowDifferences = 100

// Shadow compares, for every RayCluster that is only looked at, what Heliostat would have with what somebody else writes.
// It knows nothing of before its start. Its methods may be called at any time.
type Shadow struct {
	mu       sync.Mutex // guards clusters and all in it
	clusters map[nodepool.ClusterKey]*comparison
}

// NewShadow returns a Shadow that has compared nothing yet.
func NewShadow() *Shadow { return &Shadow{clusters: map[nodepool.ClusterKey]*comparison{}} }

// Comparison is how ours and theirs went for one RayCluster. All counts are pods.
type Comparison struct {
	// Since is when comparing began; Compared is how long both sides were known after that, Agreed how much of it all groups
	// were the same.
	Since            time.Time
	Compared, Agreed time.Duration
	// Writer is who last wrote the worker groups, by the field manager's name; empty where that is not known.
	Writer string
	Groups []ComparedGroup
	// Differences are the latest, newest first.
	Differences []Difference
}

// ComparedGroup is one worker group as both sides want it now.
type ComparedGroup struct {
	Name         string
	Ours, Theirs int
	// Reason is ours.
	Reason planner.Reason
}

// Outcome says how a difference ended.
type Outcome string

const (
	// StillDiffers: it has not ended.
	StillDiffers Outcome = "differs"
	// OursFirst and TheirsFirst: one side wanted first what the other wanted later.
	OursFirst   Outcome = "ours_first"
	TheirsFirst Outcome = "theirs_first"
	// OursWithdrawn and TheirsWithdrawn: one side went back to what both had wanted before.
	OursWithdrawn   Outcome = "ours_withdrawn"
	TheirsWithdrawn Outcome = "theirs_withdrawn"
	// Settled: both agree, and who was first was not seen, because they differed when comparing began; or the group is gone.
	Settled Outcome = "settled"
)

// Difference is a time in which the two sides wanted different numbers of pods of a group.
type Difference struct {
	Group string
	// At is when it began; Until is when it ended, zero while it lasts.
	At, Until time.Time
	// Ours and Theirs are what each side wanted last before both agreed.
	Ours, Theirs int
	Outcome      Outcome
	// Lead is how much earlier than the other side Heliostat wanted what both came to; negative when it was later. It counts with
	// OursFirst and TheirsFirst alone.
	Lead time.Duration
	// Reason is ours, Writer theirs, both as last seen while they differed.
	Reason planner.Reason
	Writer string
}

// comparison is what is kept of one RayCluster.
type comparison struct {
	uid    string
	report Comparison
	sides  map[string]*sides
	last   time.Time // of the last decision that could be compared; zero after one that could not
	agreed bool      // whether that one agreed
}

// sides are what both want of one group, since when, and the difference that lasts.
type sides struct {
	ours, theirs side
	// base is what both wanted when they last agreed; negative before they ever did.
	base int
	open *Difference
	// wish is what ours wanted last in open.
	wish side
	// back is the difference that ended last by ours going back, with what was wanted in it.
	back     *Difference
	backWish side
}

// side is what one of the two wants.
type side struct {
	pods int
	// since is when it began to want that; seen says that the change was seen.
	since time.Time
	seen  bool
}

func (s *side) want(pods int, now time.Time, first bool) {
	if first || pods != s.pods {
		*s = side{pods: pods, since: now, seen: !first}
	}
}

// Observe takes one decision in. One about a RayCluster that Heliostat writes to, or leaves alone, ends its comparison; one
// without Ray's state says nothing of what would be decided, so that its time does not count.
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

// Comparison returns what was compared; false where nothing is.
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

// compare takes in what both sides want of one group now.
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
	s.wish = s.ours
	if s.open == nil {
		s.back = nil
		s.open = &Difference{Group: row.Name, At: now, Outcome: StillDiffers}
	}
	s.open.Ours, s.open.Theirs, s.open.Reason, s.open.Writer = row.Ours, row.Theirs, row.Reason, c.report.Writer
}

// outcome says how two sides came to agree; oursMoved tells whose change it was that ended the difference.
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

// follow makes of a wish that ours took back one that theirs followed, once theirs did.
func (c *comparison) follow(s *sides, now time.Time) {
	if s.back == nil || !s.theirs.since.Equal(now) || !s.backWish.seen {
		return
	}
	back, wish := *s.back, s.backWish
	s.back = nil
	if s.theirs.pods != wish.pods || now.Sub(back.Until) > shadowFollow {
		return
	}
	for i := range slices.Backward(c.report.Differences) {
		if d := &c.report.Differences[i]; d.Group == back.Group && d.At.Equal(back.At) {
			d.Until, d.Outcome, d.Lead = now, OursFirst, now.Sub(wish.since)
			return
		}
	}
}

// end closes the difference that lasts, if one does.
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
		s.back, s.backWish = &ended, s.wish
	}
	if over := len(c.report.Differences) - shadowDifferences; over > 0 {
		c.report.Differences = slices.Delete(c.report.Differences, 0, over)
	}
}
