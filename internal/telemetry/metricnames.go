package telemetry

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"
)

// instruments is the single list of everything that Heliostat measures. Prometheus and OTLP use the same names
// (docs/reference/telemetry.md). Names and labels are stable, because alerts and dashboards depend on them.
//
// Instruments for events record values as they happen, and have no cluster label. Instruments for the state of clusters
// are observable: a collection sets them for the clusters that exist at that time, so a deleted cluster has no series.
type instruments struct {
	events
	states
	raysOwn
}

// events records events. Its labels are codes only.
type events struct {
	cycles          metric.Int64Counter
	cycleSeconds    metric.Float64Histogram
	plannerSeconds  metric.Float64Histogram
	planWaitSeconds metric.Float64Histogram
	actions         metric.Int64Counter
	actionSeconds   metric.Float64Histogram
	decisions       metric.Int64Counter
	seenToPatched   metric.Float64Histogram
	stageSeconds    metric.Float64Histogram
	apiErrors       metric.Int64Counter
	exportFailures  metric.Int64Counter
}

// states has the current state of each cluster.
type states struct {
	managed       metric.Float64ObservableGauge
	dataAge       metric.Float64ObservableGauge
	gcsErrors     metric.Float64ObservableCounter
	truncated     metric.Float64ObservableCounter
	reverts       metric.Float64ObservableCounter
	idleGPUHours  metric.Float64ObservableCounter
	podSeconds    metric.Float64ObservableCounter
	gpuSeconds    metric.Float64ObservableCounter
	cost          metric.Float64ObservableCounter
	unmet         metric.Float64ObservableGauge
	going         metric.Float64ObservableGauge
	guarded       metric.Float64ObservableGauge
	demand        metric.Float64ObservableGauge
	requested     metric.Float64ObservableGauge
	requests      metric.Float64ObservableGauge
	workers       metric.Float64ObservableGauge
	cooldown      metric.Float64ObservableGauge
	numGPUs       metric.Float64ObservableGauge
	mismatch      metric.Float64ObservableGauge
	sliceMemory   metric.Float64ObservableGauge
	sliceCompute  metric.Float64ObservableGauge
	poolLimit     metric.Float64ObservableGauge
	cards         metric.Float64ObservableGauge
	clusters      metric.Float64ObservableGauge
	leading       metric.Float64ObservableGauge
	shards        metric.Float64ObservableGauge
	unowned       metric.Float64ObservableGauge
	shardsReadAge metric.Float64ObservableGauge
	droppedSeries metric.Float64ObservableGauge
	boundUsed     metric.Float64ObservableGauge
}

// raysOwn repeats what Ray's autoscaler exports and Ray's dashboards show, with Ray's names and labels
// (docs/reference/facts.md#autoscaler-metrics).
type raysOwn struct {
	activeNodes         metric.Float64ObservableGauge
	pendingNodes        metric.Float64ObservableGauge
	recentlyFailedNodes metric.Float64ObservableGauge
	clusterResources    metric.Float64ObservableGauge
	pendingResources    metric.Float64ObservableGauge
}

// Bucket bounds in seconds. A cycle takes about a millisecond. The plans of a cycle with very much demand take as long
// as 2 s or a little longer. A patch, with the API server, takes about ten milliseconds. A
// node of a cloud takes minutes, and so does the download of a large image.
var (
	cycleBounds   = []float64{0.0005, 0.002, 0.008, 0.032, 0.128, 0.512, 2.048, 8.192}
	plannerBounds = []float64{0.0001, 0.0005, 0.002, 0.008, 0.032, 0.128, 0.512, 2.048, 4, 8}
	waitBounds    = []float64{0.1, 0.5, 2, 8, 30, 120}
	actionBounds  = []float64{0.001, 0.004, 0.016, 0.064, 0.256, 1.024, 4.096}
	patchedBounds = []float64{0.002, 0.005, 0.0125, 0.03125, 0.078125, 0.1953125, 0.48828125, 1.220703125, 3.0517578125}
	stageBounds   = []float64{0.01, 0.05, 0.25, 1, 2, 5, 10, 20, 45, 90, 180, 300, 600, 1200}
)

