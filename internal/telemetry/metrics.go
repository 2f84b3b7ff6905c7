package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Metrics has the instruments and the state of each cluster.
type Metrics struct {
	*instruments
	limits Limits
	// leads reports whether this process makes decisions; nil if it never does.
	leads func() bool
	// bounds knows how much of each bound is in use; nil if nothing is known.
	bounds *Bounds
	// division returns what is known of the shards; nil, or false, without shards.
	division func() (Division, bool)
	// labels caches the label sets of events, because creating a set costs more than the count that uses it.
	labels sync.Map

	mu    sync.Mutex // protects the fields below
	known map[string]*cluster
	born  int
}

// cluster is the state of one RayCluster between two collections.
type cluster struct {
	namespace, name string
	// born orders clusters by age. If there are too many series, the newest clusters have none.
	born int

	mu        sync.Mutex // protects the fields below
	state     func() State
	costs     func() []Cost
	gcsErrors float64
	truncated float64
	reverts   float64
	idle      idleHours
	stages    stages
}

// Division is what one of several processes that divide the RayClusters knows of the others.
type Division struct {
	// Shard names this process.
	Shard string
	// Shards is how many there are. Unowned is how many RayClusters none of them has.
	Shards, Unowned int
	// ReadAge is how long ago all Leases were read; negative before that.
	ReadAge time.Duration
}

// newMetrics creates the instruments with a meter.
func newMetrics(meter metric.Meter, config Config) (*Metrics, error) {
	made, err := newInstruments(meter)
	if err != nil {
		return nil, err
	}
	m := &Metrics{
		instruments: made,
		limits:      config.Limits.withDefaults(),
		leads:       config.Leads,
		bounds:      config.Bounds,
		division:    config.Division,
		known:       map[string]*cluster{},
	}
	if _, err := meter.RegisterCallback(m.collect, made.observables()...); err != nil {
		return nil, fmt.Errorf("registering the collection of metrics: %w", err)
	}
	return m, nil
}

// Observe adds one cycle.
func (m *Metrics) Observe(c Cycle) {
	ctx := context.Background()
	m.cycles.Add(ctx, 1, m.labelled("result", choose(c.Failed, "error", "ok")))
	if c.Took > 0 {
		m.cycleSeconds.Record(ctx, c.Took.Seconds())
	}
	if c.Planned > 0 {
		m.plannerSeconds.Record(ctx, c.Planned.Seconds())
	}
	if c.Waited > 0 {
		m.planWaitSeconds.Record(ctx, c.Waited.Seconds())
	}
	if c.SeenToPatched > 0 {
		m.seenToPatched.Record(ctx, c.SeenToPatched.Seconds())
		m.stage(seenToPatched, c.SeenToPatched)
	}
	for _, a := range c.Actions {
		m.actions.Add(ctx, 1, m.labelled("kind", a.Kind, "result", a.Result))
		m.actionSeconds.Record(ctx, a.Took.Seconds(), m.labelled("kind", a.Kind))
		if a.Decision != "" {
			m.decisions.Add(ctx, 1, m.labelled("decision", a.Decision, "reason", a.Reason))
		}
	}
	known := m.cluster(c.Namespace, c.Cluster)
	known.mu.Lock()
	defer known.mu.Unlock()
	known.state, known.costs = c.State, c.Costs
	if c.RayFailed {
		known.gcsErrors++
	}
	if c.Truncated {
		known.truncated++
	}
	if c.Reverted {
		known.reverts++
	}
	known.idle.observe(c)
	known.stages.observe(c, stageHooks{stage: m.stage})
}

func (m *Metrics) stage(name string, took time.Duration) {
	m.stageSeconds.Record(context.Background(), took.Seconds(), m.labelled("stage", name))
}

// Forget removes a deleted RayCluster.
func (m *Metrics) Forget(namespace, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, namespace+"/"+name)
}

func (m *Metrics) cluster(namespace, name string) *cluster {
	key := namespace + "/" + name
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.known[key]
	if known == nil {
		m.born++
		known = &cluster{namespace: namespace, name: name, born: m.born}
		m.known[key] = known
	}
	return known
}

// oldestFirst returns the clusters by age, oldest first.
func (m *Metrics) oldestFirst() []*cluster {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*cluster, 0, len(m.known))
	for _, known := range m.known {
		all = append(all, known)
	}
	slices.SortFunc(all, func(a, b *cluster) int { return cmp.Compare(a.born, b.born) })
	return all
}

// pairs are the label names and values of one event.
type pairs [4]string

// labelled returns the label set of one or two names and values. All values are codes, so there are few sets.
func (m *Metrics) labelled(names ...string) metric.MeasurementOption {
	var key pairs
	copy(key[:], names)
	if made, known := m.labels.Load(key); known {
		return made.(metric.MeasurementOption)
	}
	var labels []attribute.KeyValue
	for i := 0; i+1 < len(names); i += 2 {
		labels = append(labels, attribute.String(names[i], names[i+1]))
	}
	made, _ := m.labels.LoadOrStore(key, metric.WithAttributeSet(attribute.NewSet(labels...)))
	return made.(metric.MeasurementOption)
}

func choose[T any](condition bool, yes, no T) T {
	if condition {
		return yes
	}
	return no
}
