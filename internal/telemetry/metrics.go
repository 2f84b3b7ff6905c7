package telemetry

import (
	"cmp"
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
)

// Metrics has the instruments and the state of each cluster.
type Metrics struct {
	// The instruments by name.
	counters   map[string]metric.Int64Counter
	histograms map[string]metric.Float64Histogram
	observed   map[string]metric.Float64Observable

	limits Limits
	now    func() time.Time
	// leads reports whether this process makes decisions; nil if it never does.
	leads func() bool
	// bounds knows how much of each bound is in use; nil if nothing is known.
	bounds *Bounds
	// division returns what is known of the shards; nil, or false, without shards.
	division func() (Division, bool)
	// arrived is called when the Ray node of a pod is alive, with the RayCluster as namespace/name.
	arrived func(key, pod string, j *progress)
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
	decision  *addon.Decision
	costs     func() []ledger.Row
	currency  string
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
	m := &Metrics{
		limits:   config.Limits.withDefaults(),
		now:      time.Now,
		leads:    config.Leads,
		bounds:   config.Bounds,
		division: config.Division,
		known:    map[string]*cluster{},
	}
	observed, err := m.create(meter)
	if err != nil {
		return nil, err
	}
	if _, err := meter.RegisterCallback(m.collect, observed...); err != nil {
		return nil, fmt.Errorf("registering the collection of metrics: %w", err)
	}
	return m, nil
}

// Observe adds one cycle.
func (m *Metrics) Observe(c Cycle) {
	m.count("heliostat_cycles_total", "result", choose(c.Failed, "error", "ok"))
	for name, took := range map[string]time.Duration{
		"heliostat_cycle_seconds": c.Took, "heliostat_planner_seconds": c.Planned,
		"heliostat_plan_wait_seconds": c.Waited, "heliostat_seen_to_patched_seconds": c.SeenToPatched,
	} {
		if took > 0 {
			m.record(name, took)
		}
	}
	if c.SeenToPatched > 0 {
		m.stage(seenToPatched, c.SeenToPatched)
	}
	for _, a := range c.Actions {
		m.count("heliostat_actions_total", "kind", a.Kind, "result", a.Result)
		m.record("heliostat_action_seconds", a.Took, "kind", a.Kind)
		if a.Decision != "" {
			m.count("heliostat_decisions_total", "decision", a.Decision, "reason", a.Reason)
		}
	}
	known := m.cluster(c.Namespace, c.Cluster)
	known.mu.Lock()
	defer known.mu.Unlock()
	known.decision, known.costs, known.currency = c.Decision, c.Costs, c.Currency
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
	known.stages.observe(c, stageHooks{stage: m.stage, arrived: func(pod string, j *progress) {
		if m.arrived != nil {
			m.arrived(c.Namespace+"/"+c.Cluster, pod, j)
		}
	}})
}

func (m *Metrics) stage(name string, took time.Duration) {
	m.record("heliostat_stage_seconds", took, "stage", name)
}

func (m *Metrics) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, key)
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

// APICalls counts failed calls to the Kubernetes API. It wraps the transport of a client.
func (m *Metrics) APICalls(next http.RoundTripper) http.RoundTripper { return apiCalls{m, next} }

type apiCalls struct {
	metrics *Metrics
	next    http.RoundTripper
}

// RoundTrip counts responses with a code of 400 or above by their code. It does not count calls that the caller
// canceled.
func (a apiCalls) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := a.next.RoundTrip(request)
	switch {
	case err != nil && request.Context().Err() == nil:
		a.count(request.Method, "none")
	case err == nil && response.StatusCode >= http.StatusBadRequest:
		a.count(request.Method, strconv.Itoa(response.StatusCode))
	}
	return response, err
}

func (a apiCalls) count(method, code string) {
	a.metrics.count("heliostat_api_errors_total", "method", method, "code", code)
}

// WrappedRoundTripper returns the wrapped transport, so that the client can close idle connections.
func (a apiCalls) WrappedRoundTripper() http.RoundTripper { return a.next }

// Bounds knows how much of each bound of what the process keeps is in use. The zero value knows of none. It is safe for
// concurrent use.
type Bounds struct {
	mu    sync.Mutex // protects parts
	parts []func() map[string]float64
}

// Add adds a part of the process. used returns how much of each of its bounds is in use: 0 is nothing, and 1 is all.
func (b *Bounds) Add(used func() map[string]float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parts = append(b.parts, used)
}

// Used returns how much of each bound of all parts is in use.
func (b *Bounds) Used() map[string]float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[string]float64{}
	for _, used := range b.parts {
		maps.Copy(all, used())
	}
	return all
}

// idleHours adds up the GPU-hours of one cluster that nothing used, by cause.
type idleHours struct {
	hours map[string]float64
	// gpus is the number of idle GPUs by cause since the last cycle, which was at since.
	gpus  map[string]float64
	since time.Time
}

// longestIdle limits the idle time that one interval between two cycles adds: it is longer than any decision stands,
// and there is no data for a longer one.
const longestIdle = 3 * time.Minute

// observe adds the idle time since the previous cycle. A cause is known from the cycle that sees it first, with no
// hours, so that a rate counts its first ones.
func (h *idleHours) observe(c Cycle) {
	if h.hours == nil {
		h.hours = map[string]float64{}
	}
	passed := min(max(c.At.Sub(h.since), 0), longestIdle).Hours()
	for cause, gpus := range h.gpus {
		h.hours[cause] += gpus * passed
	}
	h.gpus, h.since = c.IdleGPUs, c.At
	if c.RayFailed {
		h.gpus = nil
	}
	for cause := range h.gpus {
		h.hours[cause] += 0
	}
}

// copied returns the hours by cause.
func (h *idleHours) copied() map[string]float64 { return maps.Clone(h.hours) }
