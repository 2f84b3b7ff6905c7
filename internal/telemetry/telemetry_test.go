package telemetry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/raydemand"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// start returns telemetry that only Prometheus reads.
func start(t testing.TB) (*Telemetry, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	report, err := Start(t.Context(), Config{Registerer: registry, Leads: func() bool { return true },
		Division: func() (Division, bool) {
			return Division{Shard: "heliostat-a", Shards: 3, Unowned: 2, ReadAge: 3 * time.Second}, true
		}})
	if err != nil {
		t.Fatal(err)
	}
	report.now = func() time.Time { return noon }
	return report, registry
}

// scrape returns all series as in Prometheus, `name{label=value,…}`. A histogram is represented by its number of
// values.
func scrape(t testing.TB, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, label := range m.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			found[family.GetName()+"{"+strings.Join(labels, ",")+"}"] = valueOf(m)
		}
	}
	return found
}

func valueOf(m *dto.Metric) float64 {
	if h := m.GetHistogram(); h != nil {
		return float64(h.GetSampleCount())
	}
	return m.GetGauge().GetValue() + m.GetCounter().GetValue()
}

// of returns the series of one instrument, by their labels.
func of(all map[string]float64, name string) map[string]float64 {
	found := map[string]float64{}
	for series, value := range all {
		if labels, ok := strings.CutPrefix(series, name+"{"); ok {
			found[strings.TrimSuffix(labels, "}")] = value
		}
	}
	return found
}

var llm = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}

// observe adds a decision about ml/llm of a cycle at noon, whose data is a second old.
func (t *Telemetry) observe(d addon.Decision) {
	d.Cluster, d.At, d.Mode, d.Read, d.Took = llm, noon, nodepool.Managed, addon.LatestOf(noon.Add(-time.Second)), time.Millisecond
	t.Observe(&d, nil, "")
}

// busy is a decision with one worker in each state.
func busy() addon.Decision {
	gpu := func(n int64) raydemand.Bundle { return raydemand.Bundle{"GPU": raydemand.Whole(n)} }
	half, eight, going := raydemand.Bundle{"GPU": raydemand.One / 2}, raydemand.Whole(8), &departure.Notice{Sign: "aws-spot"}
	node := func(pod string, state planner.NodeState, free int64, going *departure.Notice) planner.Node {
		n := planner.Node{Pod: pod, Group: "gpu", State: state, Going: going}
		n.Total, n.Available = gpu(8), gpu(free)
		return n
	}
	over := nodepool.OwnedRequest{LeaseSeconds: 60, RenewedAt: noon.Add(-time.Hour)}
	d := addon.Decision{Cluster: llm, At: noon, Took: 3 * time.Millisecond, Planned: time.Millisecond, Mode: nodepool.Managed,
		Session: "session-1", Read: addon.LatestOf(noon.Add(-time.Second)), SeenToPatched: 5 * time.Millisecond,
		NumGPUs: map[string]addon.GroupNumGPUs{"gpu": {NumGPUs: nodepool.NumGPUs{Ray: &eight}}},
		Kube:    nodepool.Cluster{Groups: []nodepool.WorkerGroup{{Name: "gpu", Replicas: 3, Max: 4, NumOfHosts: 2}}, Owned: []nodepool.OwnedRequest{over, {Deleting: true}}},
		Actions: []addon.Action{
			{At: noon, Kind: addon.ActionPatch, Result: addon.ResultOK, Group: "gpu", From: 1, To: 2},
			{At: noon, Kind: addon.ActionDrain, Result: addon.ResultRefused, Group: "gpu", Pods: []string{"a"}},
			{At: noon, Kind: addon.ActionPatch, Result: addon.ResultOK, Group: "gpu", From: 2, To: 1, Pods: []string{"a"}},
			{At: noon, Kind: addon.ActionPatch, Result: addon.ResultOK, Group: "gpu", From: 1, To: 1, Pods: []string{"b"}},
			{At: noon, Kind: addon.ActionReport, Result: addon.ResultOK},
		}}
	d.Snapshot.Groups = []planner.Group{{Name: "gpu", CoolingSeconds: 60,
		Slice: &planner.Slice{Kind: "mig", Profile: "1g.10gb", Isolation: "hardware", MemoryMiB: new(int64(10)), ComputeFraction: new(0.5)},
		Pools: []planner.GroupPool{{Name: "a100", MaxPods: new(int64(7))}, {Name: "b"}}}}
	d.Snapshot.Head = &planner.Node{Group: "headgroup", State: planner.Running, Total: raydemand.Bundle{"CPU": raydemand.Whole(2)}}
	d.Snapshot.Nodes = []planner.Node{node("busy", planner.Running, 3, nil), node("idle", planner.Idle, 8, nil),
		node("going", planner.Leaving, 8, going), node("coming", planner.Pending, 8, nil), node("", planner.Pending, 8, nil)}
	d.Snapshot.Nodes[4].Expected = true
	d.Snapshot.Head.Guard, d.Snapshot.Nodes[0].Guard, d.Snapshot.Nodes[1].Guard = "heliostat", "heliostat", "user"
	d.Plan = planner.Plan{Groups: []planner.GroupPlan{{Name: "gpu", Current: 1, Desired: 2, Max: 4, Reasons: []planner.Reason{{Code: planner.CodeLaunch}}}},
		Terminate: []planner.Termination{{Pod: "a", Reason: "idle"}},
		Summary: []planner.DemandSummary{
			{Kind: planner.KindRequest, Resources: half, Asked: 5, Served: 2, Capped: 3},
			{Kind: planner.KindGang, Gang: &raydemand.Gang{Bundles: []raydemand.Bundle{gpu(1), gpu(1)}}, Asked: 1, Launching: 1},
			{Kind: planner.KindRequestResources, Resources: gpu(1), Asked: 4, Served: 3, CoolingDown: 1}},
		Requests:               []planner.RequestPlan{{State: raydemand.RequestCapped}, {State: raydemand.RequestCapped}, {Plain: true, State: raydemand.RequestWaiting}},
		InfeasibleRequests:     []planner.UnmetRequest{{Request: raydemand.Request{Count: 3}, Reason: planner.Reason{Code: planner.Capped}}},
		InfeasibleGangRequests: []planner.UnmetGang{{Reason: planner.Reason{Code: planner.Capped}}}}
	return d
}

