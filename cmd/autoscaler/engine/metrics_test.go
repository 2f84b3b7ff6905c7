package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// functions ignores the functions of a cycle that telemetry calls later.
var functions = cmpopts.IgnoreFields(telemetry.Cycle{}, "State", "Pods", "Moments")

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
	got := measurementsOf(d)
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
	card := func(count int64, busy *int64, cut ...sharing.Cut) sharing.CutCards {
		return sharing.CutCards{Product: "A100", Count: count, Busy: busy, Cut: cut}
	}
	d.Snapshot.Groups[0].Slice = &planner.Slice{Kind: gpuinfo.MIG, Profile: "1g.10gb", Isolation: gpuinfo.Hardware, MemoryMiB: new(int64(10))}
	d.Snapshot.Groups[0].Pools = []planner.GroupPool{
		{Name: "a", MaxPods: new(int64(7)), Cards: []sharing.CutCards{card(2, new(int64(1))), card(3, new(int64(2)), sharing.Cut{Profile: "1g.10gb", Count: 21})}},
		{Name: "b", Cards: []sharing.CutCards{card(1, nil)}},
	}
	d.Kube.Groups = []nodepool.WorkerGroup{{Name: "gpu", Replicas: 3, Max: 4, NumOfHosts: 2}}
	want := telemetry.State{
		Managed: true, DataAge: time.Minute,
		Unmet: map[string]int64{"capped": 6}, Going: map[string]int64{"cordoned": 1}, Guarded: map[string]int64{"heliostat": 2, "user": 1},
		Demand:    map[string]map[string]float64{"GPU": {"served": 1, "capped": 1.5, "launching": 2}},
		Requested: map[string]int64{"served": 3, "cooling_down": 1}, Requests: map[string]int64{"capped": 2, "expired": 1},
		Groups: []telemetry.Group{{Name: "gpu", Current: 1, Desired: 2, Asked: 6, Ready: 2, Max: 4, Cooldown: 30 * time.Second,
			NumGPUs: map[string]float64{"derived": 2}, NumGPUsMismatch: true,
			Slice: &telemetry.Slice{Kind: "mig", Profile: "1g.10gb", Isolation: "hardware", MemoryBytes: new(10.0 * (1 << 20))},
			Pools: []telemetry.Pool{
				{Name: "a", Limit: new(int64(7)), Cards: []telemetry.Cards{{Product: "A100", All: 5, Cut: 3, Busy: new(int64(3))}}},
				{Name: "b", Cards: []telemetry.Cards{{Product: "A100", All: 1}}},
			}}},
		Ray: telemetry.Ray{Session: "session-1",
			Nodes:            map[string]telemetry.NodeCounts{"headgroup": {Active: 1}, "gpu": {Active: 2, Pending: 2, Failed: 1}},
			ClusterResources: map[string]float64{"CPU": 2, "GPU": 16}, PendingResources: map[string]float64{"GPU": 16}},
	}
	if diff := cmp.Diff(want, stateOf(d, d.ReadAt().Add(time.Minute))); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	d.Mode = nodepool.Off
	if age := measurementsOf(d).State().DataAge; age >= 0 {
		t.Errorf("the data of a RayCluster that nobody looks at is %v old", age)
	}
}

func TestACycleThatSawNothingMeasuresNothingOfTheOneBefore(t *testing.T) {
	d := busy()
	d.ObserveFailed, d.Err, d.Actions, d.SeenToPatched = true, "observing: forbidden", nil, 0
	if diff := cmp.Diff(telemetry.Cycle{Namespace: "ml", Cluster: "llm", At: d.At, Failed: true}, measurementsOf(d), functions); diff != "" {
		t.Errorf("measured (-want +got):\n%s", diff)
	}
	if measurementsOf(d).Pods != nil {
		t.Error("pods are told that nobody saw")
	}
	blind := busy()
	blind.RayErr = "the head does not answer"
	if c := measurementsOf(blind); !c.RayFailed || c.IdleGPUs != nil || c.Pods != nil {
		t.Errorf("without Ray %v GPUs idle, Ray failed: %v", c.IdleGPUs, c.RayFailed)
	}
	blind.Mode = nodepool.Off
	if measurementsOf(blind).RayFailed {
		t.Error("a GCS that nobody asked has failed")
	}
}

func TestAReportOfTheClusterConfigIsAnActionAndNoDecision(t *testing.T) {
	d := busy()
	d.Actions = []addon.Action{{At: d.At, Kind: addon.ActionClusterConfig, Result: addon.ResultOK, Took: time.Millisecond}}
	want := []telemetry.Action{{At: d.At, Kind: "config", Result: "ok", Took: time.Millisecond}}
	if diff := cmp.Diff(want, measurementsOf(d).Actions); diff != "" {
		t.Errorf("actions (-want +measured):\n%s", diff)
	}
}

func TestCostsAreMeasuredInTheUnitOfPrices(t *testing.T) {
	row := ledger.Row{Account: ledger.Account{Group: "gpu", Owner: "RayCluster/llm", Job: "01", Cause: ledger.Used}}
	row.PodSeconds, row.GPUSeconds, row.Money = 3600, 7200, 4
	want := []telemetry.Cost{{Group: "gpu", Owner: "RayCluster/llm", Job: "01", Cause: "used", Currency: "EUR",
		PodSeconds: 3600, GPUSeconds: 7200, Money: 4}}
	if diff := cmp.Diff(want, costsOf([]ledger.Row{row}, "EUR")); diff != "" {
		t.Error(diff)
	}
}
