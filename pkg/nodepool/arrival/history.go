package arrival

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// mostSamples is how many workers are remembered of each group and pool, the latest last.
const mostSamples = 20

// placedAtOnce is the longest time from a pod's creation to its binding if it did not wait for a node. The API server
// rounds both moments to seconds.
const placedAtOnce = 2 * time.Second

// History remembers how long the workers of one RayCluster took to start. Most of it is read from the pods themselves,
// whose conditions have times, so that after a restart of this process the living workers teach it again. Its zero
// value is empty. It is not safe for use by several goroutines.
type History struct {
	groups map[string]*legs
	// pods are those that exist, by UID.
	pods     map[string]memory
	readings int
}

// legs are the samples of one group.
type legs struct{ node, join, whole []time.Duration }

// memory is what is remembered of one pod.
type memory struct {
	// counted: its times are samples. It may join Ray again, in a new session.
	counted bool
	// unready: it was seen before it was ready, so this process sees when it joins Ray.
	unready bool
	// askedAt is since when it waits, or waited, for its node; zero if this process has not seen that.
	askedAt time.Time
	// reading is the last one that showed the pod.
	reading int
}

// Observe adds one complete reading of all groups of the RayCluster. Nodes are counted for their pools as well; pools
// may be nil.
func (h *History) Observe(now time.Time, groups []Group, pools *Pools) {
	known := map[string]*legs{}
	if h.pods == nil {
		h.pods = map[string]memory{}
	}
	h.readings++
	for i := range groups {
		g := &groups[i]
		l := h.groups[g.Name]
		if l == nil {
			l = &legs{}
		}
		known[g.Name] = l
		progress := g.progress()
		for k := range g.Pods {
			m := h.pods[g.Pods[k].UID].observe(now, &g.Pods[k], progress[k], l, pools)
			m.reading = h.readings
			h.pods[g.Pods[k].UID] = m
		}
	}
	maps.DeleteFunc(h.pods, func(_ string, m memory) bool { return m.reading != h.readings })
	h.groups = known
}

// observe returns what to remember of a pod, and adds its times to the samples once they are complete. progress is nil
// if the pod has joined Ray.
func (m memory) observe(now time.Time, p *Pod, progress *progress, l *legs, pools *Pools) memory {
	if progress != nil {
		m.unready = m.unready || p.ReadyAt.IsZero()
		switch {
		case p.Gated:
			m.askedAt = now
		case !progress.askedAt.IsZero():
			m.askedAt = progress.askedAt
		}
		return m
	}
	joined := p.ReadyAt
	if m.unready {
		joined = now
	}
	if m.counted || joined.IsZero() || p.CreatedAt.IsZero() {
		return m
	}
	m.counted = true
	l.whole = keep(l.whole, joined.Sub(p.CreatedAt))
	if p.ScheduledAt.IsZero() {
		return m
	}
	l.join = keep(l.join, joined.Sub(p.ScheduledAt))
	if p.ScheduledAt.Sub(p.CreatedAt) > placedAtOnce {
		node := p.ScheduledAt.Sub(later(m.askedAt, p.CreatedAt))
		l.node = keep(l.node, node)
		pools.add(p.Pool, node)
	}
	return m
}

// keep adds a sample to those that are kept. Clocks of machines differ, so a time may seem negative.
func keep(samples []time.Duration, took time.Duration) []time.Duration {
	samples = append(samples, max(took, 0))
	return slices.Clone(samples[max(0, len(samples)-mostSamples):])
}

// Times returns how long the workers of a group take. If too few of them had to wait for a node, the times of its pools
// count, which other RayClusters use too.
func (h *History) Times(group Group, pools *Pools) Times {
	l := h.groups[group.Name]
	if l == nil {
		l = &legs{}
	}
	t := Times{Node: legOf(l.node), Join: legOf(l.join), Whole: legOf(l.whole)}
	if !t.Node.Known() {
		if shared := legOf(pools.samples(group.Pools)); shared.Known() {
			t.Node = shared
		}
	}
	return t
}

// Whole returns how long the workers of a group take from the creation of their pods.
func (h *History) Whole(group string) Leg {
	if l := h.groups[group]; l != nil {
		return legOf(l.whole)
	}
	return Leg{}
}

// Pools remembers how long nodes of each pool take, from the request for a machine until a pod is bound to its node. It
// is for all RayClusters, and safe for use by several goroutines. Nil remembers nothing.
type Pools struct {
	mu sync.Mutex // guards took and order
	// took are the samples by pool; order has the pools, the latest one last.
	took  map[string][]time.Duration
	order []string
}

// mostPools is how many pools are remembered.
const mostPools = 256

func (p *Pools) add(pool string, took time.Duration) {
	if p == nil || pool == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.took == nil {
		p.took = map[string][]time.Duration{}
	}
	p.took[pool] = keep(p.took[pool], took)
	p.order = append(slices.DeleteFunc(p.order, func(name string) bool { return name == pool }), pool)
	if len(p.order) > mostPools {
		delete(p.took, p.order[0])
		p.order = slices.Delete(p.order, 0, 1)
	}
}

// samples returns those of some pools together: a pod may get a node of any of them.
func (p *Pools) samples(pools []string) (all []time.Duration) {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pool := range pools {
		all = append(all, p.took[pool]...)
	}
	return all
}
