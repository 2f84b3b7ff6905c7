package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// functions ignores the parts of a cycle that telemetry reads later.
var functions = cmpopts.IgnoreFields(telemetry.Cycle{}, "Decision", "Pods", "Moments")

// busy is a decision about a cluster with one idle worker, one draining worker, one pending worker and one expected
// worker.
func busy() *addon.Decision {
	d := decided()
	d.RayErr, d.Session, d.Planned = "", "session-1", time.Millisecond
	d.SeenToPatched = 5 * time.Millisecond
	gpus := func(total, free int64) (raydemand.Bundle, raydemand.Bundle) {
		return raydemand.Bundle{"GPU": raydemand.Whole(total)}, raydemand.Bundle{"GPU": raydemand.Whole(free)}
	}
	node := func(pod string, state planner.NodeState, total, free int64) planner.Node {
		n := planner.Node{Pod: pod, Group: "gpu", State: state}
		n.Total, n.Available = gpus(total, free)
		return n
	}
	d.Snapshot.Groups = []planner.Group{{Name: "gpu", CoolingSeconds: 30}}
	d.Snapshot.Head = &planner.Node{Pod: "head", Group: "headgroup", State: planner.Running, Total: raydemand.Bundle{"CPU": raydemand.Whole(2)}}
	d.Snapshot.Nodes = []planner.Node{
		node("busy", planner.Running, 8, 3), node("idle", planner.Idle, 8, 8), node("going", planner.Leaving, 8, 8),
		node("coming", planner.Pending, 8, 8), node("expected", planner.Pending, 8, 8),
	}
	d.Snapshot.Nodes[4].Expected = true
	d.Snapshot.Head.Guard, d.Snapshot.Nodes[0].Guard, d.Snapshot.Nodes[1].Guard = "heliostat", "heliostat", "user"
	d.Snapshot.Nodes[2].Going = departure.Of(departure.Cordoned, "cordoned")
	d.Pods = addon.PodsOf([]nodepool.Worker{{Pod: "coming", CreatedAt: d.At.Add(-time.Minute), ScheduledAt: d.At.Add(-time.Second)}})
	d.Plan.Groups[0].Reasons = []planner.Reason{{Code: planner.CodeLaunch}}
	d.Plan.Terminate = []planner.Termination{{Pod: "a", Reason: "idle"}}
	d.Plan.Summary = []planner.DemandSummary{
		{Kind: planner.KindRequest, Resources: raydemand.Bundle{"GPU": raydemand.One / 2}, Asked: 5, Served: 2, Capped: 3},
		{Kind: planner.KindGang, Gang: &raydemand.Gang{Bundles: []raydemand.Bundle{{"GPU": raydemand.One}, {"GPU": raydemand.One}}}, Asked: 1, Launching: 1},
		{Kind: planner.KindRequestResources, Resources: raydemand.Bundle{"GPU": raydemand.One}, Asked: 4, Served: 3, CoolingDown: 1},
	}
	d.Actions = slices.Clone(d.Recent)
	return d
}