// everything returns a registry with values from every instrument: of a decision, and of three cycles that failed.
func everything(t *testing.T) *prometheus.Registry {
	t.Helper()
	report, registry := start(t)
	spent := ledger.Row{Account: ledger.Account{Group: "gpu", Owner: "RayJob/a", Cause: ledger.Idle}}
	spent.PodSeconds, spent.GPUSeconds, spent.Money = 60, 480, 0.25
	costs := func() []ledger.Row { return []ledger.Row{spent} }
	d, silent, off, unread := busy(), busy(), busy(), busy()
	silent.RayErr, silent.Err, silent.Actions, silent.Reverted = "the head does not answer", "patching: conflict", nil, true
	off.RayErr, off.Mode, off.Actions = "nobody asked it", nodepool.Off, nil
	unread.ObserveFailed, unread.Err, unread.Actions, unread.Reverted = true, "observing: forbidden", nil, true
	for _, cycle := range []*addon.Decision{&d, &silent, &off, &unread} {
		report.Observe(cycle, costs, "USD")
	}
	apiCalls{report.Metrics, answer(func() (*http.Response, error) { return &http.Response{StatusCode: 409}, nil })}.
		RoundTrip(&http.Request{Method: "PATCH"})
	return registry
}

func TestPrometheusSeesEveryInstrumentUnderItsName(t *testing.T) {
	of, ray := "namespace=ml", ",namespace=ml,ray_io_cluster=llm"
	want := map[string]float64{}
	for _, series := range strings.Split(strings.TrimSpace(`
heliostat_cycles_total{result=ok} 2
heliostat_cycles_total{result=error} 2
heliostat_cycle_seconds{} 3
heliostat_planner_seconds{} 3
heliostat_actions_total{kind=patch,result=ok} 3
heliostat_actions_total{kind=drain,result=refused} 1
heliostat_actions_total{kind=report,result=ok} 1
heliostat_action_seconds{kind=patch} 3
heliostat_action_seconds{kind=drain} 1
heliostat_action_seconds{kind=report} 1
heliostat_decisions_total{decision=scale-up,reason=launch} 1
heliostat_decisions_total{decision=scale-down,reason=idle} 1
heliostat_decisions_total{decision=replace,reason=launch} 1
heliostat_seen_to_patched_seconds{} 3
heliostat_stage_seconds{stage=seen_to_patched} 3
heliostat_api_errors_total{code=409,method=PATCH} 1
heliostat_clusters{} 1
heliostat_leading{} 1
heliostat_shards{shard=heliostat-a} 3
heliostat_clusters_without_shard{} 2
heliostat_shards_read_age_seconds{} 3
heliostat_cluster_managed{cluster=llm,OF} 1
heliostat_data_age_seconds{cluster=llm,OF} 1
heliostat_gcs_errors_total{cluster=llm,OF} 1
heliostat_replicas_reverted_total{cluster=llm,OF} 1
heliostat_idle_gpu_hours_total{cause=fragment,cluster=llm,OF} 0
heliostat_idle_gpu_hours_total{cause=leaving,cluster=llm,OF} 0
heliostat_idle_gpu_hours_total{cause=no_idle_timeout,cluster=llm,OF} 0
heliostat_gpu_seconds_total{cause=idle,cluster=llm,group=gpu,OF,owner=RayJob/a} 480
heliostat_cost_total{cause=idle,cluster=llm,currency=USD,group=gpu,OF,owner=RayJob/a} 0.25
heliostat_workers_going{cluster=llm,OF,sign=aws-spot} 1
heliostat_unmet_demand{cluster=llm,OF,reason=capped} 4
heliostat_pods_guarded{by=heliostat,cluster=llm,OF} 2
heliostat_pods_guarded{by=user,cluster=llm,OF} 1
heliostat_demand{cluster=llm,OF,resource=GPU,state=capped} 1.5
heliostat_demand{cluster=llm,OF,resource=GPU,state=launching} 2
heliostat_demand{cluster=llm,OF,resource=GPU,state=served} 1
heliostat_requested_bundles{cluster=llm,OF,status=cooling_down} 1
heliostat_requested_bundles{cluster=llm,OF,status=served} 3
heliostat_requests{cluster=llm,OF,status=capped} 2
heliostat_requests{cluster=llm,OF,status=expired} 1
heliostat_group_workers{cluster=llm,group=gpu,OF,of=current} 1
heliostat_group_workers{cluster=llm,group=gpu,OF,of=desired} 2
heliostat_group_workers{cluster=llm,group=gpu,OF,of=asked} 6
heliostat_group_workers{cluster=llm,group=gpu,OF,of=ready} 2
heliostat_group_workers{cluster=llm,group=gpu,OF,of=min} 0
heliostat_group_workers{cluster=llm,group=gpu,OF,of=max} 4
heliostat_group_cooldown_seconds{cluster=llm,group=gpu,OF} 60
heliostat_group_num_gpus{cluster=llm,column=ray,group=gpu,OF} 8
heliostat_group_num_gpus_mismatch{cluster=llm,group=gpu,OF} 0
heliostat_group_slice_memory_bytes{cluster=llm,group=gpu,isolation=hardware,kind=mig,OF,profile=1g.10gb} 10485760
heliostat_group_slice_compute_ratio{cluster=llm,group=gpu,OF} 0.5
heliostat_group_pool_limit{cluster=llm,group=gpu,OF,pool=a100} 7
autoscaler_active_nodes{NodeType=gpu,SessionName=session-1RAY} 2
autoscaler_active_nodes{NodeType=headgroup,SessionName=session-1RAY} 1
autoscaler_pending_nodes{NodeType=gpu,SessionName=session-1RAY} 2
autoscaler_pending_nodes{NodeType=headgroup,SessionName=session-1RAY} 0
autoscaler_recently_failed_nodes{NodeType=gpu,SessionName=session-1RAY} 1
autoscaler_recently_failed_nodes{NodeType=headgroup,SessionName=session-1RAY} 0
autoscaler_cluster_resources{SessionName=session-1RAY,resource=CPU} 2
autoscaler_cluster_resources{SessionName=session-1RAY,resource=GPU} 16
autoscaler_pending_resources{SessionName=session-1RAY,resource=GPU} 16
`), "\n") {
		name, value, _ := strings.Cut(strings.NewReplacer("OF", of, "RAY", ray).Replace(series), " ")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatal(err)
		}
		want[name] = n
	}
	if diff := cmp.Diff(want, scrape(t, everything(t))); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

