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
			rows = append(rows, Row{key, c.lines[i].Account, c.lines[i].counted.Plus(c.lines[i].taken)})
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

// Counters returns what a RayCluster had spent at its last observation, without Why. No row ever falls. A row that
// disappears is in no other one: what it counted counts for whoever reads rows again and again.
func (l *Ledger) Counters(key nodepool.ClusterKey) []Row {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.clusters[key]
	if c == nil {
		return nil
	}
	rows := make([]Row, 0, len(c.lines))
	for i := range c.lines {
		row := Row{key, c.lines[i].Account, c.lines[i].counted}
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
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Job, b.Job),
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