func TestADecisionIsMeasured(t *testing.T) {
	d := busy()
	d.Findings = []raydemand.Finding{{Code: observe.FindingTruncated}}
	action := func(kind, result, decision, reason string, pods int) telemetry.Action {
		a := telemetry.Action{At: d.At, Kind: kind, Result: result, Decision: decision, Reason: reason, Pods: pods}
		if decision != "" {
			a.Group = "gpu"
		}
		if pods > 0 {
			a.Grown = "gpu"
		}
		return a
	}
	want := telemetry.Cycle{
		Namespace: "ml", Cluster: "llm", At: d.At, Took: 3 * time.Millisecond, Planned: time.Millisecond, Truncated: true,
		SeenToPatched: 5 * time.Millisecond,
		IdleGPUs:      map[string]float64{"no_idle_timeout": 8, "fragment": 3, "leaving": 8},
		Actions: []telemetry.Action{
			action("patch", "ok", "scale-up", "launch", 1),
			action("drain", "refused", "", "", 0),
			action("patch", "ok", "scale-down", "idle", -1),
			action("patch", "ok", "replace", "launch", 0),
		},
	}
	got := telemetry.CycleOf(d)
	if diff := cmp.Diff(want, got, functions); diff != "" {
		t.Errorf("measured (-want +got):\n%s", diff)
	}
	var pods []telemetry.Pod
	for p := range got.Pods {
		pods = append(pods, p)
	}
	if diff := cmp.Diff([]telemetry.Pod{{Name: "busy", Group: "gpu", Alive: true}, {Name: "idle", Group: "gpu", Alive: true}, {Name: "coming", Group: "gpu"}}, pods); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if created, scheduled := got.Moments("coming"); !created.Equal(d.At.Add(-time.Minute)) || !scheduled.Equal(d.At.Add(-time.Second)) {
		t.Errorf("coming was created at %v and scheduled at %v", created, scheduled)
	}
	if created, scheduled := got.Moments("unheard-of"); !created.IsZero() || !scheduled.IsZero() {
		t.Errorf("a pod that nobody knows was created at %v and scheduled at %v", created, scheduled)
	}
}

func TestWhatIsSoSinceADecisionIsTold(t *testing.T) {
	d := busy()
	d.NumGPUs = map[string]addon.GroupNumGPUs{}
	two := raydemand.Whole(2)
	numbers := addon.GroupNumGPUs{}
	numbers.Derived, numbers.Mismatch = &two, true
	d.NumGPUs["gpu"] = numbers
	d.Plan.Requests = []planner.RequestPlan{{ID: "a", State: raydemand.RequestCapped}, {ID: "b", State: raydemand.RequestCapped}, {Plain: true, State: raydemand.RequestWaiting}}
	over := nodepool.OwnedRequest{LeaseSeconds: 60, RenewedAt: d.At.Add(-time.Hour), ClusterUID: d.UID}
	d.Kube.Owned = []nodepool.OwnedRequest{over, {Deleting: true}}
	d.Snapshot.Groups[0].Slice = &planner.Slice{Kind: gpuinfo.MIG, Profile: "1g.10gb", Isolation: gpuinfo.Hardware, MemoryMiB: new(int64(10))}
	d.Snapshot.Groups[0].Pools = []planner.GroupPool{
		{Name: "a", MaxPods: new(int64(7))},
		{Name: "b"},
	}
	d.Kube.Groups = []nodepool.WorkerGroup{{Name: "gpu", Replicas: 3, Max: 4, NumOfHosts: 2}}
	want := []string{
		`autoscaler_active_nodes{NodeType=gpu} 2`, `autoscaler_active_nodes{NodeType=headgroup} 1`,
		`autoscaler_cluster_resources{resource=CPU} 2`, `autoscaler_cluster_resources{resource=GPU} 16`,
		`autoscaler_pending_nodes{NodeType=gpu} 2`, `autoscaler_pending_nodes{NodeType=headgroup} 0`,
		`autoscaler_pending_resources{resource=GPU} 16`,
		`autoscaler_recently_failed_nodes{NodeType=gpu} 1`, `autoscaler_recently_failed_nodes{NodeType=headgroup} 0`,
		`heliostat_cluster_managed{} 1`,
		`heliostat_demand{resource=GPU,state=capped} 1.5`, `heliostat_demand{resource=GPU,state=launching} 2`,
		`heliostat_demand{resource=GPU,state=served} 1`,
		`heliostat_group_cooldown_seconds{group=gpu} 30`,
		`heliostat_group_num_gpus_mismatch{group=gpu} 1`, `heliostat_group_num_gpus{column=derived,group=gpu} 2`,
		`heliostat_group_pool_limit{group=gpu,pool=a} 7`,
		`heliostat_group_slice_memory_bytes{group=gpu,isolation=hardware,kind=mig,profile=1g.10gb} 1.048576e+07`,
		`heliostat_group_workers{group=gpu,of=asked} 6`, `heliostat_group_workers{group=gpu,of=current} 1`,
		`heliostat_group_workers{group=gpu,of=desired} 2`, `heliostat_group_workers{group=gpu,of=max} 4`,
		`heliostat_group_workers{group=gpu,of=min} 0`, `heliostat_group_workers{group=gpu,of=ready} 2`,
		`heliostat_pods_guarded{by=heliostat} 2`, `heliostat_pods_guarded{by=user} 1`,
		`heliostat_requested_bundles{status=cooling_down} 1`, `heliostat_requested_bundles{status=served} 3`,
		`heliostat_requests{status=capped} 2`, `heliostat_requests{status=expired} 1`,
		`heliostat_unmet_demand{reason=capped} 6`, `heliostat_workers_going{sign=cordoned} 1`,
	}
	series, aged := gauges(t, d)
	if diff := cmp.Diff(want, series); diff != "" || !aged {
		t.Errorf("data has an age: %v; series (-want +got):\n%s", aged, diff)
	}
	d.Mode = nodepool.Off
	if _, aged := gauges(t, d); aged {
		t.Error("the data of a RayCluster that nobody looks at has an age")
	}
}

