package ledger

import (
	"cmp"
	"slices"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// Row is what one account of one RayCluster spent.
type Row struct {
	Cluster nodepool.ClusterKey
	Account
	Amount
}

// Since returns since when the ledger counts: when the first RayCluster was observed, and now if there was none.
func (l *Ledger) Since(now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since.IsZero() {
		return now
	}
	return l.since
}

// Rows returns what was spent until now, sorted by RayCluster and account. It counts what the pods of the last
// observation add until now.
func (l *Ledger) Rows(now time.Time) []Row {
	l.mu.Lock()
	defer l.mu.Unlock()
	var rows []Row
	for key, c := range l.clusters {
		for i := range c.lines {
			rows = append(rows, Row{key, c.lines[i].Account, c.lines[i].Amount})
		}
		passed := seconds(c.at, now)
		if passed > Horizon.Seconds() {
			continue
		}
		for _, r := range c.rates {
			if a := r.times(passed); a != (Amount{}) {
				rows = append(rows, Row{key, r.Account, a})
			}
		}
	}
	return Joined(rows)
}

// Counters returns what a RayCluster had spent at its last observation, without Why. No row ever falls.
func (l *Ledger) Counters(key nodepool.ClusterKey) []Row {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.clusters[key]
	if c == nil {
		return nil
	}
	rows := make([]Row, 0, len(c.lines))
	for i := range c.lines {
		row := Row{key, c.lines[i].Account, c.lines[i].Amount}
		row.Why = ""
		rows = append(rows, row)
	}
	return Joined(rows)
}

// Joined adds up rows of equal RayClusters and accounts, and sorts them.
func Joined(rows []Row) []Row {
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(a.Cluster.Compare(b.Cluster), a.compare(b.Account))
	})
	joined := rows[:0]
	for _, r := range rows {
		if n := len(joined); n > 0 && joined[n-1].Cluster == r.Cluster && joined[n-1].Account == r.Account {
			joined[n-1].Amount = joined[n-1].Plus(r.Amount)
			continue
		}
		joined = append(joined, r)
	}
	return joined
}

func (a Account) compare(b Account) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Owner, b.Owner),
		cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Why, b.Why))
}

// Idle returns how long parts of a RayCluster have been idle, and what that has cost until now.
func (l *Ledger) Idle(key nodepool.ClusterKey, now time.Time) Streak {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.clusters[key]
	if c == nil || seconds(c.at, now) > Horizon.Seconds() {
		return Streak{}
	}
	s := c.streak
	if !s.Since.IsZero() {
		s.Money += s.Hourly * seconds(c.at, now) / time.Hour.Seconds()
	}
	return s
}

// Streak is how long GPUs of a RayCluster have been idle without a break, or its pods if it has no GPUs.
type Streak struct {
	// Since is when the first of them became idle; zero if none is idle now.
	Since time.Time
	// Money is what idle parts have cost since then.
	Money float64
	// GPUs and Pods are idle now, AllGPUs and AllPods are all that there are.
	GPUs, Pods, AllGPUs, AllPods float64
	// Hourly is what the idle parts cost per hour now.
	Hourly float64
	// Group, Why and Owner are those of the largest idle part.
	Group, Why, Owner string
}

// observe continues the streak with the rates of an observation at a moment, the last one having been at another, or
// begins a new one. Time without observations ends it.
func (s *Streak) observe(rates []rate, before, now time.Time, unseen bool) {
	last := *s
	*s = Streak{}
	var largest float64
	for i := range rates {
		r := &rates[i]
		if r.Cause == Head {
			continue
		}
		s.AllGPUs += r.GPUSeconds
		s.AllPods += r.PodSeconds
		if r.Cause != Idle {
			continue
		}
		s.GPUs += r.GPUSeconds
		s.Pods += r.PodSeconds
		s.Hourly += r.Money * time.Hour.Seconds()
		if size := r.GPUSeconds + r.PodSeconds/1024; size > largest { // pods decide among those without GPUs
			largest, s.Group, s.Why, s.Owner = size, r.Group, r.Why, r.Owner
		}
	}
	if s.Pods == 0 || s.AllGPUs > 0 && s.GPUs == 0 {
		*s = Streak{AllGPUs: s.AllGPUs, AllPods: s.AllPods}
		return
	}
	s.Since = now
	if !last.Since.IsZero() && !unseen {
		s.Since = last.Since
		s.Money = last.Money + last.Hourly*seconds(before, now)/time.Hour.Seconds()
	}
}