// newInstruments creates all instruments. It also returns those that a collection sets.
func newInstruments(meter metric.Meter) (*instruments, []metric.Observable, error) {
	m := maker{meter: meter}
	all := &instruments{
		events: events{
			cycles:       m.counter("heliostat_cycles_total", "{cycle}", "Cycles by result: ok or error."),
			cycleSeconds: m.histogram("heliostat_cycle_seconds", "How long a cycle took, calls included.", cycleBounds),
			plannerSeconds: m.histogram("heliostat_planner_seconds", "How long all plans of a cycle took.",
				plannerBounds),
			planWaitSeconds: m.histogram("heliostat_plan_wait_seconds",
				"How long the plans of a cycle with very much demand waited for those of other RayClusters.",
				waitBounds),
			actions: m.counter("heliostat_actions_total", "{action}",
				"Patches of RayClusters, drains of Ray nodes and failed reports, by result."),
			actionSeconds: m.histogram("heliostat_action_seconds", "How long a patch or drain took.", actionBounds),
			decisions: m.counter("heliostat_decisions_total", "{decision}",
				"Decisions carried out, by what was done and the code of its reason."),
			seenToPatched: m.histogram("heliostat_seen_to_patched_seconds",
				"From growth first wanted to replicas patched.", patchedBounds),
			stageSeconds: m.histogram(
				"heliostat_stage_seconds",
				"How long each stage of a scale-up took: seen_to_patched, patched_to_scheduled, scheduled_to_alive, "+
					"and seen_to_alive for all of them.",
				stageBounds,
			),
			apiErrors: m.counter("heliostat_api_errors_total", "{error}",
				"Calls to the Kubernetes API that failed, by method and status code; code none without an answer."),
			exportFailures: m.counter("heliostat_export_failures_total", "{export}",
				"Batches that the OTLP collector did not take, by signal."),
		},
		states: states{
			managed: m.gauge("heliostat_cluster_managed", "", "1 while Heliostat may write to the RayCluster."),
			dataAge: m.gauge("heliostat_data_age_seconds", "s",
				"Age of the Ray data on which the last decision rests."),
			gcsErrors: m.total("heliostat_gcs_errors_total", "{error}", "Cycles in which the GCS did not answer."),
			truncated: m.total("heliostat_demand_truncated_total", "{cycle}",
				"Cycles whose reading of Ray lacked some of the demand, because there is too much of it."),
			reverts: m.total("heliostat_replicas_reverted_total", "{revert}",
				"Times that another field manager set back the replicas that Heliostat wrote."),
			idleGPUHours: m.total("heliostat_idle_gpu_hours_total", "h",
				"GPUs of living Ray workers that no task or actor held, times hours, by cause."),
			podSeconds: m.total("heliostat_pod_seconds_total", "s",
				"Pods times seconds (the head is one) by group, owner, Ray job and cause: what they were spent for."),
			gpuSeconds: m.total("heliostat_gpu_seconds_total", "s",
				"GPUs of pods on nodes, as Ray counts them, times seconds, by group, owner, Ray job and cause."),
			cost: m.total("heliostat_cost_total", "",
				"Money that pods cost by the prices of their nodes, by group, owner, Ray job and cause."),
			unmet: m.gauge("heliostat_unmet_demand", "{request}",
				"Requests and gangs that the last plan does not serve, by reason."),
			going: m.gauge("heliostat_workers_going", "{worker}",
				"Workers whose machine is about to go, by sign."),
			guarded: m.gauge("heliostat_pods_guarded", "{pod}",
				"Heads and workers that node autoscalers do not evict, by whose guard they have."),
			demand: m.gauge(
				"heliostat_demand",
				"",
				"What tasks, actors and gangs wait for, by Ray resource and by state: served, waiting, launching or "+
					"a reason why not.",
			),
			requested: m.gauge("heliostat_requested_bundles", "{bundle}",
				"Bundles of request_resources by status: served, waiting, launching or a reason why not."),
			requests: m.gauge(
				"heliostat_requests",
				"{request}",
				"Requests that owners have made in their own names, by status: waiting, satisfied, capped, "+
					"impossible or expired.",
			),
			workers: m.gauge("heliostat_group_workers", "{pod}",
				"Pods of a worker group: current, desired, asked (by replicas), ready (alive in Ray), min and max."),
			cooldown: m.gauge("heliostat_group_cooldown_seconds", "s",
				"For how long a group that failed takes no launches yet; absent while it takes them."),
			numGPUs: m.gauge(
				"heliostat_group_num_gpus",
				"{gpu}",
				"GPUs of one worker of a group: declared in the spec, derived for ray start, reported by the device "+
					"plugin, announced by the newest Ray node (ray). Absent where not known.",
			),
			mismatch: m.gauge("heliostat_group_num_gpus_mismatch", "",
				"1 while a new worker of the group announces another number of GPUs than the device plugin gives it."),
			sliceMemory: m.gauge(
				"heliostat_group_slice_memory_bytes",
				"By",
				"Memory behind one GPU of a worker of the group, by what the GPU is: kind, MIG profile and "+
					"isolation. Absent where not known.",
			),
			sliceCompute: m.gauge("heliostat_group_slice_compute_ratio", "1",
				"Part of a physical card's compute that one GPU of a worker of the group is sure of."),
			poolLimit: m.gauge(
				"heliostat_group_pool_limit",
				"{pod}",
				"Pods of the group that a pool of nodes can ever have, on nodes that are there and nodes that it may "+
					"add; absent where nothing bounds it.",
			),
			cards: m.gauge("heliostat_group_cards", "{card}",
				"Physical cards of the nodes of a pool that hold pods of the group: all, cut with MIG, and busy."),
			clusters: m.gauge("heliostat_clusters", "{cluster}",
				"RayClusters that this process looks after; none before it decides."),
			leading: m.gauge(
				"heliostat_leading",
				"",
				"1 while this process decides and may write; 0 while it waits: for the API server, for its caches, "+
					"or for the lease that another holds.",
			),
			shards: m.gauge("heliostat_shards", "{shard}",
				"Shards that divide the RayClusters, as this process sees them; the label shard names this process. "+
					"Absent without --shards."),
			unowned: m.gauge("heliostat_clusters_without_shard", "{cluster}",
				"RayClusters that no shard decides about, by the last reading of this process. Absent without "+
					"--shards and before the first reading."),
			shardsReadAge: m.gauge("heliostat_shards_read_age_seconds", "s",
				"How long ago this process has read the Leases of all shards. Absent without --shards and before the "+
					"first reading."),
			boundUsed: m.gauge("heliostat_bound_used_ratio", "",
				"How much of a bound of what the process keeps is in use: 1 is all of it."),
			droppedSeries: m.gauge("heliostat_dropped_series", "{series}",
				"Series of clusters that this collection left out because there are too many."),
		},
		raysOwn: raysOwn{
			activeNodes:  m.gauge("autoscaler_active_nodes", "{node}", "Ray nodes that are alive, by node type."),
			pendingNodes: m.gauge("autoscaler_pending_nodes", "{node}", "Ray nodes on their way, by node type."),
			recentlyFailedNodes: m.gauge("autoscaler_recently_failed_nodes", "{node}",
				"Ray nodes that are leaving, by node type."),
			clusterResources: m.gauge("autoscaler_cluster_resources", "",
				"Logical resources of the nodes that are alive."),
			pendingResources: m.gauge("autoscaler_pending_resources", "",
				"Logical resources of the nodes on their way."),
		},
	}
	if err := errors.Join(m.errs...); err != nil {
		return nil, nil, fmt.Errorf("creating instruments: %w", err)
	}
	return all, m.observed, nil
}

// maker creates instruments and keeps the observable ones, and the errors.
type maker struct {
	meter    metric.Meter
	observed []metric.Observable
	errs     []error
}

func (m *maker) counter(name, unit, help string) metric.Int64Counter {
	made, err := m.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(help))
	m.keep(err)
	return made
}

func (m *maker) histogram(name, help string, bounds []float64) metric.Float64Histogram {
	made, err := m.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(help),
		metric.WithExplicitBucketBoundaries(bounds...))
	m.keep(err)
	return made
}

func (m *maker) gauge(name, unit, help string) metric.Float64ObservableGauge {
	made, err := m.meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(help))
	m.keep(err)
	m.observed = append(m.observed, made)
	return made
}

// total returns a counter whose sum is stored outside the instrument.
func (m *maker) total(name, unit, help string) metric.Float64ObservableCounter {
	made, err := m.meter.Float64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(help))
	m.keep(err)
	m.observed = append(m.observed, made)
	return made
}

func (m *maker) keep(err error) {
	if err != nil {
		m.errs = append(m.errs, err)
	}
}
