package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Metrics has the instruments and the state of each RayCluster.
type Metrics struct {
	// The instruments by name.
	counters   map[string]metric.Int64Counter
	histograms map[string]metric.Float64Histogram
	observed   map[string]metric.Float64Observable

	config Config
	now    func() time.Time

	mu    sync.Mutex // protects the fields below
	known map[nodepool.ClusterKey]*cluster
	born  int
}

// cluster is the state of one RayCluster between two collections.
type cluster struct {
	key nodepool.ClusterKey
	// born orders clusters by age. If there are too many series, the newest clusters have none.
	born int

	mu        sync.Mutex // protects the fields below
	decision  *addon.Decision
	costs     func() []ledger.Row
	currency  string
	gcsErrors float64
	reverts   float64
	stages    stages
	// idleHours are the GPU-hours that nothing used, by cause. idleGPUs counts the idle GPUs since the last cycle,
	// which was at idleSince.
	idleHours, idleGPUs map[string]float64
	idleSince           time.Time
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
	m := &Metrics{config: config, now: time.Now, known: map[nodepool.ClusterKey]*cluster{}}
	observed, err := m.create(meter)
	if err != nil {
		return nil, err
	}
	if _, err := meter.RegisterCallback(m.collect, observed...); err != nil {
		return nil, fmt.Errorf("registering the collection of metrics: %w", err)
	}
	return m, nil
}

// Observe adds the decision of one cycle. costs returns what the RayCluster has spent since this process began, in the
// currency; nil if nobody adds that up. Like the state of the RayCluster, it is read only during collections, so the
// cost of a cycle does not depend on the size of the state.
func (m *Metrics) Observe(d *addon.Decision, costs func() []ledger.Row, currency string) {
	m.count("heliostat_cycles_total", "result", choose(d.Err != "", "error", "ok"))
	known := m.cluster(d.Cluster)
	known.mu.Lock()
	defer known.mu.Unlock()
	known.decision, known.costs, known.currency = d, costs, currency
	if d.ObserveFailed { // everything else is that of the cycle before
		known.idle(d.At, nil)
		return
	}
	for name, took := range map[string]time.Duration{
		"heliostat_cycle_seconds": d.Took, "heliostat_planner_seconds": d.Planned,
		"heliostat_seen_to_patched_seconds": d.SeenToPatched,
	} {
		if took > 0 {
			m.record(name, took)
		}
	}
	stage := func(name string, took time.Duration) { m.record("heliostat_stage_seconds", took, "stage", name) }
	if d.SeenToPatched > 0 {
		stage(seenToPatched, d.SeenToPatched)
	}
	for _, a := range d.Actions {
		m.count("heliostat_actions_total", "kind", a.Kind, "result", a.Result)
		m.record("heliostat_action_seconds", max(a.Took, 0), "kind", a.Kind)
		if a.Result == addon.ResultOK && !a.ScalesNothing() {
			m.count("heliostat_decisions_total", "decision", a.Name(), "reason", reasonOf(d, a))
		}
	}
	if rayFailed(d) {
		known.gcsErrors++
	}
	if d.Reverted {
		known.reverts++
	}
	unused := map[string]float64{}
	if d.RayErr == "" {
		for cause, amount := range planner.UnusedGPUs(d.Snapshot, d.Plan) {
			unused[cause] = amount.Float()
		}
	}
	known.idle(d.At, unused)
	known.stages.observe(d, stage)
}

// longestIdle limits the idle time that one interval between two cycles adds: it is longer than any decision stands,
// and there is no data for a longer one.
const longestIdle = 3 * time.Minute

// idle adds the idle time since the previous cycle, and notes which GPUs are unused now. A cause is known from the
// cycle that sees it first, with no hours, so that a rate counts its first ones.
func (c *cluster) idle(at time.Time, unused map[string]float64) {
	passed := min(max(at.Sub(c.idleSince), 0), longestIdle).Hours()
	for cause, gpus := range c.idleGPUs {
		c.idleHours[cause] += gpus * passed
	}
	c.idleGPUs, c.idleSince = unused, at
	for cause := range unused {
		c.idleHours[cause] += 0
	}
}

// Forget removes a RayCluster that is deleted, or that another process decides about.
func (m *Metrics) Forget(key nodepool.ClusterKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, key)
}

func (m *Metrics) cluster(key nodepool.ClusterKey) *cluster {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.known[key]
	if known == nil {
		m.born++
		known = &cluster{key: key, born: m.born, idleHours: map[string]float64{}}
		m.known[key] = known
	}
	return known
}

// oldestFirst returns the clusters by age, oldest first.
func (m *Metrics) oldestFirst() []*cluster {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(maps.Values(m.known), func(a, b *cluster) int { return cmp.Compare(a.born, b.born) })
}

// count adds an event to a counter. labels are names and values; all values are codes, so there are few series.
func (m *Metrics) count(name string, labels ...string) {
	m.counters[name].Add(context.Background(), 1, metric.WithAttributes(attributesOf(labels)...))
}

// record adds how long an event took to a histogram.
func (m *Metrics) record(name string, took time.Duration, labels ...string) {
	m.histograms[name].Record(context.Background(), took.Seconds(), metric.WithAttributes(attributesOf(labels)...))
}

func attributesOf(labels []string) (attributes []attribute.KeyValue) {
	for i := 0; i < len(labels); i += 2 {
		attributes = append(attributes, attribute.String(labels[i], labels[i+1]))
	}
	return attributes
}

func choose[T any](condition bool, yes, no T) T {
	if condition {
		return yes
	}
	return no
}

// APICalls counts failed calls to the Kubernetes API. It wraps the transport of a client.
func (m *Metrics) APICalls(next http.RoundTripper) http.RoundTripper { return apiCalls{m, next} }

type apiCalls struct {
	metrics *Metrics
	next    http.RoundTripper
}

// RoundTrip counts responses with a code of 400 or above by their code, and calls without an answer as none. It does
// not count calls that the caller canceled.
func (a apiCalls) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := a.next.RoundTrip(request)
	code := "none"
	if err == nil {
		code = strconv.Itoa(response.StatusCode)
	}
	if err == nil && response.StatusCode >= http.StatusBadRequest || err != nil && request.Context().Err() == nil {
		a.metrics.count("heliostat_api_errors_total", "method", request.Method, "code", code)
	}
	return response, err
}

// WrappedRoundTripper returns the wrapped transport, so that the client can close idle connections.
func (a apiCalls) WrappedRoundTripper() http.RoundTripper { return a.next }
