package telemetry

import (
	"fmt"

	"go.opentelemetry.io/otel/metric"
)

// Bucket bounds in seconds. A cycle takes about a millisecond. The plans of a cycle with very much demand take as long
// as 2 s or a little longer. A patch, with the API server, takes about ten milliseconds. A
// node of a cloud takes minutes, and so does the download of a large image.
var (
	cycleBounds   = []float64{0.0005, 0.002, 0.008, 0.032, 0.128, 0.512, 2.048, 8.192}
	plannerBounds = []float64{0.0001, 0.0005, 0.002, 0.008, 0.032, 0.128, 0.512, 2.048, 4, 8}
	actionBounds  = []float64{0.001, 0.004, 0.016, 0.064, 0.256, 1.024, 4.096}
	patchedBounds = []float64{0.002, 0.005, 0.0125, 0.03125, 0.078125, 0.1953125, 0.48828125, 1.220703125, 3.0517578125}
	stageBounds   = []float64{0.01, 0.05, 0.25, 1, 2, 5, 10, 20, 45, 90, 180, 300, 600, 1200}
)

// kind is how an instrument gets its values.
type kind int

// Counters and histograms record events as they happen. Their labels are codes only, and never a cluster. Gauges and
// totals have the current state: a collection sets them for the clusters that exist at that time, so a deleted cluster
// has no series. A total is a counter whose sum is stored outside the instrument.
const (
	counter kind = iota
	histogram
	gauge
	total
)

