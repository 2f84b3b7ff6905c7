package telemetry

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Limits limits the number of time series for clusters, because users choose the names of groups and of Ray resources.
// heliostat_dropped_series counts the dropped series. If a field is zero, the default in its comment applies.
type Limits struct {
	// Series limits the series of all clusters together; the oldest clusters keep theirs. The default is 100,000.
	Series int
	// SeriesOfCluster limits the series of one cluster. A worker group has up to 14. The default is 1,000.
	SeriesOfCluster int
	// Resources limits the Ray resources in the demand series of one cluster; CPU, GPU and memory come first. The
	// default is 16.
	Resources int
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Series:          cmp.Or(l.Series, 100_000),
		SeriesOfCluster: cmp.Or(l.SeriesOfCluster, 1000),
		Resources:       cmp.Or(l.Resources, 16),
	}
}

// collect sets the observable instruments.
func (m *Metrics) collect(_ context.Context, observer metric.Observer) error {
	all := m.oldestFirst()
	room, dropped, fullest := m.limits.Series, 0, 0.0
	for _, known := range all {
		s := seriesWriter{observer: observer, limits: m.limits, room: min(room, m.limits.SeriesOfCluster)}
		s.own = []attribute.KeyValue{
			attribute.String("namespace", known.namespace),
			attribute.String("cluster", known.name),
		}
		m.setCluster(&s, known)
		room -= s.written
		dropped += s.dropped
		fullest = max(fullest, float64(s.written)/float64(m.limits.SeriesOfCluster))
	}
	observer.ObserveFloat64(m.clusters, float64(len(all)))
	observer.ObserveFloat64(m.leading, choose(m.leads != nil && m.leads(), 1.0, 0.0))
	m.observeDivision(observer)
	used := map[string]float64{}
	if m.bounds != nil {
		used = m.bounds.Used()
	}
	used["series"] = max(fullest, 1-float64(room)/float64(m.limits.Series))
	for of, part := range used {
		observer.ObserveFloat64(m.boundUsed, part, metric.WithAttributes(attribute.String("of", of)))
	}
	observer.ObserveFloat64(m.droppedSeries, float64(dropped))
	return nil
}

func (m *Metrics) observeDivision(observer metric.Observer) {
	if m.division == nil {
		return
	}
	if known, divided := m.division(); divided {
		observer.ObserveFloat64(m.shards, float64(known.Shards),
			metric.WithAttributes(attribute.String("shard", known.Shard)))
		if known.ReadAge >= 0 {
			observer.ObserveFloat64(m.unowned, float64(known.Unowned))
			observer.ObserveFloat64(m.shardsReadAge, known.ReadAge.Seconds())
		}
	}
}

// seriesWriter sets the series of one cluster during one collection.
type seriesWriter struct {
	observer               metric.Observer
	limits                 Limits
	own, labels            []attribute.KeyValue
	room, written, dropped int
}

// set sets one series if the limits allow it. names are additional label names and values.
func (s *seriesWriter) set(instrument metric.Float64Observable, value float64, names ...string) {
	if s.room == s.written {
		s.dropped++
		return
	}
	s.written++
	s.labels = append(s.labels[:0], s.own...)
	for i := 0; i < len(names); i += 2 {
		s.labels = append(s.labels, attribute.String(names[i], names[i+1]))
	}
	s.observer.ObserveFloat64(instrument, value, metric.WithAttributeSet(attribute.NewSet(s.labels...)))
}

// setCluster sets the series of one cluster, the most important first.
func (m *Metrics) setCluster(s *seriesWriter, known *cluster) {
	known.mu.Lock()
	readState, gcsErrors, reverts, idleHours := known.state, known.gcsErrors, known.reverts, known.idle.copied()
	readCosts, truncated := known.costs, known.truncated
	known.mu.Unlock()
	// From 0, because a rate does not count what a new series begins with.
	s.set(m.gcsErrors, gcsErrors)
	s.set(m.truncated, truncated)
	s.set(m.reverts, reverts)
	for _, cause := range sorted(idleHours) {
		s.set(m.idleGPUHours, idleHours[cause], "cause", cause)
	}
	var state State
	if readState != nil {
		state = readState()
		m.setState(s, state)
	}
	if readCosts != nil {
		for _, spent := range readCosts() {
			m.setCost(s, spent)
		}
	}
	m.setRay(s, state.Ray) // last, because it changes the labels
}

// setCost sets the counters of one account, without those that it does not have.
func (m *Metrics) setCost(s *seriesWriter, spent Cost) {
	// Not job: Prometheus has a label of that name.
	labels := []string{"group", spent.Group, "owner", spent.Owner, "ray_job", spent.Job, "cause", spent.Cause}
	if spent.PodSeconds > 0 {
		s.set(m.podSeconds, spent.PodSeconds, labels...)
	}
	if spent.GPUSeconds > 0 {
		s.set(m.gpuSeconds, spent.GPUSeconds, labels...)
	}
	if spent.Money > 0 {
		s.set(m.cost, spent.Money, append(labels, "currency", spent.Currency)...)
	}
}

