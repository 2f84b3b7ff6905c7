package telemetry

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// maxSeries limits the series of each instrument, because users choose the names of groups and of Ray resources. The
// SDK makes one of those beyond it, with the label otel_metric_overflow: the sum of totals, and the last of gauges. The
// oldest RayClusters keep theirs.
const maxSeries = 20_000

// collect sets the observable instruments.
func (m *Metrics) collect(_ context.Context, observer metric.Observer) error {
	all := m.oldestFirst()
	for _, known := range all {
		m.setCluster(&seriesWriter{observer: observer, observed: m.observed, own: []attribute.KeyValue{
			attribute.String("namespace", known.key.Namespace),
			attribute.String("cluster", known.key.Name),
		}}, known)
	}
	observer.ObserveFloat64(m.observed["heliostat_clusters"], float64(len(all)))
	leads := m.config.Leads != nil && m.config.Leads()
	observer.ObserveFloat64(m.observed["heliostat_leading"], choose(leads, 1.0, 0.0))
	m.observeDivision(observer)
	return nil
}

func (m *Metrics) observeDivision(observer metric.Observer) {
	if m.config.Division == nil {
		return
	}
	if known, divided := m.config.Division(); divided {
		observer.ObserveFloat64(m.observed["heliostat_shards"], float64(known.Shards),
			metric.WithAttributes(attribute.String("shard", known.Shard)))
		if known.ReadAge >= 0 {
			observer.ObserveFloat64(m.observed["heliostat_clusters_without_shard"], float64(known.Unowned))
			observer.ObserveFloat64(m.observed["heliostat_shards_read_age_seconds"], known.ReadAge.Seconds())
		}
	}
}

// seriesWriter sets the series of one cluster during one collection.
type seriesWriter struct {
	observer    metric.Observer
	observed    map[string]metric.Float64Observable
	own, labels []attribute.KeyValue
}

// set sets one series. names are additional label names and values.
func (s *seriesWriter) set(instrument string, value float64, names ...string) {
	s.labels = append(s.labels[:0], s.own...)
	for i := 0; i < len(names); i += 2 {
		s.labels = append(s.labels, attribute.String(names[i], names[i+1]))
	}
	s.observer.ObserveFloat64(s.observed[instrument], value, metric.WithAttributeSet(attribute.NewSet(s.labels...)))
}

// setCluster sets the series of one cluster, the most important first.
func (m *Metrics) setCluster(s *seriesWriter, known *cluster) {
	known.mu.Lock()
	d, gcsErrors, reverts, idleHours := known.decision, known.gcsErrors, known.reverts, maps.Clone(known.idleHours)
	readCosts, currency := known.costs, known.currency
	known.mu.Unlock()
	// From 0, because a rate does not count what a new series begins with.
	s.set("heliostat_gcs_errors_total", gcsErrors)
	s.set("heliostat_replicas_reverted_total", reverts)
	setEach(s, "heliostat_idle_gpu_hours_total", "cause", idleHours)
	if d != nil {
		s.setDecision(d, m.now())
	}
	if readCosts != nil {
		for _, spent := range readCosts() {
			s.setCost(spent, currency)
		}
	}
	if d != nil {
		s.setRay(d) // last, because it changes the labels
	}
}

// setEach sets one series for each value of a label.
func setEach[N int | int64 | float64](s *seriesWriter, name, label string, values map[string]N, labels ...string) {
	for _, value := range sorted(values) {
		s.set(name, float64(values[value]), append(labels, label, value)...)
	}
}

// setCost sets the counters of one account, without those that it does not have.
func (s *seriesWriter) setCost(spent ledger.Row, currency string) {
	labels := []string{"group", spent.Group, "owner", spent.Owner, "cause", string(spent.Cause)}
	if spent.GPUSeconds > 0 {
		s.set("heliostat_gpu_seconds_total", spent.GPUSeconds, labels...)
	}
	if spent.Money > 0 {
		s.set("heliostat_cost_total", spent.Money, append(labels, "currency", currency)...)
	}
}