func TestGroupsAndClustersThatAreGoneLeaveNoSeries(t *testing.T) {
	report, registry := start(t)
	eight, two := raydemand.Whole(8), raydemand.Whole(2)
	d := addon.Decision{NumGPUs: map[string]addon.GroupNumGPUs{"gpu": {NumGPUs: nodepool.NumGPUs{Ray: &eight, Derived: &two}}}}
	d.Plan = planner.Plan{Groups: []planner.GroupPlan{{Name: "gpu", Desired: 2}, {Name: "cpu"}},
		InfeasibleRequests: []planner.UnmetRequest{{Request: raydemand.Request{Count: 3}, Reason: planner.Reason{Code: planner.Capped}}}}
	report.observe(d)
	if got := of(scrape(t, registry), "heliostat_group_workers"); len(got) != 12 {
		t.Errorf("%d series of workers, want five of each group", len(got))
	}
	d.NumGPUs = map[string]addon.GroupNumGPUs{"gpu": {NumGPUs: nodepool.NumGPUs{Derived: &two}}}
	d.Plan = planner.Plan{Groups: []planner.GroupPlan{{Name: "gpu"}}}
	report.observe(d)
	all := scrape(t, registry)
	if got := of(all, "heliostat_group_workers"); len(got) != 6 {
		t.Errorf("%d series of workers, want the five of the group that is left", len(got))
	}
	if got := of(all, "heliostat_group_num_gpus"); len(got) != 1 {
		t.Errorf("columns are %v, want no more than the one that is known", got)
	}
	if got := of(all, "heliostat_unmet_demand"); len(got) != 0 {
		t.Errorf("unmet demand is %v, want none once it is served", got)
	}
	report.Forget(llm)
	for series := range scrape(t, registry) {
		if strings.Contains(series, "llm") {
			t.Errorf("%s is still there", series)
		}
	}
}

