// Package telemetry is how Heliostat tells about itself: the logger, and instruments for Prometheus. It knows plain values
// only; what they mean is decided where they are measured. Label values are a bounded set: the RayClusters and worker
// groups that exist, and codes.
package telemetry

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics holds the instruments.
type Metrics struct {
	cycles        *prometheus.CounterVec
	cycleSeconds  prometheus.Histogram
	actions       *prometheus.CounterVec
	actionSeconds *prometheus.HistogramVec
	gcsErrors     *prometheus.CounterVec
	seenToPatched prometheus.Histogram
	dataAge       *prometheus.GaugeVec
	managed       *prometheus.GaugeVec
	unmet         *prometheus.GaugeVec
	workers       *prometheus.GaugeVec
	numGPUs       *prometheus.GaugeVec
	mismatch      *prometheus.GaugeVec

	mu sync.Mutex // guards told
	// told remembers the series of each RayCluster by namespace/cluster: finding them among all would cost more than the cycle.
	told map[string]series
}

// series are the label values that one RayCluster has beside its own name.
type series struct{ groups, unmet map[string]bool }

// Cycle is one cycle on one RayCluster, in the values that are measured.
type Cycle struct {
	Namespace, Cluster string
	// Managed: the cluster may be written to. Failed: it could not be observed or patched. RayFailed: its GCS did not answer.
	Managed, Failed, RayFailed bool
	Took                       time.Duration
	// SeenToPatched is zero unless this cycle patched growth.
	SeenToPatched time.Duration
	// DataAge is negative while Ray never answered.
	DataAge time.Duration
	Groups  []Group
	Actions []Action
	// Unmet counts demand that is not served by the code of its reason.
	Unmet map[string]int64
}

// Group is one worker group's numbers of pods and of GPUs.
type Group struct {
	Name                       string
	Current, Desired, Min, Max int
	// NumGPUs is how many GPUs one worker has, by column: declared, derived, reported, ray. What is not known is absent.
	NumGPUs map[string]float64
	// NumGPUsMismatch: a new pod announces another number than the device plugin gives it.
	NumGPUsMismatch bool
}

// numGPUsColumns are all the columns that there are.
var numGPUsColumns = []string{"declared", "derived", "reported", "ray"}

// Action is one thing done: Kind is patch, drain or report, Result ok, refused, conflict or error.
type Action struct {
	Kind, Result string
	Took         time.Duration
}