// setDecision sets the series of what one cluster is after a decision, at now.
func (s *seriesWriter) setDecision(d *addon.Decision, now time.Time) {
	s.set("heliostat_cluster_managed", choose(d.Mode == nodepool.Managed, 1.0, 0.0))
	if age := d.Age(now); age >= 0 && d.Mode != nodepool.Off { // in mode off, Ray is not read
		s.set("heliostat_data_age_seconds", age.Seconds())
	}
	going, guarded, ready := map[string]int64{}, map[string]int64{}, map[string]int{}
	for n := range nodesOf(d) {
		if n.Guard != "" {
			guarded[n.Guard]++
		}
		if n.Going != nil {
			going[string(n.Going.Sign)]++
		}
		if alive(n) {
			ready[n.Group]++
		}
	}
	demand, requested := demandOf(d.Plan.Summary)
	setEach(s, "heliostat_unmet_demand", "reason", Unmet(&d.Plan))
	setEach(s, "heliostat_workers_going", "sign", going)
	setEach(s, "heliostat_pods_guarded", "by", guarded)
	setEach(s, "heliostat_requested_bundles", "status", requested)
	setEach(s, "heliostat_requests", "status", requestsOf(d))
	for _, resource := range sorted(demand) {
		setEach(s, "heliostat_demand", "state", demand[resource], "resource", resource)
	}
	for _, g := range d.Plan.Groups {
		s.setGroup(d, g, ready[g.Name])
	}
}

// nodesOf returns the head, if it is known, and the nodes.
func nodesOf(d *addon.Decision) iter.Seq[*planner.Node] {
	return func(yield func(*planner.Node) bool) {
		if d.Snapshot.Head != nil && !yield(d.Snapshot.Head) {
			return
		}
		for i := range d.Snapshot.Nodes {
			if !yield(&d.Snapshot.Nodes[i]) {
				return
			}
		}
	}
}

func (s *seriesWriter) setGroup(d *addon.Decision, g planner.GroupPlan, ready int) {
	asked := 0
	if group, there := d.Kube.Group(g.Name); there {
		asked = group.Goal() * group.NumOfHosts
	}
	for _, part := range []struct {
		of   string
		pods int
	}{{"current", g.Current}, {"desired", g.Desired}, {"asked", asked}, {"ready", ready}, {"min", g.Min},
		{"max", g.Max}} {
		s.set("heliostat_group_workers", float64(part.pods), "group", g.Name, "of", part.of)
	}
	numbers := d.NumGPUs[g.Name]
	columns := map[string]float64{}
	for column, amount := range map[string]*raydemand.Amount{
		"declared": numbers.Declared, "derived": numbers.Derived, "reported": numbers.Reported, "ray": numbers.Ray,
	} {
		if amount != nil {
			columns[column] = amount.Float()
		}
	}
	setEach(s, "heliostat_group_num_gpus", "column", columns, "group", g.Name)
	s.set("heliostat_group_num_gpus_mismatch", choose(numbers.Mismatch, 1.0, 0.0), "group", g.Name)
	at := slices.IndexFunc(d.Snapshot.Groups, func(known planner.Group) bool { return known.Name == g.Name })
	if at < 0 {
		return
	}
	known := &d.Snapshot.Groups[at]
	if known.CoolingSeconds > 0 {
		s.set("heliostat_group_cooldown_seconds", known.CoolingSeconds, "group", g.Name)
	}
	if slice := known.Slice; slice != nil && slice.MemoryMiB != nil {
		s.set("heliostat_group_slice_memory_bytes", float64(*slice.MemoryMiB)*(1<<20), "group", g.Name,
			"kind", string(slice.Kind), "profile", slice.Profile, "isolation", string(slice.Isolation))
	}
	if slice := known.Slice; slice != nil && slice.ComputeFraction != nil {
		s.set("heliostat_group_slice_compute_ratio", *slice.ComputeFraction, "group", g.Name)
	}
	for _, pool := range known.Pools {
		if pool.MaxPods != nil {
			s.set("heliostat_group_pool_limit", float64(*pool.MaxPods), "group", g.Name, "pool", pool.Name)
		}
	}
}

