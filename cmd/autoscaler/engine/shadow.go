package engine

import (
	"maps"
	"slices"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api/apiv1"
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

// comparison compares ours, Heliostat's goals, with theirs, the other autoscaler's, for one RayCluster. All counts are
// pods.
type comparison struct {
	uid string
	// since is when comparing began; compared is for how long both sides were known since then, agreedFor for how long
	// of that all groups were equal.
	since               time.Time
	compared, agreedFor time.Duration
	// writer is the field manager that last wrote the worker groups; empty if unknown.
	writer string
	// groups are what both sides want now, with our reasons.
	groups []apiv1.ShadowGroup
	// differences are the latest ones that ended, oldest first. The outcome of one is settled if both agree, and it is
	// unknown who was first, because they differed when comparing began, or if the group is gone. Its numbers are what
	// each side last wanted before both agreed. Its reason is ours, as of when Heliostat began to want its number, or
	// else as of when they began to differ: later, when the pods of the other side are seen before its replicas, no pod
	// more is needed. Its writer is theirs, as of the last time they differed.
	differences []apiv1.ShadowDifference
	sides       map[string]*sides
	last        time.Time // time of the last decision that was compared; zero after one that was not
	agreed      bool      // whether that decision agreed
}

// sides are what both sides want of one group, since when, and the current difference.
type sides struct {
	ours, theirs side
	// base is what both sides wanted when they last agreed; negative before that.
	base int
	open *apiv1.ShadowDifference
	// openGoal is our last goal in open.
	openGoal side
	// withdrawn is the latest difference that ended because our goal went back, with the goal we had in it.
	withdrawn     *apiv1.ShadowDifference
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
func (s *Shadow) Observe(d *addon.Decision) {
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
		c = &comparison{uid: d.UID, since: d.At.UTC(), sides: map[string]*sides{}}
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

// Comparison returns how Heliostat's plan for a RayCluster in shadow mode compares with the other writer; zero if it is
// not compared.
func (s *Shadow) Comparison(key nodepool.ClusterKey) apiv1.ShadowComparison {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clusters[key]
	if c == nil {
		return apiv1.ShadowComparison{}
	}
	since := c.since
	answer := apiv1.ShadowComparison{Writer: c.writer, Since: &since, ComparedSeconds: c.compared.Seconds(),
		Groups: slices.Clone(c.groups), Differences: slices.Clone(c.differences)}
	if c.compared > 0 {
		answer.Agreement = new(c.agreedFor.Seconds() / c.compared.Seconds())
	}
	slices.Reverse(answer.Differences)
	for _, name := range slices.Sorted(maps.Keys(c.sides)) {
		if open := c.sides[name].open; open != nil {
			answer.Differences = slices.Insert(answer.Differences, 0, *open)
		}
	}
	var leads []float64
	for _, d := range answer.Differences {
		switch d.Outcome {
		case apiv1.OursFirst:
			answer.OursFirst++
			leads = append(leads, *d.LeadSeconds)
		case apiv1.TheirsFirst:
			answer.TheirsFirst++
			leads = append(leads, *d.LeadSeconds)
		}
	}
	if len(leads) > 0 {
		slices.Sort(leads)
		answer.MedianLeadSeconds = &leads[len(leads)/2]
	}
	return answer
}

func (c *comparison) observe(d *addon.Decision) {
	if !c.last.IsZero() {
		passed := d.At.Sub(c.last)
		c.compared += passed
		if c.agreed {
			c.agreedFor += passed
		}
	}
	c.last, c.agreed = d.At, true
	c.writer, c.groups = d.Kube.ScaledBy, nil
	seen := map[string]bool{}
	for _, plan := range d.Plan.Groups {
		group, known := d.Kube.Group(plan.Name)
		if !known {
			continue
		}
		seen[plan.Name] = true
		row := apiv1.ShadowGroup{Name: plan.Name, Ours: plan.Desired, Theirs: group.Goal() * group.NumOfHosts}
		if len(plan.Reasons) > 0 {
			row.Reason = plan.Reasons[0]
		}
		c.groups = append(c.groups, row)
		c.agreed = c.agreed && row.Ours == row.Theirs
		c.compare(row, d.At)
	}
	for name, s := range c.sides {
		if !seen[name] {
			c.end(s, d.At, apiv1.Settled)
			delete(c.sides, name)
		}
	}
}

// compare adds what both sides want of one group now.
func (c *comparison) compare(row apiv1.ShadowGroup, now time.Time) {
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
		s.open = &apiv1.ShadowDifference{Group: row.Name, At: now.UTC(), Outcome: apiv1.Differs, Reason: row.Reason}
	}
	if s.ours != ours {
		s.open.Reason = row.Reason
	}
	s.open.Ours, s.open.Theirs, s.open.Writer = row.Ours, row.Theirs, c.writer
}

// outcome returns how the two sides came to agree; oursMoved says that our change ended the difference.
func (s *sides) outcome(oursMoved bool) apiv1.ShadowDifferenceOutcome {
	switch {
	case s.ours.pods == s.base && oursMoved:
		return apiv1.OursWithdrawn
	case s.ours.pods == s.base:
		return apiv1.TheirsWithdrawn
	case !s.ours.seen || !s.theirs.seen:
		return apiv1.Settled
	case s.ours.since.Before(s.theirs.since):
		return apiv1.OursFirst
	case s.theirs.since.Before(s.ours.since):
		return apiv1.TheirsFirst
	}
	return apiv1.Settled
}

// follow turns a goal that we withdrew into one that the other side followed, once it does.
func (c *comparison) follow(s *sides, now time.Time) {
	if s.withdrawn == nil || !s.theirs.since.Equal(now) || !s.withdrawnGoal.seen {
		return
	}
	withdrawn, goal := *s.withdrawn, s.withdrawnGoal
	s.withdrawn = nil
	if s.theirs.pods != goal.pods || now.Sub(*withdrawn.Until) > shadowFollow {
		return
	}
	for i := range slices.Backward(c.differences) {
		if d := &c.differences[i]; d.Group == withdrawn.Group && d.At.Equal(withdrawn.At) {
			d.Until, d.Outcome, d.LeadSeconds = apiv1.Time(now), apiv1.OursFirst, new(now.Sub(goal.since).Seconds())
			return
		}
	}
}

// end closes the current difference, if there is one.
func (c *comparison) end(s *sides, now time.Time, outcome apiv1.ShadowDifferenceOutcome) {
	if s.open == nil {
		return
	}
	ended := *s.open
	s.open = nil
	ended.Until, ended.Outcome = apiv1.Time(now), outcome
	if outcome == apiv1.OursFirst || outcome == apiv1.TheirsFirst {
		ended.LeadSeconds = new(s.theirs.since.Sub(s.ours.since).Seconds())
	}
	c.differences = append(c.differences, ended)
	if outcome == apiv1.OursWithdrawn {
		s.withdrawn, s.withdrawnGoal = &ended, s.openGoal
	}
	if over := len(c.differences) - shadowDifferences; over > 0 {
		c.differences = slices.Delete(c.differences, 0, over)
	}
}