func TestIdleGPUHoursAddUpByCauseWhileSomebodyLooks(t *testing.T) {
	report, registry := start(t)
	look := func(after time.Duration, idle map[string]float64) {
		report.cluster(llm).idle(noon.Add(after), idle)
	}
	const series = "heliostat_idle_gpu_hours_total"
	look(0, map[string]float64{"minimum": 8})
	if got := of(scrape(t, registry), series); len(got) != 1 || got["cause=minimum,cluster=llm,namespace=ml"] != 0 {
		t.Errorf("after one cycle there is %v, want a cause that starts at 0", got)
	}
	look(30*time.Second, map[string]float64{"minimum": 1, "fragment": 3}) // 8 for 30 s
	look(60*time.Second, nil)                                             // 1 and 3 for 30 s
	look(90*time.Second, map[string]float64{"fragment": 4})               // unknown since the failed cycle
	look(2*time.Hour+90*time.Second, nil)                                 // 4, for the first three minutes only
	look(2*time.Hour+120*time.Second, map[string]float64{"leaving": 2})   // none
	look(2*time.Hour+135*time.Second, map[string]float64{"leaving": 1})   // 2 for 15 s
	want := map[string]float64{"minimum": 8*30 + 30, "fragment": 3*30 + 4*180, "leaving": 2 * 15}
	got := of(scrape(t, registry), series)
	for cause, seconds := range want {
		hours := got["cause="+cause+",cluster=llm,namespace=ml"]
		if hours < seconds/3600-1e-9 || hours > seconds/3600+1e-9 {
			t.Errorf("%s: %v GPU-hours, want %v", cause, hours, seconds/3600)
		}
	}
	if len(got) != len(want) {
		t.Errorf("causes %v, want %v", got, want)
	}
}

// named is the key of one of many RayClusters.
func named(i int) nodepool.ClusterKey {
	return nodepool.ClusterKey{Namespace: "ml", Name: fmt.Sprintf("llm-%04d", i)}
}

func TestAThousandClustersHaveABoundedNumberOfSeriesAndNoneIsDropped(t *testing.T) {
	report, registry := start(t)
	before := len(scrape(t, registry))
	for i := range 1000 {
		d := busy()
		d.Cluster = named(i)
		report.Observe(&d, nil, "")
	}
	all := scrape(t, registry)
	const least, most = 30, 57 // for one such cluster
	if each := (len(all) - before) / 1000; each < least || each > most {
		t.Errorf("%d series for each cluster, want %d to %d", each, least, most)
	}
	for i := range 1000 {
		report.Forget(named(i))
	}
	for series := range scrape(t, registry) {
		if strings.Contains(series, "cluster=") {
			t.Fatalf("%s is left", series)
		}
	}
}

