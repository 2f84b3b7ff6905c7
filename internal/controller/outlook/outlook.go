// Package outlook keeps the history of demand of each RayCluster, and forecasts from it what would be worth keeping
// ready. It only reads decisions, and must not influence them. It knows neither clocks nor where histories are stored.
package outlook

import (
	"cmp"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/forecast"
	"heliostat.dev/heliostat/pkg/nodepool"
)

const (
	// saveEvery is how often a history is stored. What was seen since then is lost when the process ends.
	saveEvery = 30 * time.Minute
	// youngest is how long a RayCluster is seen before its history is stored: those of jobs live shorter.
	youngest = time.Hour
)

// Outlook holds the histories of all RayClusters about which this process decides. Its methods are safe for concurrent
// use. A nil Outlook remembers nothing.
type Outlook struct {
	mu       sync.Mutex // guards what follows
	clusters map[nodepool.ClusterKey]*cluster
	// why says why histories are lost when the process ends; empty if they are stored.
	why string
}

// cluster is what is remembered of one RayCluster.
type cluster struct {
	history forecast.History
	// read: the stored history is part of it, or there is none.
	read bool
	// begun is when it was first seen, saveAt when the history is stored next.
	begun, saveAt time.Time
	// generated: a RayJob or a RayService gave it a name that does not come again.
	generated bool

	answering sync.Mutex // guards choices; held while mu is taken, never the other way round
	choices   map[string]choice
}

// choice is what was chosen for a group, from what, and when.
type choice struct {
	of    forecast.Group
	costs forecast.Costs
	read  bool // of the cluster, then
	until time.Time
	forecast.Choice
}

// New returns an Outlook without histories. why says why they are not stored; empty if they are.
func New(why string) *Outlook {
	return &Outlook{clusters: map[nodepool.ClusterKey]*cluster{}, why: why}
}

// NotStored notes why histories cannot be stored.
func (o *Outlook) NotStored(why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.why = why
}

// Observe adds what the RayCluster needs by a decision. A decision without Ray's demand says nothing about it.
func (o *Outlook) Observe(d *decision.Decision) {
	if o == nil || d.ObserveFailed || d.RayErr != "" || d.Mode == nodepool.Off || d.Kube.Suspended {
		return
	}
	needed := Needed(d)
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.clusters[d.Cluster]
	if c == nil {
		c = &cluster{begun: d.At, saveAt: d.At.Add(youngest + spread(d.Cluster)), choices: map[string]choice{}}
		o.clusters[d.Cluster] = c
	}
	c.generated = d.Kube.Owner.Kind != ""
	c.history.Observe(d.At, needed)
}

// spread is a part of saveEvery that differs between RayClusters, so that not all are stored at once.
func spread(key nodepool.ClusterKey) time.Duration {
	hash := fnv.New32a()
	hash.Write([]byte(key.String()))
	return time.Duration(hash.Sum32()) % saveEvery
}

// Forget drops a RayCluster that is gone, or about which another process decides. What is stored of it stays: it may
// come again.
func (o *Outlook) Forget(key nodepool.ClusterKey) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.clusters, key)
}

// Unread returns the RayClusters whose stored history was not read yet, in no order.
func (o *Outlook) Unread() (keys []nodepool.ClusterKey) {
	return o.keys(func(c *cluster) bool { return !c.read && !c.generated })
}

// Due returns the RayClusters whose history should be stored, the one that waits for the longest first.
func (o *Outlook) Due(now time.Time) []nodepool.ClusterKey {
	return o.keys(func(c *cluster) bool { return c.read && !c.generated && !now.Before(c.saveAt) })
}

func (o *Outlook) keys(which func(*cluster) bool) (keys []nodepool.ClusterKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, c := range o.clusters {
		if which(c) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b nodepool.ClusterKey) int {
		return cmp.Or(o.clusters[a].saveAt.Compare(o.clusters[b].saveAt), a.Compare(b))
	})
	return keys
}

// Read adds the stored history of a RayCluster; empty if there is none. If it cannot be read, the error says so, and
// the next one that is stored replaces it.
func (o *Outlook) Read(key nodepool.ClusterKey, encoded []byte) error {
	var earlier *forecast.History
	var err error
	if len(encoded) > 0 {
		earlier, err = forecast.Decode(encoded)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.clusters[key]
	if c == nil || c.read {
		return err
	}
	c.read = true
	if earlier != nil {
		earlier.Follow(&c.history)
		c.history = *earlier
		c.saveAt = c.begun.Add(spread(key)) // it has lived for long enough before
	}
	return err
}

// Save returns the history of a RayCluster to store, and how long it counts; false if it is gone.
func (o *Outlook) Save(key nodepool.ClusterKey, now time.Time) (encoded []byte, until time.Time, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.clusters[key]
	if c == nil {
		return nil, time.Time{}, false
	}
	c.saveAt = now.Add(saveEvery)
	_, seen := c.history.Seen()
	return c.history.Encode(), seen.Add(forecast.Span), true
}