// instruments is the single list of everything that Heliostat measures. Prometheus and OTLP use the same names
// (docs/reference/telemetry.md). Names and labels are stable, because alerts and dashboards depend on them. Those that
// begin with autoscaler_ repeat what Ray's autoscaler exports and Ray's dashboards show, with Ray's names and labels
// (docs/reference/facts.md#autoscaler-metrics).
var instruments = []struct {
	kind             kind
	name, unit, help string
	bounds           []float64
}{
	{counter, "heliostat_cycles_total", "{cycle}", "Cycles by result: ok or error.", nil},
	{histogram, "heliostat_cycle_seconds", "s", "How long a cycle took, calls included.", cycleBounds},
	{histogram, "heliostat_planner_seconds", "s", "How long all plans of a cycle took.", plannerBounds},
	{counter, "heliostat_actions_total", "{action}",
		"Patches of RayClusters, drains of Ray nodes and failed reports, by result.", nil},
	{histogram, "heliostat_action_seconds", "s", "How long a patch or drain took.", actionBounds},
	{counter, "heliostat_decisions_total", "{decision}",
		"Decisions carried out, by what was done and the code of its reason.", nil},
	{histogram, "heliostat_seen_to_patched_seconds", "s",
		"From growth first wanted to replicas patched.", patchedBounds},
	{histogram, "heliostat_stage_seconds", "s",
		"How long each stage of a scale-up took: seen_to_patched, patched_to_scheduled, scheduled_to_alive, and " +
			"seen_to_alive for all of them.", stageBounds},
	{counter, "heliostat_api_errors_total", "{error}",
		"Calls to the Kubernetes API that failed, by method and status code; code none without an answer.", nil},
	{gauge, "heliostat_cluster_managed", "", "1 while Heliostat may write to the RayCluster.", nil},
	{gauge, "heliostat_data_age_seconds", "s", "Age of the Ray data on which the last decision rests.", nil},
	{total, "heliostat_gcs_errors_total", "{error}", "Cycles in which the GCS did not answer.", nil},
	{total, "heliostat_replicas_reverted_total", "{revert}",
		"Times that another field manager set back the replicas that Heliostat wrote.", nil},
	{total, "heliostat_idle_gpu_hours_total", "h",
		"GPUs of living Ray workers that no task or actor held, times hours, by cause.", nil},
	{total, "heliostat_gpu_seconds_total", "s",
		"GPUs of pods on nodes, as Ray counts them, times seconds, by group, owner and cause.", nil},
	{total, "heliostat_cost_total", "",
		"Money that pods cost by the prices of their nodes, by group, owner and cause.", nil},
	{gauge, "heliostat_unmet_demand", "{request}",
		"Requests and gangs that the last plan does not serve, by reason.", nil},
	{gauge, "heliostat_workers_going", "{worker}", "Workers that leave or have a bad GPU, by sign.", nil},
	{gauge, "heliostat_pods_guarded", "{pod}",
		"Heads and workers that node autoscalers do not evict, by whose guard they have.", nil},
	{gauge, "heliostat_demand", "",
		"What tasks, actors and gangs wait for, by Ray resource and by state: served, waiting, launching or a " +
			"reason why not.", nil},
	{gauge, "heliostat_requested_bundles", "{bundle}",
		"Bundles of request_resources by status: served, waiting, launching or a reason why not.", nil},
	{gauge, "heliostat_requests", "{request}",
		"Requests that owners have made in their own names, by status: waiting, satisfied, capped, impossible or " +
			"expired.", nil},
	{gauge, "heliostat_group_workers", "{pod}",
		"Pods of a worker group: current, desired, asked (by replicas), ready (alive in Ray), min and max.", nil},
	{gauge, "heliostat_group_cooldown_seconds", "s",
		"For how long a group that failed takes no launches yet; absent while it takes them.", nil},
	{gauge, "heliostat_group_num_gpus", "{gpu}",
		"GPUs of one worker of a group: declared in the spec, derived for ray start, reported by the device " +
			"plugin, announced by the newest Ray node (ray). Absent where not known.", nil},
	{gauge, "heliostat_group_num_gpus_mismatch", "",
		"1 while a new worker of the group announces another number of GPUs than the device plugin gives it.", nil},
	{gauge, "heliostat_group_slice_memory_bytes", "By",
		"Memory behind one GPU of a worker of the group, by what the GPU is: kind, MIG profile and isolation. " +
			"Absent where not known.", nil},
	{gauge, "heliostat_group_slice_compute_ratio", "1",
		"Part of a physical card's compute that one GPU of a worker of the group is sure of.", nil},
	{gauge, "heliostat_group_pool_limit", "{pod}",
		"Pods of the group that a pool of nodes can ever have, on nodes that are there and nodes that it may add; " +
			"absent where nothing bounds it.", nil},
	{gauge, "heliostat_clusters", "{cluster}",
		"RayClusters that this process looks after; none before it decides.", nil},
	{gauge, "heliostat_leading", "",
		"1 while this process decides and may write; 0 while it waits: for the API server, for its caches, or for " +
			"the lease that another holds.", nil},
	{gauge, "heliostat_shards", "{shard}",
		"Shards that divide the RayClusters, as this process sees them; the label shard names this process. " +
			"Absent without --shards.", nil},
	{gauge, "heliostat_clusters_without_shard", "{cluster}",
		"RayClusters that no shard decides about, by the last reading of this process. Absent without --shards " +
			"and before the first reading.", nil},
	{gauge, "heliostat_shards_read_age_seconds", "s",
		"How long ago this process has read the Leases of all shards. Absent without --shards and before the " +
			"first reading.", nil},
	{gauge, "autoscaler_active_nodes", "{node}", "Ray nodes that are alive, by node type.", nil},
	{gauge, "autoscaler_pending_nodes", "{node}", "Ray nodes on their way, by node type.", nil},
	{gauge, "autoscaler_recently_failed_nodes", "{node}", "Ray nodes that are leaving, by node type.", nil},
	{gauge, "autoscaler_cluster_resources", "", "Logical resources of the nodes that are alive.", nil},
	{gauge, "autoscaler_pending_resources", "", "Logical resources of the nodes on their way.", nil},
}

// create creates all instruments. It returns those that a collection sets.
func (m *Metrics) create(meter metric.Meter) (observed []metric.Observable, err error) {
	m.counters, m.histograms = map[string]metric.Int64Counter{}, map[string]metric.Float64Histogram{}
	m.observed = map[string]metric.Float64Observable{}
	for _, row := range instruments {
		unit, help := metric.WithUnit(row.unit), metric.WithDescription(row.help)
		switch row.kind {
		case counter:
			m.counters[row.name], err = meter.Int64Counter(row.name, unit, help)
		case histogram:
			m.histograms[row.name], err = meter.Float64Histogram(row.name, unit, help,
				metric.WithExplicitBucketBoundaries(row.bounds...))
		case gauge:
			m.observed[row.name], err = meter.Float64ObservableGauge(row.name, unit, help)
		case total:
			m.observed[row.name], err = meter.Float64ObservableCounter(row.name, unit, help)
		}
		if err != nil {
			return nil, fmt.Errorf("creating the instrument %s: %w", row.name, err)
		}
		if made := m.observed[row.name]; made != nil {
			observed = append(observed, made)
		}
	}
	return observed, nil
}
