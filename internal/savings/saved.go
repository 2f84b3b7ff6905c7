package savings

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// version is that of saved.
const version = 1

// saved is the record of one RayCluster in the form in which it outlives a process.
type saved struct {
	Version int          `json:"v"`
	Groups  []savedGroup `json:"g"`
}

type savedGroup struct {
	Name    string   `json:"n"`
	Buckets []Bucket `json:"b"`
}

// Save returns the record of a RayCluster as JSON; nil if there is none. Coarse joins all days of a group.
func (h *History) Save(key nodepool.ClusterKey, now time.Time, coarse bool) json.RawMessage {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.clusters[key]
	if c == nil {
		return nil
	}
	s := saved{Version: version}
	for _, g := range c.groups {
		g.buckets = aged(g.buckets, now.Unix())
		var buckets []Bucket
		for _, b := range g.buckets {
			if n := len(buckets); coarse && n > 0 {
				buckets[n-1] = buckets[n-1].Plus(b)
				continue
			}
			buckets = append(buckets, b.clone())
		}
		for i := range buckets {
			buckets[i].round()
		}
		if len(buckets) > 0 {
			s.Groups = append(s.Groups, savedGroup{g.name, buckets})
		}
	}
	if len(s.Groups) == 0 {
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil // not a number; it begins anew
	}
	return text
}

// round keeps what matters: tenths of a second, and hundred thousandths of money.
func (b *Bucket) round() {
	b.Observed = b.Observed.rounded()
	for i := range b.Use {
		b.Use[i] = b.Use[i].rounded()
	}
	for i := range b.Timeouts {
		t := &b.Timeouts[i]
		t.Saved, t.Added = t.Saved.rounded(), t.Added.rounded()
	}
	for _, levels := range [][]Level{b.Reserve, b.Warm} {
		for i := range levels {
			levels[i].Saved = levels[i].Saved.rounded()
		}
	}
	for _, n := range []*float64{&b.StartSeconds, &b.StartPaidSeconds, &b.LeavingSeconds} {
		*n = math.Round(*n*10) / 10
	}
}

func (s Sum) rounded() Sum {
	for i, precision := range [...]float64{10, 10, 1e5, 10} {
		s[i] = math.Round(s[i]*precision) / precision
	}
	return s
}

// Restore adds what an earlier process has saved of a RayCluster.
func (h *History) Restore(key nodepool.ClusterKey, text json.RawMessage) error {
	var s saved
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("reading what was recorded for savings: %w", err)
	}
	if s.Version != version {
		return fmt.Errorf("reading what was recorded for savings: version %d: want %d", s.Version, version)
	}
	for _, g := range s.Groups {
		for _, b := range g.Buckets {
			if err := b.check(); err != nil {
				return fmt.Errorf("reading what was recorded for savings: group %s: %w", g.Name, err)
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.clusters[key]
	if c == nil {
		c = &cluster{}
		h.clusters[key] = c
	}
	for _, from := range s.Groups {
		to := c.group(from.Name)
		if to == nil {
			to = &group{name: from.Name}
			c.groups = append(c.groups, to)
		}
		to.buckets = append(to.buckets, from.Buckets...)
		slices.SortFunc(to.buckets, func(a, b Bucket) int { return int(a.From - b.From) })
	}
	slices.SortFunc(c.groups, func(a, b *group) int { return strings.Compare(a.name, b.name) })
	return nil
}

// check returns why a bucket cannot be restored, or nil.
func (b *Bucket) check() error {
	if b.From < 0 || b.Until < b.From {
		return fmt.Errorf("from %d until %d: want two times in order", b.From, b.Until)
	}
	for what, list := range map[string][2]int{"i": {len(b.Timeouts), len(Timeouts)}, "m": {len(b.Reserve), len(Levels)},
		"w": {len(b.Warm), len(Levels)}} {
		if list[0] != 0 && list[0] != list[1] {
			return fmt.Errorf("%s has %d entries: want none or %d", what, list[0], list[1])
		}
	}
	for _, n := range b.Observed {
		if n < 0 {
			return fmt.Errorf("o: %v: want numbers from 0 on", n)
		}
	}
	return nil
}