// New registers the instruments.
func New(registerer prometheus.Registerer) (*Metrics, error) {
	byCluster := []string{"namespace", "cluster"}
	m := &Metrics{
		told: map[string]series{},
		cycles: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "heliostat_cycles_total", Help: "Cycles by result: ok or error."}, []string{"result"}),
		cycleSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "heliostat_cycle_seconds", Help: "How long a cycle took, calls included.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 8)}),
		actions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "heliostat_actions_total", Help: "Patches of RayClusters, drains of Ray nodes and failed reports, by result."}, []string{"kind", "result"}),
		actionSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "heliostat_action_seconds", Help: "How long a patch or drain took.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 7)}, []string{"kind"}),
		gcsErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "heliostat_gcs_errors_total", Help: "Cycles in which the GCS did not answer."}, byCluster),
		seenToPatched: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "heliostat_seen_to_patched_seconds", Help: "From growth first wanted to replicas patched.",
			Buckets: prometheus.ExponentialBuckets(0.002, 2.5, 9)}),
		dataAge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "heliostat_data_age_seconds", Help: "Age of the Ray data that the last cycle used."}, byCluster),
		managed: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "heliostat_cluster_managed", Help: "1 while Heliostat may write to the RayCluster."}, byCluster),
		unmet: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "heliostat_unmet_demand", Help: "Requests and gangs that the last plan does not serve, by reason."}, append(byCluster, "reason")),
		workers: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "heliostat_group_workers", Help: "Pods of a worker group: current, desired, min and max."}, append(byCluster, "group", "of")),
		numGPUs: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "heliostat_group_num_gpus", Help: "GPUs of one worker of a group: declared in the spec, derived for ray start, reported by the device plugin, announced by the newest Ray node (ray). Absent where not known."},
			append(byCluster, "group", "column")),
		mismatch: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "heliostat_group_num_gpus_mismatch", Help: "1 while a new worker of the group announces another number of GPUs than the device plugin gives it."},
			append(byCluster, "group")),
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.cycles, m.cycleSeconds, m.actions, m.actionSeconds, m.gcsErrors,
		m.seenToPatched, m.dataAge, m.managed, m.unmet, m.workers, m.numGPUs, m.mismatch} {
		errs = append(errs, registerer.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return m, nil
}

// Observe takes one cycle in.
func (m *Metrics) Observe(c Cycle) {
	m.cycles.WithLabelValues(choose(c.Failed, "error", "ok")).Inc()
	m.cycleSeconds.Observe(c.Took.Seconds())
	if c.RayFailed {
		m.gcsErrors.WithLabelValues(c.Namespace, c.Cluster).Inc()
	}
	if c.SeenToPatched > 0 {
		m.seenToPatched.Observe(c.SeenToPatched.Seconds())
	}
	if c.DataAge >= 0 {
		m.dataAge.WithLabelValues(c.Namespace, c.Cluster).Set(c.DataAge.Seconds())
	}
	m.managed.WithLabelValues(c.Namespace, c.Cluster).Set(choose(c.Managed, 1.0, 0.0))
	for _, a := range c.Actions {
		m.actions.WithLabelValues(a.Kind, a.Result).Inc()
		m.actionSeconds.WithLabelValues(a.Kind).Observe(a.Took.Seconds())
	}
	m.observeGroups(c)
}

// observeGroups sets what is there and drops what was there before: a removed group leaves no series behind.
func (m *Metrics) observeGroups(c Cycle) {
	now := series{groups: map[string]bool{}, unmet: map[string]bool{}}
	for reason, count := range c.Unmet {
		now.unmet[reason] = true
		m.unmet.WithLabelValues(c.Namespace, c.Cluster, reason).Set(float64(count))
	}
	for _, g := range c.Groups {
		now.groups[g.Name] = true
		for of, pods := range map[string]int{"current": g.Current, "desired": g.Desired, "min": g.Min, "max": g.Max} {
			m.workers.WithLabelValues(c.Namespace, c.Cluster, g.Name, of).Set(float64(pods))
		}
		m.observeGPUs(c, g)
	}
	m.mu.Lock()
	before := m.told[c.Namespace+"/"+c.Cluster]
	m.told[c.Namespace+"/"+c.Cluster] = now
	m.mu.Unlock()
	for reason := range before.unmet {
		if !now.unmet[reason] {
			m.unmet.DeleteLabelValues(c.Namespace, c.Cluster, reason)
		}
	}
	for group := range before.groups {
		if !now.groups[group] {
			for _, of := range []string{"current", "desired", "min", "max"} {
				m.workers.DeleteLabelValues(c.Namespace, c.Cluster, group, of)
			}
			m.observeGPUs(c, Group{Name: group})
			m.mismatch.DeleteLabelValues(c.Namespace, c.Cluster, group)
		}
	}
}

// observeGPUs sets the columns that are known and drops the others.
func (m *Metrics) observeGPUs(c Cycle, g Group) {
	for _, column := range numGPUsColumns {
		if gpus, known := g.NumGPUs[column]; known {
			m.numGPUs.WithLabelValues(c.Namespace, c.Cluster, g.Name, column).Set(gpus)
		} else {
			m.numGPUs.DeleteLabelValues(c.Namespace, c.Cluster, g.Name, column)
		}
	}
	m.mismatch.WithLabelValues(c.Namespace, c.Cluster, g.Name).Set(choose(g.NumGPUsMismatch, 1.0, 0.0))
}

// Forget drops the series of a RayCluster that is gone.
func (m *Metrics) Forget(namespace, cluster string) {
	m.mu.Lock()
	delete(m.told, namespace+"/"+cluster)
	m.mu.Unlock()
	own := prometheus.Labels{"namespace": namespace, "cluster": cluster}
	for _, vector := range []*prometheus.MetricVec{m.gcsErrors.MetricVec, m.dataAge.MetricVec, m.managed.MetricVec, m.unmet.MetricVec, m.workers.MetricVec,
		m.numGPUs.MetricVec, m.mismatch.MetricVec} {
		vector.DeletePartialMatch(own)
	}
}

func choose[T any](condition bool, yes, no T) T {
	if condition {
		return yes
	}
	return no
}