// setRay sets the series that Ray's own autoscaler exports, counted as it does, including the head, with the labels of
// Ray and of KubeRay. The label ray_io_cluster is the name of the cluster.
func (s *seriesWriter) setRay(d *addon.Decision) {
	if d.Session == "" {
		return // Ray's dashboards select by session, and Ray exports no series for a session that has ended
	}
	s.own[1].Key = "ray_io_cluster"
	s.own = append(s.own, attribute.String("SessionName", d.Session))
	type counts struct{ active, pending, failed int }
	kinds, cluster, coming := map[string]counts{}, map[string]float64{}, map[string]float64{}
	for _, g := range d.Snapshot.Groups {
		kinds[g.Name] = counts{}
	}
	for n := range nodesOf(d) {
		of, resources := kinds[n.Group], map[string]float64(nil)
		switch {
		case alive(n):
			of.active++
			resources = cluster
		case n.State == planner.Pending:
			of.pending++
			resources = coming
		case n.State == planner.Leaving:
			of.failed++
		}
		kinds[n.Group] = of
		if resources != nil {
			for name, amount := range n.Total {
				resources[name] += amount.Float()
			}
		}
	}
	for _, kind := range sorted(kinds) {
		s.set("autoscaler_active_nodes", float64(kinds[kind].active), "NodeType", kind)
		s.set("autoscaler_pending_nodes", float64(kinds[kind].pending), "NodeType", kind)
		s.set("autoscaler_recently_failed_nodes", float64(kinds[kind].failed), "NodeType", kind)
	}
	setEach(s, "autoscaler_cluster_resources", "resource", cluster)
	setEach(s, "autoscaler_pending_resources", "resource", coming)
}

// Unmet counts unserved demand by the code of its reason.
func Unmet(p *planner.Plan) map[string]int64 {
	unmet := map[string]int64{}
	for _, u := range slices.Concat(p.InfeasibleRequests, p.InfeasibleRequestResources) {
		unmet[u.Reason.Code] += u.Count
	}
	for _, u := range p.InfeasibleGangRequests {
		unmet[u.Reason.Code]++
	}
	return unmet
}

// demandOf sums pending demand by resource and state, and the bundles of request_resources by state.
func demandOf(summary []planner.DemandSummary) (demand map[string]map[string]float64, requested map[string]int64) {
	demand, requested = map[string]map[string]float64{}, map[string]int64{}
	for _, d := range summary {
		bundles := []raydemand.Bundle{d.Resources}
		if d.Gang != nil {
			bundles = d.Gang.Bundles
		}
		for state, count := range map[string]int64{
			"served": d.Served, "waiting": d.Waiting, "launching": d.Launching, planner.Impossible: d.Impossible,
			planner.Trying: d.Trying, planner.PoolPromised: d.PoolPromised, planner.Capped: d.Capped,
			planner.Closed: d.Closed, planner.CoolingDown: d.CoolingDown,
		} {
			if count == 0 {
				continue
			}
			if d.Kind == planner.KindRequestResources {
				requested[state] += count
				continue
			}
			for _, bundle := range bundles {
				for resource, amount := range bundle {
					if demand[resource] == nil {
						demand[resource] = map[string]float64{}
					}
					demand[resource][state] += amount.Float() * float64(count)
				}
			}
		}
	}
	return demand, requested
}

// requestsOf counts the requests of owners by state. Plans do not contain those with an expired lease.
func requestsOf(d *addon.Decision) map[string]int64 {
	requests := map[string]int64{}
	for i := range d.Plan.Requests {
		if r := &d.Plan.Requests[i]; !r.Plain {
			requests[strings.ToLower(string(r.State))]++
		}
	}
	for i := range d.Kube.Owned {
		if r := &d.Kube.Owned[i]; !r.Deleting && r.Unreadable == "" && !r.Counts(d.UID, d.At) {
			requests[strings.ToLower(string(raydemand.RequestExpired))]++
		}
	}
	return requests
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
