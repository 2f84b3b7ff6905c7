package telemetry

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Limits bound how many series clusters may have, since names of groups and of Ray resources are anybody's to choose.
// What is left out is counted by heliostat_dropped_series. Zero fields take the default named at each.
type Limits struct {
	// Series bounds those of all clusters together; the clusters known longest keep theirs. 100,000.
	Series int
	// SeriesOfCluster bounds those of one cluster. A worker group has up to 14. 1,000.
	SeriesOfCluster int
	// Resources bounds the Ray resources that one cluster's demand is told by; CPU, GPU and memory come first. 16.
	Resources int
}

func (l Limits) withDefaults() Limits {
	return Limits{Series: cmp.Or(l.Series, 100_000), SeriesOfCluster: cmp.Or(l.SeriesOfCluster, 1000), Resources: cmp.Or(l.Resources, 16)}
}

// collect fills the observable instruments.
func (m *Metrics) collect(_ context.Context, observer metric.Observer) error {
	all := m.oldestFirst()
	room, dropped := m.limits.Series, 0
	for _, known := range all {
		s := sheet{observer: observer, limits: m.limits, room: min(room, m.limits.SeriesOfCluster)}
		s.own = []attribute.KeyValue{attribute.String("namespace", known.namespace), attribute.String("cluster", known.name)}
		m.fill(&s, known)
		room -= s.told
		dropped += s.dropped
	}
	observer.ObserveFloat64(m.clusters, float64(len(all)))
	observer.ObserveFloat64(m.leading, choose(m.leads != nil && m.leads(), 1.0, 0.0))
	if m.memory != nil {
		memory := m.memory()
		observer.ObserveFloat64(m.requestMemory, float64(memory.Budget), metric.WithAttributes(attribute.String("of", "budget")))
		observer.ObserveFloat64(m.requestMemory, float64(memory.Held), metric.WithAttributes(attribute.String("of", "held")))
		observer.ObserveFloat64(m.overMemory, float64(memory.Over))
	}
	observer.ObserveFloat64(m.droppedSeries, float64(dropped))
	return nil
}

// sheet is one cluster's part of a collection.
type sheet struct {
	observer            metric.Observer
	limits              Limits
	own, labels         []attribute.KeyValue
	room, told, dropped int
}

// tell sets one series, as long as there is room. names are further label names and values.
func (s *sheet) tell(instrument metric.Float64Observable, value float64, names ...string) {
	if s.room == s.told {
		s.dropped++
		return
	}
	s.told++
	s.labels = append(s.labels[:0], s.own...)
	for i := 0; i < len(names); i += 2 {
		s.labels = append(s.labels, attribute.String(names[i], names[i+1]))
	}
	s.observer.ObserveFloat64(instrument, value, metric.WithAttributeSet(attribute.NewSet(s.labels...)))
}

// fill tells one cluster, what matters most first.
func (m *Metrics) fill(s *sheet, known *cluster) {
	known.mu.Lock()
	tell, gcsErrors, idleGPUHours := known.state, known.gcsErrors, known.idleGPUHours
	known.mu.Unlock()
	if gcsErrors > 0 {
		s.tell(m.gcsErrors, gcsErrors)
	}
	s.tell(m.idleGPUHours, idleGPUHours)
	if tell == nil {
		return
	}
	state := tell()
	s.tell(m.managed, choose(state.Managed, 1.0, 0.0))
	if state.DataAge >= 0 {
		s.tell(m.dataAge, state.DataAge.Seconds())
	}
	for _, reason := range sorted(state.Unmet) {
		s.tell(m.unmet, float64(state.Unmet[reason]), "reason", reason)
	}
	for _, status := range sorted(state.Requested) {
		s.tell(m.requested, float64(state.Requested[status]), "status", status)
	}
	for _, status := range sorted(state.Requests) {
		s.tell(m.requests, float64(state.Requests[status]), "status", status)
	}
	m.fillDemand(s, state.Demand)
	for _, g := range state.Groups {
		m.fillGroup(s, g)
	}
	m.fillRay(s, state.Ray)
}

