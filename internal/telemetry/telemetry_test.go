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
func start(t testing.TB, limits Limits) (*Telemetry, *prometheus.Registry) {
	t.Helper()
	registry, bounds := prometheus.NewRegistry(), &Bounds{}
	bounds.Add(func() map[string]float64 { return map[string]float64{"history": 0.5} })
	bounds.Add(func() map[string]float64 { return map[string]float64{"streams": 0.25} })
	report, err := Start(t.Context(), Config{Registerer: registry, Limits: limits, Leads: func() bool { return true },
		Bounds: bounds,
		Division: func() (Division, bool) {
			return Division{Shard: "heliostat-a", Shards: 3, Unowned: 2, ReadAge: 3 * time.Second}, true
		}})
	if err != nil {
		t.Fatal(err)
	}
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

// cycleWith returns a cycle with this decision, whose data is a second old.
func cycleWith(d addon.Decision) Cycle {
	d.At, d.Mode, d.Read = noon, nodepool.Managed, addon.ReadAt(noon.Add(-time.Second))
	return Cycle{Namespace: "ml", Cluster: "llm", At: noon, Took: time.Millisecond, Decision: &d}
}

// gpus returns the numbers of GPUs of a group by source.
func gpus(ray, others *raydemand.Amount) addon.GroupNumGPUs {
	return addon.GroupNumGPUs{NumGPUs: nodepool.NumGPUs{Declared: others, Derived: others, Reported: others, Ray: ray}}
}

// everything returns a registry with values from every instrument.
func everything(t *testing.T) *prometheus.Registry {
	t.Helper()
	report, registry := start(t, Limits{})
	report.now = func() time.Time { return noon }
	gpu := func(n int64) raydemand.Bundle { return raydemand.Bundle{"GPU": raydemand.Whole(n)} }
	eight, spot := raydemand.Whole(8), &departure.Notice{Sign: "aws-spot"}
	node := func(state planner.NodeState, guard string, going *departure.Notice) planner.Node {
		n := planner.Node{Group: "gpu", State: state, Guard: guard, Going: going}
		n.Total = gpu(8)
		return n
	}
	d := addon.Decision{Session: "session-1", NumGPUs: map[string]addon.GroupNumGPUs{"gpu": gpus(&eight, nil)}}
	d.Kube.Groups = []nodepool.WorkerGroup{{Name: "gpu", Replicas: 3, Max: 4, NumOfHosts: 1}}
	d.Snapshot.Groups = []planner.Group{{Name: "gpu", CoolingSeconds: 60,
		Slice: &planner.Slice{Kind: "mig", Profile: "1g.10gb", Isolation: "hardware", MemoryMiB: new(int64(10)), ComputeFraction: new(0.5)},
		Pools: []planner.GroupPool{{Name: "a100", MaxPods: new(int64(7))}}}}
	d.Snapshot.Nodes = []planner.Node{node(planner.Running, "user", nil), node(planner.Pending, "user", nil), node(planner.Pending, "user", nil),
		node(planner.Leaving, "user", spot), node(planner.Leaving, "", spot), node(planner.Leaving, "", nil)}
	d.Plan = planner.Plan{Groups: []planner.GroupPlan{{Name: "gpu", Current: 1, Desired: 2, Max: 4}},
		Summary:            []planner.DemandSummary{{Resources: gpu(1), Waiting: 2}, {Kind: planner.KindRequestResources, Served: 4}},
		Requests:           []planner.RequestPlan{{State: raydemand.RequestCapped}, {State: raydemand.RequestCapped}},
		InfeasibleRequests: []planner.UnmetRequest{{Request: raydemand.Request{Count: 3}, Reason: planner.Reason{Code: planner.Capped}}}}
	cycle := cycleWith(d)
	cycle.IdleGPUs = map[string]float64{"minimum": 8}
	spent := ledger.Row{Account: ledger.Account{Group: "gpu", Owner: "RayJob/a", Cause: ledger.Idle}}
	spent.PodSeconds, spent.GPUSeconds, spent.Money = 60, 480, 0.25
	cycle.Costs, cycle.Currency = func() []ledger.Row { return []ledger.Row{spent} }, "USD"
	report.Observe(cycle)
	cycle.Planned, cycle.SeenToPatched, cycle.RayFailed, cycle.Reverted = time.Millisecond, time.Millisecond, true, true
	cycle.Waited, cycle.Truncated = time.Second, true
	cycle.Actions = []Action{{Kind: "patch", Result: "ok", Decision: "scale-up", Reason: "launch", Took: time.Millisecond, Grown: "gpu"}}
	report.Observe(cycle)
	report.count("heliostat_export_failures_total", "signal", "traces")
	apiCalls{metrics: report.Metrics}.count("PATCH", "409")
	return registry
}

func TestPrometheusSeesEveryInstrumentUnderItsName(t *testing.T) {
	own, rays := "cluster=llm,", ",namespace=ml,ray_io_cluster=llm"
	want := map[string]float64{
		"heliostat_cycles_total{result=ok}":                                                                                 2,
		"heliostat_cycle_seconds{}":                                                                                         2,
		"heliostat_planner_seconds{}":                                                                                       1,
		"heliostat_plan_wait_seconds{}":                                                                                     1,
		"heliostat_actions_total{kind=patch,result=ok}":                                                                     1,
		"heliostat_action_seconds{kind=patch}":                                                                              1,
		"heliostat_decisions_total{decision=scale-up,reason=launch}":                                                        1,
		"heliostat_seen_to_patched_seconds{}":                                                                               1,
		"heliostat_stage_seconds{stage=seen_to_patched}":                                                                    1,
		"heliostat_bound_used_ratio{of=history}":                                                                            0.5,
		"heliostat_bound_used_ratio{of=streams}":                                                                            0.25,
		"heliostat_bound_used_ratio{of=series}":                                                                             0.032,
		"heliostat_api_errors_total{code=409,method=PATCH}":                                                                 1,
		"heliostat_export_failures_total{signal=traces}":                                                                    1,
		"heliostat_clusters{}":                                                                                              1,
		"heliostat_leading{}":                                                                                               1,
		"heliostat_shards{shard=heliostat-a}":                                                                               3,
		"heliostat_clusters_without_shard{}":                                                                                2,
		"heliostat_shards_read_age_seconds{}":                                                                               3,
		"heliostat_dropped_series{}":                                                                                        0,
		"heliostat_cluster_managed{" + own + "namespace=ml}":                                                                1,
		"heliostat_data_age_seconds{" + own + "namespace=ml}":                                                               1,
		"heliostat_gcs_errors_total{" + own + "namespace=ml}":                                                               1,
		"heliostat_demand_truncated_total{" + own + "namespace=ml}":                                                         1,
		"heliostat_replicas_reverted_total{" + own + "namespace=ml}":                                                        1,
		"heliostat_idle_gpu_hours_total{cause=minimum," + own + "namespace=ml}":                                             0,
		"heliostat_pod_seconds_total{cause=idle," + own + "group=gpu,namespace=ml,owner=RayJob/a}":                          60,
		"heliostat_gpu_seconds_total{cause=idle," + own + "group=gpu,namespace=ml,owner=RayJob/a}":                          480,
		"heliostat_cost_total{cause=idle," + own + "currency=USD,group=gpu,namespace=ml,owner=RayJob/a}":                    0.25,
		"heliostat_pods_guarded{by=user," + own + "namespace=ml}":                                                           4,
		"heliostat_workers_going{" + own + "namespace=ml,sign=aws-spot}":                                                    2,
		"heliostat_unmet_demand{" + own + "namespace=ml,reason=capped}":                                                     3,
		"heliostat_demand{" + own + "namespace=ml,resource=GPU,state=waiting}":                                              2,
		"heliostat_requested_bundles{" + own + "namespace=ml,status=served}":                                                4,
		"heliostat_requests{" + own + "namespace=ml,status=capped}":                                                         2,
		"heliostat_group_workers{" + own + "group=gpu,namespace=ml,of=current}":                                             1,
		"heliostat_group_workers{" + own + "group=gpu,namespace=ml,of=desired}":                                             2,
		"heliostat_group_workers{" + own + "group=gpu,namespace=ml,of=asked}":                                               3,
		"heliostat_group_workers{" + own + "group=gpu,namespace=ml,of=ready}":                                               1,
		"heliostat_group_workers{" + own + "group=gpu,namespace=ml,of=min}":                                                 0,
		"heliostat_group_workers{" + own + "group=gpu,namespace=ml,of=max}":                                                 4,
		"heliostat_group_cooldown_seconds{" + own + "group=gpu,namespace=ml}":                                               60,
		"heliostat_group_num_gpus{" + own + "column=ray,group=gpu,namespace=ml}":                                            8,
		"heliostat_group_num_gpus_mismatch{" + own + "group=gpu,namespace=ml}":                                              0,
		"heliostat_group_slice_memory_bytes{" + own + "group=gpu,isolation=hardware,kind=mig,namespace=ml,profile=1g.10gb}": 10 << 20,
		"heliostat_group_slice_compute_ratio{" + own + "group=gpu,namespace=ml}":                                            0.5,
		"heliostat_group_pool_limit{" + own + "group=gpu,namespace=ml,pool=a100}":                                           7,
		"autoscaler_active_nodes{NodeType=gpu,SessionName=session-1" + rays + "}":                                           1,
		"autoscaler_pending_nodes{NodeType=gpu,SessionName=session-1" + rays + "}":                                          2,
		"autoscaler_recently_failed_nodes{NodeType=gpu,SessionName=session-1" + rays + "}":                                  3,
		"autoscaler_cluster_resources{SessionName=session-1" + rays + ",resource=GPU}":                                      8,
		"autoscaler_pending_resources{SessionName=session-1" + rays + ",resource=GPU}":                                      16,
	}
	if diff := cmp.Diff(want, scrape(t, everything(t))); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

func TestHistogramsHaveTheirOwnBuckets(t *testing.T) {
	report, registry := start(t, Limits{})
	report.Observe(cycleWith(addon.Decision{}))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "heliostat_cycle_seconds" {
			continue
		}
		var bounds []float64
		for _, bucket := range family.GetMetric()[0].GetHistogram().GetBucket() {
			bounds = append(bounds, bucket.GetUpperBound())
		}
		if !slices.Equal(bounds[:len(cycleBounds)], cycleBounds) {
			t.Errorf("bounds are %v, want %v", bounds, cycleBounds)
		}
		return
	}
	t.Error("no cycle was timed")
}

func TestGroupsAndClustersThatAreGoneLeaveNoSeries(t *testing.T) {
	report, registry := start(t, Limits{})
	eight, two := raydemand.Whole(8), raydemand.Whole(2)
	d := addon.Decision{NumGPUs: map[string]addon.GroupNumGPUs{"gpu": {NumGPUs: nodepool.NumGPUs{Ray: &eight, Derived: &two}}}}
	d.Plan = planner.Plan{Groups: []planner.GroupPlan{{Name: "gpu", Desired: 2}, {Name: "cpu"}},
		InfeasibleRequests: []planner.UnmetRequest{{Request: raydemand.Request{Count: 3}, Reason: planner.Reason{Code: planner.Capped}}}}
	cycle := cycleWith(d)
	cycle.RayFailed = true
	report.Observe(cycle)
	if got := of(scrape(t, registry), "heliostat_group_workers"); len(got) != 12 {
		t.Errorf("%d series of workers, want five of each group", len(got))
	}
	d.NumGPUs = map[string]addon.GroupNumGPUs{"gpu": {NumGPUs: nodepool.NumGPUs{Derived: &two}}}
	d.Plan = planner.Plan{Groups: []planner.GroupPlan{{Name: "gpu"}}}
	report.Observe(cycleWith(d))
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
	report.Forget("ml", "llm")
	for series := range scrape(t, registry) {
		if strings.Contains(series, "llm") {
			t.Errorf("%s is still there", series)
		}
	}
}

func TestIdleGPUHoursAddUpByCauseWhileSomebodyLooks(t *testing.T) {
	report, registry := start(t, Limits{})
	look := func(after time.Duration, failed bool, idle map[string]float64) {
		cycle := cycleWith(addon.Decision{})
		cycle.At, cycle.IdleGPUs, cycle.RayFailed = noon.Add(after), idle, failed
		report.Observe(cycle)
	}
	const series = "heliostat_idle_gpu_hours_total"
	look(0, false, map[string]float64{"minimum": 8})
	if got := of(scrape(t, registry), series); len(got) != 1 || got["cause=minimum,cluster=llm,namespace=ml"] != 0 {
		t.Errorf("after one cycle there is %v, want a cause that starts at 0", got)
	}
	look(30*time.Second, false, map[string]float64{"minimum": 1, "fragment": 3}) // 8 for 30 s
	look(60*time.Second, true, map[string]float64{"minimum": 4})                 // 1 and 3 for 30 s
	look(90*time.Second, false, map[string]float64{"fragment": 4})               // unknown since the failed cycle
	look(2*time.Hour+90*time.Second, false, nil)                                 // 4, for the first three minutes only
	look(2*time.Hour+120*time.Second, false, map[string]float64{"leaving": 2})   // none
	look(2*time.Hour+135*time.Second, false, map[string]float64{"leaving": 1})   // 2 for 15 s
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

// fleet observes typical clusters, each with two groups and three kinds of demand.
func fleet(report *Telemetry, clusters int) {
	for i := range clusters {
		one := raydemand.One
		bundle := func(name string) raydemand.Bundle { return raydemand.Bundle{name: one} }
		d := addon.Decision{Session: fmt.Sprint("session-", i), NumGPUs: map[string]addon.GroupNumGPUs{"gpu": gpus(&one, &one)}}
		d.Snapshot.Groups = []planner.Group{{Name: "cpu"}, {Name: "gpu",
			Slice: &planner.Slice{Kind: "mig", MemoryMiB: new(int64(1)), ComputeFraction: new(1.0)},
			Pools: []planner.GroupPool{{Name: "a100", MaxPods: new(int64(4))}}}}
		d.Snapshot.Head = &planner.Node{Group: "headgroup", State: planner.Running, Total: raydemand.Bundle{"CPU": one, "GPU": one, "memory": one}}
		d.Snapshot.Nodes = []planner.Node{{Group: "gpu", State: planner.Pending, Total: bundle("GPU")}}
		d.Plan = planner.Plan{Groups: []planner.GroupPlan{{Name: "cpu"}, {Name: "gpu"}},
			Summary: []planner.DemandSummary{{Resources: bundle("CPU"), Served: 1, Waiting: 1}, {Resources: bundle("GPU"), Launching: 1},
				{Resources: bundle("memory"), Served: 1}, {Kind: planner.KindRequestResources, Served: 1}},
			Requests:           []planner.RequestPlan{{State: raydemand.RequestSatisfied}, {State: raydemand.RequestWaiting}},
			InfeasibleRequests: []planner.UnmetRequest{{Request: raydemand.Request{Count: 1}, Reason: planner.Reason{Code: planner.Capped}}}}
		c := cycleWith(d)
		c.Cluster = fmt.Sprintf("llm-%04d", i)
		report.Observe(c)
	}
}

func TestAThousandClustersHaveABoundedNumberOfSeriesAndNoneIsDropped(t *testing.T) {
	report, registry := start(t, Limits{})
	before := len(scrape(t, registry))
	fleet(report, 1000)
	all := scrape(t, registry)
	const most = 57 // for one such cluster
	if each := (len(all) - before) / 1000; each > most {
		t.Errorf("%d series for each cluster, want at most %d", each, most)
	}
	if dropped := all["heliostat_dropped_series{}"]; dropped != 0 {
		t.Errorf("%v series are dropped, want none", dropped)
	}
	for i := range 1000 {
		report.Forget("ml", fmt.Sprintf("llm-%04d", i))
	}
	// The count and the duration of the observed cycles are the two new series.
	if after := len(scrape(t, registry)); after != before+2 {
		t.Errorf("%d series are left, want %d", after, before+2)
	}
}

func TestNamesThatAreAnybodysToChooseExplodeNoLabel(t *testing.T) {
	const clusters, names, limit = 100, 100, 2_000
	report, registry := start(t, Limits{Series: limit, SeriesOfCluster: 100})
	var d addon.Decision
	for i := range names {
		d.Plan.Groups = append(d.Plan.Groups, planner.GroupPlan{Name: fmt.Sprint("group-", i)})
		d.Plan.Summary = append(d.Plan.Summary, planner.DemandSummary{Resources: raydemand.Bundle{fmt.Sprint("resource-", i): raydemand.One}, Waiting: 1})
	}
	d.Plan.Summary = append(d.Plan.Summary, planner.DemandSummary{Resources: raydemand.Bundle{"GPU": raydemand.One}, Waiting: 7})
	for i := range clusters {
		cycle := cycleWith(d)
		cycle.Cluster = fmt.Sprintf("llm-%04d", i)
		report.Observe(cycle)
	}
	all := scrape(t, registry)
	own := 0
	for series := range all {
		if strings.Contains(series, "cluster=") {
			own++
		}
	}
	if own != limit {
		t.Errorf("%d series of clusters, want %d", own, limit)
	}
	// The series are: errors of the GCS, truncated readings, reverts, managed, age, one for each resource, seven for each group.
	if got, want := all["heliostat_dropped_series{}"], float64(clusters*(5+names+1+7*names)-limit); got != want {
		t.Errorf("%v series are said to be dropped, want %v", got, want)
	}
	for _, series := range []string{
		"heliostat_cluster_managed{cluster=llm-0000,namespace=ml}",
		"heliostat_demand{cluster=llm-0000,namespace=ml,resource=GPU,state=waiting}",
	} {
		if _, there := all[series]; !there {
			t.Errorf("%s is dropped; what matters most of the cluster known longest is to stay", series)
		}
	}
	again := scrape(t, registry)
	for series := range all {
		if _, there := again[series]; !there {
			t.Fatalf("%s is reported once and dropped the next time", series)
		}
	}
}

func TestResourcesBeyondTheLimitAreDroppedLeastKnownFirst(t *testing.T) {
	report, left := bounded(map[string]int{"a": 1, "memory": 1, "GPU": 1, "b": 1, "CPU": 1}, 4)
	if !slices.Equal(report, []string{"CPU", "GPU", "memory", "a"}) || !slices.Equal(left, []string{"b"}) {
		t.Errorf("reported %v, left %v", report, left)
	}
}

func BenchmarkObserveAmongAThousandClusters(b *testing.B) {
	report, _ := start(b, Limits{})
	fleet(report, 1000)
	cycle := cycleWith(addon.Decision{})
	cycle.Planned = time.Millisecond
	b.ReportAllocs()
	for b.Loop() {
		report.Observe(cycle)
	}
}

func BenchmarkScrapeOfAThousandClusters(b *testing.B) {
	report, registry := start(b, Limits{})
	fleet(report, 1000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := registry.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}

type answer func() (*http.Response, error)

func (a answer) RoundTrip(*http.Request) (*http.Response, error) { return a() }

func TestCallsThatFailAreCountedByTheirCode(t *testing.T) {
	report, registry := start(t, Limits{})
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
