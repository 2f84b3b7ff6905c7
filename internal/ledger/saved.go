package ledger

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// Saved is what is known of one RayCluster, in the form in which it outlives a process. Its JSON is stored.
type Saved struct {
	// Version is the version of the form.
	Version int `json:"v"`
	// Began is since when the ledger adds up, Until is until when this RayCluster's amounts are complete, Gone when it
	// was found deleted: seconds since 1970, 0 for never.
	Began int64   `json:"began"`
	Until float64 `json:"until"`
	Gone  int64   `json:"gone,omitempty"`
	Lines []Line  `json:"lines"`
	// Nodes is what nodes without pods have cost; nil for nothing.
	Nodes *Line `json:"nodes,omitempty"`
}

// Line is one account over time.
type Line struct {
	Group string `json:"g"`
	Owner string `json:"o"`
	Job   string `json:"j,omitempty"`
	Cause Cause  `json:"c"`
	Why   string `json:"w,omitempty"`
	// Buckets are the times between which amounts were spent, and pod-seconds, GPU-seconds, money and pod-seconds
	// without a price.
	Buckets [][6]float64 `json:"b"`
}

// saved returns the buckets in the form that is stored. It keeps what matters: tenths of a second, and hundred
// thousandths of money.
func (l *line) saved() Line {
	s := Line{Group: l.Group, Owner: l.Owner, Job: l.Job, Cause: l.Cause, Why: l.Why}
	for _, b := range l.buckets {
		s.Buckets = append(s.Buckets, [6]float64{rounded(float64(b.from), 10), rounded(float64(b.until), 10),
			rounded(b.PodSeconds, 10), rounded(b.GPUSeconds, 10), rounded(b.Money, 1e5),
			rounded(b.UnpricedPodSeconds, 10)})
	}
	return s
}

func rounded(x, precision float64) float64 { return math.Round(x*precision) / precision }

// restored reads what saved returned.
func (s *Line) restored() line {
	l := line{Account: Account{s.Group, s.Owner, s.Job, s.Cause, s.Why}}
	for _, b := range s.Buckets {
		l.buckets = append(l.buckets, bucket{second(b[0]), second(max(b[0], b[1])), Amount{b[2], b[3], b[4], b[5]}})
	}
	return l
}

// version is that of Saved.
const version = 1

// Waiting returns the RayClusters for which Restore must be called, sorted.
func (l *Ledger) Waiting() []nodepool.ClusterKey {
	l.mu.Lock()
	defer l.mu.Unlock()
	var keys []nodepool.ClusterKey
	for key, c := range l.clusters {
		if !c.restored {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, nodepool.ClusterKey.Compare)
	return keys
}

// Unseen returns the RayClusters that were restored, and that this process has never observed.
func (l *Ledger) Unseen() (keys []nodepool.ClusterKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, c := range l.clusters {
		if !c.seen {
			keys = append(keys, key)
		}
	}
	return keys
}

// Restore adds what an earlier process has saved of a RayCluster; nil if it saved nothing. Observations count from then
// on. The time from the last saved moment until the next observation counts as Unobserved. A second call for the same
// RayCluster does nothing. What is restored is not a change: it is saved already.
func (l *Ledger) Restore(key nodepool.ClusterKey, saved *Saved) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.clusters[key]
	if c == nil {
		if saved == nil {
			return
		}
		c = &account{totals: map[Cause]Amount{}}
		l.clusters[key] = c
	}
	if c.restored {
		return
	}
	c.restored = true
	if saved == nil {
		c.fresh, c.at = true, l.began
		return
	}
	if began := time.Unix(saved.Began, 0); began.Before(l.began) {
		l.began = began
	}
	c.continued, c.at = true, second(saved.Until).time()
	if saved.Gone > 0 {
		c.gone = time.Unix(saved.Gone, 0)
	}
	for i := range saved.Lines {
		restored := saved.Lines[i].restored()
		c.line(restored.Account, l.limits.Accounts).absorb(&restored)
	}
	if saved.Nodes != nil {
		c.nodes = saved.Nodes.restored()
	}
}