// setState sets the series of what one cluster is now.
func (m *Metrics) setState(s *seriesWriter, state State) {
	s.set(m.managed, choose(state.Managed, 1.0, 0.0))
	if state.DataAge >= 0 {
		s.set(m.dataAge, state.DataAge.Seconds())
	}
	for _, reason := range sorted(state.Unmet) {
		s.set(m.unmet, float64(state.Unmet[reason]), "reason", reason)
	}
	for _, sign := range sorted(state.Going) {
		s.set(m.going, float64(state.Going[sign]), "sign", sign)
	}
	for _, by := range sorted(state.Guarded) {
		s.set(m.guarded, float64(state.Guarded[by]), "by", by)
	}
	for _, status := range sorted(state.Requested) {
		s.set(m.requested, float64(state.Requested[status]), "status", status)
	}
	for _, status := range sorted(state.Requests) {
		s.set(m.requests, float64(state.Requests[status]), "status", status)
	}
	m.setDemand(s, state.Demand)
	for _, g := range state.Groups {
		m.setGroup(s, g)
	}
}

func (m *Metrics) setDemand(s *seriesWriter, demand map[string]map[string]float64) {
	resources, left := bounded(demand, s.limits.Resources)
	for _, resource := range resources {
		for _, state := range sorted(demand[resource]) {
			s.set(m.demand, demand[resource][state], "resource", resource, "state", state)
		}
	}
	for _, resource := range left {
		s.dropped += len(demand[resource])
	}
}

func (m *Metrics) setGroup(s *seriesWriter, g Group) {
	s.set(m.workers, float64(g.Current), "group", g.Name, "of", "current")
	s.set(m.workers, float64(g.Desired), "group", g.Name, "of", "desired")
	s.set(m.workers, float64(g.Asked), "group", g.Name, "of", "asked")
	s.set(m.workers, float64(g.Ready), "group", g.Name, "of", "ready")
	s.set(m.workers, float64(g.Min), "group", g.Name, "of", "min")
	s.set(m.workers, float64(g.Max), "group", g.Name, "of", "max")
	for _, column := range sorted(g.NumGPUs) {
		s.set(m.numGPUs, g.NumGPUs[column], "group", g.Name, "column", column)
	}
	s.set(m.mismatch, choose(g.NumGPUsMismatch, 1.0, 0.0), "group", g.Name)
	if g.Cooldown > 0 {
		s.set(m.cooldown, g.Cooldown.Seconds(), "group", g.Name)
	}
	if slice := g.Slice; slice != nil && slice.MemoryBytes != nil {
		s.set(m.sliceMemory, *slice.MemoryBytes, "group", g.Name, "kind", slice.Kind, "profile", slice.Profile,
			"isolation", slice.Isolation)
	}
	if slice := g.Slice; slice != nil && slice.Compute != nil {
		s.set(m.sliceCompute, *slice.Compute, "group", g.Name)
	}
	for _, pool := range g.Pools {
		m.setPool(s, g.Name, pool)
	}
}

func (m *Metrics) setPool(s *seriesWriter, group string, pool Pool) {
	if pool.Limit != nil {
		s.set(m.poolLimit, float64(*pool.Limit), "group", group, "pool", pool.Name)
	}
	for _, cards := range pool.Cards {
		set := func(of string, count int64) {
			s.set(m.cards, float64(count), "group", group, "pool", pool.Name, "product", cards.Product, "of", of)
		}
		set("all", cards.All)
		set("cut", cards.Cut)
		if cards.Busy != nil {
			set("busy", *cards.Busy)
		}
	}
}

// setRay sets the series that Ray's own autoscaler exports, with the labels of Ray and of KubeRay. The label
// ray_io_cluster is the name of the cluster.
func (m *Metrics) setRay(s *seriesWriter, ray Ray) {
	if ray.Session == "" {
		return // Ray's dashboards select by session, and Ray exports no series for a session that has ended
	}
	s.own[1].Key = "ray_io_cluster"
	s.own = append(s.own, attribute.String("SessionName", ray.Session))
	for _, kind := range sorted(ray.Nodes) {
		counts := ray.Nodes[kind]
		s.set(m.activeNodes, float64(counts.Active), "NodeType", kind)
		s.set(m.pendingNodes, float64(counts.Pending), "NodeType", kind)
		s.set(m.recentlyFailedNodes, float64(counts.Failed), "NodeType", kind)
	}
	for _, part := range []struct {
		instrument metric.Float64Observable
		amounts    map[string]float64
	}{{m.clusterResources, ray.ClusterResources}, {m.pendingResources, ray.PendingResources}} {
		resources, left := bounded(part.amounts, s.limits.Resources)
		for _, resource := range resources {
			s.set(part.instrument, part.amounts[resource], "resource", resource)
		}
		s.dropped += len(left)
	}
}

// first are the resources with the highest priority.
var first = []string{"CPU", "GPU", "memory"}

// bounded returns at most limit names, which get series, and the remaining names.
func bounded[V any](amounts map[string]V, limit int) (chosen, left []string) {
	names := sorted(amounts)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	if len(names) <= limit {
		return names, nil
	}
	return names[:limit], names[limit:]
}

func rank(resource string) int {
	if at := slices.Index(first, resource); at >= 0 {
		return at
	}
	return len(first)
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
