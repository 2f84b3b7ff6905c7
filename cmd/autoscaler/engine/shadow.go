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
	// open are the differences that last, by group, and differences the latest ones that ended, oldest first. The
	// numbers of one are what each side last wanted before both agreed. Its reason is ours, as of when Heliostat began
	// to want its number: later, when the pods of the other side are seen before its replicas, no pod more is needed.
	// Its writer is theirs, as of the last time they differed. Where Ray's own autoscaler drains a worker and lowers
	// replicas in a later round (docs/reference/facts.md#ray-lowers-replicas-late), one ends at the old number.
	open        map[string]*apiv1.ShadowDifference
	differences []apiv1.ShadowDifference
	last        time.Time // time of the last decision that was compared; zero after one that was not
	agreed      bool      // whether that decision agreed
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
		c = &comparison{uid: d.UID, since: d.At.UTC(), open: map[string]*apiv1.ShadowDifference{}}
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
	for _, name := range slices.Sorted(maps.Keys(c.open)) {
		answer.Differences = slices.Insert(answer.Differences, 0, *c.open[name])
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
	for name := range c.open {
		if !seen[name] {
			c.end(name, d.At, nil)
		}
	}
}

// compare adds what both sides want of one group now.
func (c *comparison) compare(row apiv1.ShadowGroup, now time.Time) {
	if row.Ours == row.Theirs {
		c.end(row.Name, now, &row.Ours)
		return
	}
	open := c.open[row.Name]
	switch {
	case open == nil:
		open = &apiv1.ShadowDifference{Group: row.Name, At: now.UTC(), Reason: row.Reason}
		c.open[row.Name] = open
	case row.Ours != open.Ours:
		open.Reason = row.Reason
	}
	open.Ours, open.Theirs, open.Writer = row.Ours, row.Theirs, c.writer
}

// end closes the difference of a group, if there is one. agreed is what both sides want now; nil if the group is gone.
func (c *comparison) end(group string, now time.Time, agreed *int) {
	open := c.open[group]
	if open == nil {
		return
	}
	delete(c.open, group)
	open.Until, open.Agreed = apiv1.Time(now), agreed
	c.differences = append(c.differences, *open)
	if over := len(c.differences) - shadowDifferences; over > 0 {
		c.differences = slices.Delete(c.differences, 0, over)
	}
}