// gauges returns the gauges of the RayCluster of a decision without the labels that name it, and whether its data has
// an age.
func gauges(t *testing.T, d *addon.Decision) (series []string, aged bool) {
	t.Helper()
	registry := prometheus.NewRegistry()
	told, err := telemetry.Start(t.Context(), telemetry.Config{Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	told.Observe(telemetry.CycleOf(d))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			named := false
			for _, l := range m.GetLabel() {
				switch l.GetName() {
				case "cluster", "ray_io_cluster":
					named = true
				case "namespace", "SessionName":
				default:
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
			}
			switch {
			case !named || m.GetGauge() == nil:
			case family.GetName() == "heliostat_data_age_seconds":
				aged = true
			default:
				series = append(series, fmt.Sprintf("%s{%s} %v", family.GetName(), strings.Join(labels, ","), m.GetGauge().GetValue()))
			}
		}
	}
	slices.Sort(series)
	return series, aged
}

func TestACycleThatSawNothingMeasuresNothingOfTheOneBefore(t *testing.T) {
	d := busy()
	d.ObserveFailed, d.Err, d.Actions, d.SeenToPatched = true, "observing: forbidden", nil, 0
	if diff := cmp.Diff(telemetry.Cycle{Namespace: "ml", Cluster: "llm", At: d.At, Failed: true}, telemetry.CycleOf(d), functions); diff != "" {
		t.Errorf("measured (-want +got):\n%s", diff)
	}
	if telemetry.CycleOf(d).Pods != nil {
		t.Error("pods are told that nobody saw")
	}
	blind := busy()
	blind.RayErr = "the head does not answer"
	if c := telemetry.CycleOf(blind); !c.RayFailed || c.IdleGPUs != nil || c.Pods != nil {
		t.Errorf("without Ray %v GPUs idle, Ray failed: %v", c.IdleGPUs, c.RayFailed)
	}
	blind.Mode = nodepool.Off
	if telemetry.CycleOf(blind).RayFailed {
		t.Error("a GCS that nobody asked has failed")
	}
}

func TestAReportOfTheClusterConfigIsAnActionAndNoDecision(t *testing.T) {
	d := busy()
	d.Actions = []addon.Action{{At: d.At, Kind: addon.ActionClusterConfig, Result: addon.ResultOK, Took: time.Millisecond}}
	want := []telemetry.Action{{At: d.At, Kind: "config", Result: "ok", Took: time.Millisecond}}
	if diff := cmp.Diff(want, telemetry.CycleOf(d).Actions); diff != "" {
		t.Errorf("actions (-want +measured):\n%s", diff)
	}
}
