package savings

import (
	"math"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Sum is pod-seconds, GPU-seconds, money, and pod-seconds without a price.
type Sum [4]float64

func sumOf(a ledger.Amount) Sum {
	return Sum{a.PodSeconds, a.GPUSeconds, a.Money, a.UnpricedPodSeconds}
}

// PodSeconds are the seconds of pods, as in a ledger.
func (s Sum) PodSeconds() float64 { return s[0] }

// GPUSeconds are of GPUs as Ray counts them.
func (s Sum) GPUSeconds() float64 { return s[1] }

// Money is in the currency of the prices.
func (s Sum) Money() float64 { return s[2] }

// UnpricedPodSeconds are those that Money lacks.
func (s Sum) UnpricedPodSeconds() float64 { return s[3] }

// Plus returns the sum of both.
func (s Sum) Plus(t Sum) Sum { return Sum{s[0] + t[0], s[1] + t[1], s[2] + t[2], s[3] + t[3]} }

// Minus returns the difference.
func (s Sum) Minus(t Sum) Sum { return s.Plus(t.times(-1)) }

func (s Sum) times(factor float64) Sum {
	return Sum{s[0] * factor, s[1] * factor, s[2] * factor, s[3] * factor}
}

// Eighths is into how many parts the use of a worker is divided.
const Eighths = 8

// All is a level beyond any number of workers.
const All = math.MaxInt32

// Levels are by how many workers a minimum or warm capacity is lowered in the replay.
var Levels = [...]int{1, 2, 4, 8, 16, 32, 64, All}

// Bucket is what was recorded of a worker group over a time. Its JSON is stored.
type Bucket struct {
	// From and Until are seconds since 1970.
	From  int64 `json:"f"`
	Until int64 `json:"t"`
	// Observed is what all its pods have cost.
	Observed Sum `json:"o"`
	// Use is what workers cost while work held a part of them, by how many eighths it held.
	Use [Eighths + 1]Sum `json:"u,omitzero"`
	// Starts is how many workers joined Ray that were seen to be created. StartSeconds is how long that took them
	// together from their creation, and StartPaidSeconds from when they got their node.
	Starts           float64 `json:"s,omitzero"`
	StartSeconds     float64 `json:"sw,omitzero"`
	StartPaidSeconds float64 `json:"sp,omitzero"`
	// Leaves is how many workers left after they had joined, and LeavingSeconds how long that took them together.
	Leaves         float64 `json:"l,omitzero"`
	LeavingSeconds float64 `json:"ls,omitzero"`
	// Timeouts are the replays of each of Timeouts; nil if no worker was idle for that long.
	Timeouts []Timeout `json:"i,omitempty"`
	// Reserve and Warm are the replays of each of Levels: of the minimum, and of warm capacity; nil if there was none.
	Reserve []Level `json:"m,omitempty"`
	Warm    []Level `json:"w,omitempty"`
}

// Timeout is what would have been different under another idle timeout.
type Timeout struct {
	// Saved is what workers cost after they would have been removed, and Starts is how many of them got work later, so
	// that another one would have had to start.
	Saved  Sum     `json:"s,omitzero"`
	Starts float64 `json:"n,omitzero"`
	// Added is what workers would have cost that were removed and would have stayed, and Spared is how many starts of
	// others they would have spared.
	Added  Sum     `json:"a,omitzero"`
	Spared float64 `json:"x,omitzero"`
}

// Level is what would have been different with fewer idle workers.
type Level struct {
	// Saved is what the workers cost that would not have been kept, and Starts is how many of them got work.
	Saved  Sum     `json:"s,omitzero"`
	Starts float64 `json:"n,omitzero"`
}

const day = 24 * 60 * 60

// bucket returns the bucket of a moment's day.
func (g *group) bucket(at time.Time) *Bucket {
	second := at.Unix()
	if n := len(g.buckets); n > 0 && g.buckets[n-1].From/day == second/day {
		b := &g.buckets[n-1]
		b.Until = max(b.Until, second)
		return b
	}
	g.buckets = append(g.buckets, Bucket{From: second, Until: second})
	g.buckets = aged(g.buckets, second)
	return &g.buckets[len(g.buckets)-1]
}

// days is for how long buckets of one day are kept. Older ones are joined to weeks.
const days = 7

// aged joins the buckets that are older than a week, and drops those that are too old.
func aged(buckets []Bucket, now int64) []Bucket {
	oldest := now - int64(ledger.Retention.Seconds())
	kept := buckets[:0]
	for _, b := range buckets {
		n := len(kept)
		switch {
		case b.Until < oldest:
		case n > 0 && b.Until < now-days*day && kept[n-1].From/(7*day) == b.From/(7*day):
			kept[n-1] = kept[n-1].Plus(b)
		default:
			kept = append(kept, b)
		}
	}
	return kept
}

func (b *Bucket) timeout(i int) *Timeout {
	if b.Timeouts == nil {
		b.Timeouts = make([]Timeout, len(Timeouts))
	}
	return &b.Timeouts[i]
}

func (b *Bucket) level(i int, warm bool) *Level {
	of := &b.Reserve
	if warm {
		of = &b.Warm
	}
	if *of == nil {
		*of = make([]Level, len(Levels))
	}
	return &(*of)[i]
}

// Plus returns the sum of both, which covers the time of both.
func (b Bucket) Plus(c Bucket) Bucket {
	switch {
	case b.From == 0 && b.Until == 0:
		return c.clone()
	case c.From == 0 && c.Until == 0:
		return b.clone()
	}
	sum := b.clone()
	sum.From, sum.Until = min(b.From, c.From), max(b.Until, c.Until)
	sum.Observed = b.Observed.Plus(c.Observed)
	for i := range sum.Use {
		sum.Use[i] = b.Use[i].Plus(c.Use[i])
	}
	sum.Starts += c.Starts
	sum.StartSeconds += c.StartSeconds
	sum.StartPaidSeconds += c.StartPaidSeconds
	sum.Leaves += c.Leaves
	sum.LeavingSeconds += c.LeavingSeconds
	for i, t := range c.Timeouts {
		to := sum.timeout(i)
		*to = Timeout{to.Saved.Plus(t.Saved), to.Starts + t.Starts, to.Added.Plus(t.Added), to.Spared + t.Spared}
	}
	for i, l := range c.Reserve {
		to := sum.level(i, false)
		*to = Level{to.Saved.Plus(l.Saved), to.Starts + l.Starts}
	}
	for i, l := range c.Warm {
		to := sum.level(i, true)
		*to = Level{to.Saved.Plus(l.Saved), to.Starts + l.Starts}
	}
	return sum
}

func (b Bucket) clone() Bucket {
	b.Timeouts, b.Reserve, b.Warm = slices.Clone(b.Timeouts), slices.Clone(b.Reserve), slices.Clone(b.Warm)
	return b
}

// Record is what was recorded of one worker group.
type Record struct {
	Cluster nodepool.ClusterKey
	Group   string
	Bucket
}

// Since returns the sums of the groups of a RayCluster over the days from a moment on.
func (h *History) Since(key nodepool.ClusterKey, from time.Time) []Record {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.clusters[key]
	if c == nil {
		return nil
	}
	var records []Record
	for _, g := range c.groups {
		var sum Bucket
		for _, b := range g.buckets {
			if b.Until >= from.Unix() {
				sum = sum.Plus(b)
			}
		}
		if sum.Observed != (Sum{}) {
			records = append(records, Record{key, g.name, sum})
		}
	}
	return records
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