// Check returns why what was read cannot be restored, or nil.
func (s *Saved) Check() error {
	if s.Version != version {
		return fmt.Errorf("version %d: want %d", s.Version, version)
	}
	for i, line := range s.Lines {
		if !line.Cause.Valid() {
			return fmt.Errorf("lines[%d].c: unknown cause %q", i, line.Cause)
		}
		if err := line.check(); err != nil {
			return fmt.Errorf("lines[%d].%w", i, err)
		}
	}
	if s.Nodes != nil {
		if err := s.Nodes.check(); err != nil {
			return fmt.Errorf("nodes.%w", err)
		}
	}
	if s.Until < 0 || math.IsNaN(s.Until) {
		return errors.New("until: want a time")
	}
	return nil
}

func (s *Line) check() error {
	for _, b := range s.Buckets {
		for _, n := range b {
			if math.IsNaN(n) || math.IsInf(n, 0) || n < 0 {
				return fmt.Errorf("b: %v: want numbers from 0 on", n)
			}
		}
	}
	return nil
}

// Changed returns the RayClusters that changed after a change number, sorted, and the number of the last change.
func (l *Ledger) Changed(after int64) (keys []nodepool.ClusterKey, last int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, c := range l.clusters {
		if c.restored && c.changed > after {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, nodepool.ClusterKey.Compare)
	return keys, l.changes
}

// Save returns what is known of a RayCluster, without buckets that are too old; nil if there is nothing to save. What
// its pods add after the last observation is not part of it.
func (l *Ledger) Save(key nodepool.ClusterKey, now time.Time) *Saved {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.clusters[key]
	if c == nil || !c.restored {
		return nil
	}
	saved := &Saved{Version: version, Began: l.began.Unix(), Until: float64(c.at.UnixMilli()) / 1000}
	if !c.gone.IsZero() {
		saved.Gone = c.gone.Unix()
	}
	c.age(now, l.limits)
	for i := range c.lines {
		saved.Lines = append(saved.Lines, c.lines[i].saved())
	}
	if len(c.nodes.buckets) > 0 {
		saved.Nodes = new(c.nodes.saved())
	}
	if len(saved.Lines) == 0 && !c.gone.IsZero() {
		return nil
	}
	return saved
}

// age joins old buckets, and drops those that are too old.
func (c *account) age(now time.Time, limits Limits) {
	for i := range c.lines {
		c.lines[i].age(secondOf(now), limits)
	}
	c.nodes.age(secondOf(now), ofNodes)
	c.lines = slices.DeleteFunc(c.lines, func(l line) bool { return len(l.buckets) == 0 })
}

// Expire drops what is too old, and RayClusters that have ended and of which nothing is kept any more. It returns
// these, and those that were added up in Other since the last call, sorted: what was saved of them counts no more.
func (l *Ledger) Expire(now time.Time) (dropped []nodepool.ClusterKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, c := range l.clusters {
		c.age(now, l.limits)
		if len(c.lines) == 0 && !l.ended(c, now).IsZero() {
			delete(l.clusters, key)
			dropped = append(dropped, key)
		}
	}
	l.left = 0
	l.makeRoom(now)
	for _, key := range l.absorbed {
		if l.clusters[key] == nil { // it has not come back
			dropped = append(dropped, key)
		}
	}
	l.absorbed = nil
	slices.SortFunc(dropped, nodepool.ClusterKey.Compare)
	return dropped
}

// Coarser returns a copy that takes less room, with the same sums: buckets of six hours, then of days, of weeks, and at
// last one bucket, and then one line for each cause. It returns false if nothing can be joined any more.
func (s *Saved) Coarser() (*Saved, bool) {
	coarse := *s
	for _, length := range []second{6 * hour, day, week, 1e12} {
		coarse.Lines = nil
		smaller := false
		for i := range s.Lines {
			l := s.Lines[i].restored()
			l.buckets = joined(l.buckets, func(a, b bucket) bool { return a.from.in(length) == b.from.in(length) })
			smaller = smaller || len(l.buckets) < len(s.Lines[i].Buckets)
			coarse.Lines = append(coarse.Lines, l.saved())
		}
		if smaller {
			return &coarse, true
		}
	}
	coarse.Lines = nil
	for _, cause := range Causes() {
		sum := line{Account: Account{Group: Other, Owner: Other, Cause: cause}}
		for i := range s.Lines {
			if s.Lines[i].Cause == cause {
				more := s.Lines[i].restored()
				sum.absorb(&more)
			}
		}
		if len(sum.buckets) > 0 {
			coarse.Lines = append(coarse.Lines, sum.saved())
		}
	}
	return &coarse, len(coarse.Lines) < len(s.Lines)
}