func (m *Metrics) fillDemand(s *sheet, demand map[string]map[string]float64) {
	resources, left := bounded(demand, s.limits.Resources)
	for _, resource := range resources {
		for _, state := range sorted(demand[resource]) {
			s.tell(m.demand, demand[resource][state], "resource", resource, "state", state)
		}
	}
	for _, resource := range left {
		s.dropped += len(demand[resource])
	}
}

func (m *Metrics) fillGroup(s *sheet, g Group) {
	s.tell(m.workers, float64(g.Current), "group", g.Name, "of", "current")
	s.tell(m.workers, float64(g.Desired), "group", g.Name, "of", "desired")
	s.tell(m.workers, float64(g.Asked), "group", g.Name, "of", "asked")
	s.tell(m.workers, float64(g.Ready), "group", g.Name, "of", "ready")
	s.tell(m.workers, float64(g.Min), "group", g.Name, "of", "min")
	s.tell(m.workers, float64(g.Max), "group", g.Name, "of", "max")
	for _, column := range sorted(g.NumGPUs) {
		s.tell(m.numGPUs, g.NumGPUs[column], "group", g.Name, "column", column)
	}
	s.tell(m.mismatch, choose(g.NumGPUsMismatch, 1.0, 0.0), "group", g.Name)
	if g.Cooldown > 0 {
		s.tell(m.cooldown, g.Cooldown.Seconds(), "group", g.Name)
	}
	if slice := g.Slice; slice != nil && slice.MemoryBytes != nil {
		s.tell(m.sliceMemory, *slice.MemoryBytes, "group", g.Name, "kind", slice.Kind, "profile", slice.Profile, "isolation", slice.Isolation)
	}
	if slice := g.Slice; slice != nil && slice.Compute != nil {
		s.tell(m.sliceCompute, *slice.Compute, "group", g.Name)
	}
	for _, pool := range g.Pools {
		m.fillPool(s, g.Name, pool)
	}
}

func (m *Metrics) fillPool(s *sheet, group string, pool Pool) {
	if pool.Limit != nil {
		s.tell(m.poolLimit, float64(*pool.Limit), "group", group, "pool", pool.Name)
	}
	for _, cards := range pool.Cards {
		tell := func(of string, count int64) {
			s.tell(m.cards, float64(count), "group", group, "pool", pool.Name, "product", cards.Product, "of", of)
		}
		tell("all", cards.All)
		tell("cut", cards.Cut)
		if cards.Busy != nil {
			tell("busy", *cards.Busy)
		}
	}
}

// fillRay tells what Ray's own autoscaler would, by its labels and KubeRay's: the cluster's name is ray_io_cluster.
func (m *Metrics) fillRay(s *sheet, ray Ray) {
	if ray.Session == "" {
		return // Ray's dashboards choose by session; a session that is over has no series in Ray either
	}
	s.own[1].Key = "ray_io_cluster"
	s.own = append(s.own, attribute.String("SessionName", ray.Session))
	for _, kind := range sorted(ray.Nodes) {
		counts := ray.Nodes[kind]
		s.tell(m.activeNodes, float64(counts.Active), "NodeType", kind)
		s.tell(m.pendingNodes, float64(counts.Pending), "NodeType", kind)
		s.tell(m.recentlyFailedNodes, float64(counts.Failed), "NodeType", kind)
	}
	for _, part := range []struct {
		instrument metric.Float64Observable
		amounts    map[string]float64
	}{{m.clusterResources, ray.ClusterResources}, {m.pendingResources, ray.PendingResources}} {
		resources, left := bounded(part.amounts, s.limits.Resources)
		for _, resource := range resources {
			s.tell(part.instrument, part.amounts[resource], "resource", resource)
		}
		s.dropped += len(left)
	}
}

// first are the resources that are told before any others.
var first = []string{"CPU", "GPU", "memory"}

// bounded returns the names that are told, at most limit of them, and those that are left out.
func bounded[V any](amounts map[string]V, limit int) (told, left []string) {
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