func TestNamesThatAreAnybodysToChooseExplodeNoLabel(t *testing.T) {
	report, registry := start(t)
	for i := range 210 {
		d := addon.Decision{Cluster: named(i), Mode: nodepool.Managed}
		for k := range 100 {
			d.Plan.Summary = append(d.Plan.Summary, planner.DemandSummary{Resources: raydemand.Bundle{fmt.Sprint("resource-", k): raydemand.One}, Waiting: 1})
		}
		report.Observe(&d, nil, "")
	}
	for range 2 { // a series that is there once is there the next time
		demand := of(scrape(t, registry), "heliostat_demand")
		if len(demand) != maxSeries {
			t.Errorf("%d series, want %d", len(demand), maxSeries)
		}
		for series, want := range map[string]bool{"otel_metric_overflow=true": true, "cluster=llm-0000,namespace=ml,resource=resource-7,state=waiting": true,
			"cluster=llm-0209,namespace=ml,resource=resource-99,state=waiting": false} {
			if _, there := demand[series]; there != want {
				t.Errorf("%s: there %v, want %v; the RayClusters that are known longest keep theirs", series, there, want)
			}
		}
	}
}

type answer func() (*http.Response, error)

func (a answer) RoundTrip(*http.Request) (*http.Response, error) { return a() }

func TestCallsThatFailAreCountedByTheirCode(t *testing.T) {
	report, registry := start(t)
	given, cancel := context.WithCancel(t.Context())
	cancel()
	for _, call := range []struct {
		ctx    context.Context
		method string
		code   int
	}{
		{t.Context(), "GET", 200}, {t.Context(), "PATCH", 409}, {t.Context(), "PATCH", 409}, {t.Context(), "GET", 503},
		{t.Context(), "GET", 0}, {given, "GET", 0},
	} {
		request, err := http.NewRequestWithContext(call.ctx, call.method, "http://api", nil)
		if err != nil {
			t.Fatal(err)
		}
		transport := report.APICalls(answer(func() (*http.Response, error) {
			if call.code == 0 {
				return nil, errors.New("no route")
			}
			return &http.Response{StatusCode: call.code, Body: http.NoBody}, nil
		}))
		if response, err := transport.RoundTrip(request); (err != nil) != (call.code == 0) || (err == nil && response.StatusCode != call.code) {
			t.Errorf("the answer is %v, %v; want it as it was", response, err)
		}
	}
	want := map[string]float64{"code=409,method=PATCH": 2, "code=503,method=GET": 1, "code=none,method=GET": 1}
	if diff := cmp.Diff(want, of(scrape(t, registry), "heliostat_api_errors_total")); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

// listing is an instrument in the documentation: its labels, without those of every RayCluster, and whether it is a
// histogram.
type listing struct {
	Labels    []string
	Histogram bool
}

// docs/reference/telemetry.md must list exactly the labels that exist.
func TestTheReferenceListsTheLabelsOfEachInstrument(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]listing{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(heliostat_[a-z_]+)` \\|([^|]*)\\| (histogram: )?").FindAllStringSubmatch(string(page), -1) {
		labels := []string{}
		for _, label := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[2], -1) {
			labels = append(labels, label[1])
		}
		slices.Sort(labels)
		listed[row[1]] = listing{labels, row[3] != ""}
	}
	families, err := everything(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]listing{}
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "heliostat_") {
			continue
		}
		labels := map[string]bool{}
		for _, series := range family.GetMetric() {
			for _, label := range series.GetLabel() {
				if name := label.GetName(); name != "namespace" && name != "cluster" && !strings.HasPrefix(name, "otel_") {
					labels[name] = true
				}
			}
		}
		measured[family.GetName()] = listing{append([]string{}, slices.Sorted(maps.Keys(labels))...), family.GetType() == dto.MetricType_HISTOGRAM}
	}
	if diff := cmp.Diff(measured, listed); diff != "" {
		t.Errorf("instruments (-measured +docs):\n%s", diff)
	}
}
