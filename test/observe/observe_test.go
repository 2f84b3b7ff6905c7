package observe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/test/rig"
)

const (
	namespace, name = "watched", "llm"
	patience        = 4 * time.Minute
)

// empty lists the expressions that have no data in this test, each with the reason.
var empty = map[string]string{
	"alert HeliostatDown":           "Heliostat is scraped",
	"alert HeliostatNobodyDecides":  "it leads",
	"alert RayClustersWithoutShard": "one process decides about all RayClusters",
	"alert HeliostatStandsStill":    "it makes cycles",
	"alert HeliostatCyclesFail":     "hardly a cycle fails",
	"alert HeliostatForbidden":      "it has all rights",
	"alert HeliostatPatchesFail":    "every patch is taken",
	"alert HeliostatPlannerSlow":    "the plans are small",
	"alert HeliostatFallsBehind":    "one RayCluster is read five times per second",
	"alert HeliostatReactsSlowly":   "patches take milliseconds",
	"alert HeliostatSeriesDropped":  "one RayCluster has few series",
	"alert RayClusterNotRead":       "the head answers",
	"alert RayDemandCapped":         "no maximum is reached",
	"alert RayGroupCoolingDown":     "no launch fails",
	"alert RayWorkersDoNotJoin":     "all workers have joined",
	"alert RayScaleUpSlow":          "the pods take seconds",
	"alert RayNumGPUsMismatch":      "all groups announce what their nodes have",
	"alert RayReplicasReverted":     "nobody sets replicas back",
	"alert RayGPUsIdle":             "fewer GPUs are there",

	"health.json: Shards, A":                       "one process decides about all RayClusters",
	"health.json: RayClusters without a shard, A":  "one process decides about all RayClusters",
	"health.json: Age of the reading of Leases, A": "one process decides about all RayClusters",
}

// ofSpeed lists those of empty that a machine without free cores gives data.
var ofSpeed = []string{"alert HeliostatPlannerSlow", "alert HeliostatReactsSlowly", "alert HeliostatFallsBehind",
	"alert HeliostatCyclesFail"}

// stage is a dev cluster with a Heliostat that sends data to a Prometheus and a collector.
type stage struct {
	*testing.T
	began      time.Time
	ctx        context.Context
	lab        *rig.Rig
	fleet      *rig.Heliostat
	collector  *collector
	prometheus *prometheus
	journal    *rig.Journal
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// free returns a loopback address that is not in use.
func (s *stage) free() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	defer listener.Close()
	return listener.Addr().String()
}

func set(t *testing.T) *stage {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	s := &stage{T: t, began: time.Now(), ctx: ctx, journal: rig.NewJournal(func(f rig.Fact) { t.Log(f.Stage, f.Group, f.Pod, f.Detail) })}
	var err error
	http, grpc := s.free(), s.free()
	s.collector, err = startCollector(ctx, http, grpc)
	s.must(err)
	t.Cleanup(func() { s.collector.stop(context.Background()) })
	starting, done := context.WithTimeout(ctx, patience)
	defer done()
	s.prometheus, err = startPrometheus(starting, t.TempDir(), s.free())
	s.must(err)
	t.Cleanup(s.prometheus.stop)
	rig.Quiet()
	s.lab, err = rig.Start(ctx, rig.Options{Out: os.Stderr})
	s.must(err)
	t.Cleanup(func() {
		ending, done := context.WithTimeout(context.Background(), time.Minute)
		defer done()
		if s.fleet != nil {
			s.fleet.Stop(ending)
		}
		if s.Failed() && s.fleet != nil {
			fmt.Fprintf(os.Stderr, "Heliostat's last lines:\n%s\n", s.fleet.LastLines(30))
		}
		if err := s.lab.Stop(ending); err != nil {
			t.Error(err)
		}
	})
	s.lab.HeliostatEnv = []string{
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://" + http + "/v1/traces", "OTEL_BSP_SCHEDULE_DELAY=200",
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://" + grpc, "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=grpc", "OTEL_METRIC_EXPORT_INTERVAL=1000",
	}
	s.serve()
	return s
}

// serve starts Heliostat and makes Prometheus scrape it.
func (s *stage) serve() {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	var err error
	s.fleet, err = s.lab.Serve(ctx, "--pool-label", "topology.kubernetes.io/zone", "--pools", "testdata/pools.yaml", "--protect-busy")
	s.must(err)
	s.must(s.prometheus.scrape(s.fleet.URL))
}

// until waits until done returns true. It logs what it waits for.
func (s *stage) until(what string, done func() bool) {
	s.Helper()
	for begun := time.Now(); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Since(begun) > patience {
			s.Fatalf("waiting until %s", what)
		}
	}
}

func (s *stage) workers(group string, n int) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	s.must(s.journal.Wait(ctx, fmt.Sprintf("%d living workers of group %s", n, group), func(facts []rig.Fact) bool {
		alive := 0
		for _, pod := range rig.Living(facts, group) {
			if _, joined := rig.OfPod(facts, pod, rig.NodeAlive); joined {
				alive++
			}
		}
		return alive == n
	}))
}

// call requests resources as a caller with its own trace does.
func (s *stage) call(body string) {
	s.Helper()
	s.until("the REST API takes the call", func() bool {
		request, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.fleet.URL+rig.RequestPath(namespace, name), strings.NewReader(body))
		s.must(err)
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode < http.StatusMultipleChoices
	})
}

// cordon cordons all nodes, or uncordons them.
func (s *stage) cordon(closed bool) {
	s.Helper()
	nodes, err := s.lab.Kube.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{})
	s.must(err)
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%v}}`, closed)
	for _, node := range nodes.Items {
		_, err := s.lab.Kube.CoreV1().Nodes().Patch(s.ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		s.must(err)
	}
}

// launched returns the cycle that patched the group.
func (s *stage) launched(group string) (cycle span) {
	s.until("the cycle that launched a pod of group "+group+" is told", func() bool {
		all := s.collector.spans()
		at := slices.IndexFunc(all, func(told span) bool { return told.name == "cycle" && slices.Contains(told.launched, group) })
		if at >= 0 {
			cycle = all[at]
		}
		return at >= 0
	})
	return cycle
}

// TestAScaleUpIsWatchedByPrometheusAndACollector scales up one RayCluster through a call, through work, and
// across a crash of Heliostat. It then checks every expression and every span.
func TestAScaleUpIsWatchedByPrometheusAndACollector(t *testing.T) {
	s := set(t)
	// Of groups with equal prices, the one whose nodes hold work goes first, and the head may be on any node.
	slicesLast := map[string]string{"heliostat.dev/price": `{"cpu": 1, "gpu": 2, "mig": 3}`}
	cluster := rig.Cluster{Namespace: namespace, Name: name, IdleSeconds: 120, Annotations: slicesLast, Groups: []rig.Group{
		{Name: "cpu", Max: 2, CPU: "2"},
		{Name: "gpu", Max: 2, Devices: map[string]int64{"nvidia.com/gpu": 1}},
		{Name: "mig", Max: 2, Devices: map[string]int64{"nvidia.com/mig-1g.10gb": 1}, Labels: map[string]string{"gpu-slice": "mig-1g.10gb"}},
	}}
	s.lab.Observe(s.ctx, namespace, name, s.journal)
	s.must(s.lab.Create(s.ctx, cluster.Manifest()))
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	s.must(s.lab.HeadAlive(ctx, namespace, name))

	s.call(`{"bundles": [{"GPU": 1}]}`)
	s.workers("gpu", 1)
	s.complete(s.launched("gpu"))
	s.patchIsLoggedIn(s.launched("gpu"), "gpu")

	connecting, connected := context.WithTimeout(s.ctx, patience)
	defer connected()
	driver, err := s.lab.Driver(connecting, namespace, name, "driver")
	s.must(err)
	t.Cleanup(func() { driver.Kill() })
	slice := rig.Command{Do: "actor", ID: "slice", GPUs: 1, Labels: map[string]string{"gpu-slice": "mig-1g.10gb"}}
	for _, command := range []rig.Command{slice, {Do: "task", ID: "too-big", GPUs: 5}} {
		s.must(driver.Do(command))
	}
	s.workers("mig", 1)
	s.complete(s.launched("mig"))

	s.crash(driver)
	s.everyExpressionHasData()
	s.everyInstrumentWasExported()
}

// complete asserts that the trace of a cycle has a span for each of its parts, within the cycle.
func (s *stage) complete(root span) {
	s.Helper()
	count := map[string]int{}
	for _, told := range s.collector.spans() {
		if told.trace != root.trace || told.id == root.id {
			continue
		}
		count[told.name]++
		if told.parent != root.id || told.from.Before(root.from) || told.to.After(root.to) {
			s.Errorf("%s lasts from %v to %v, outside of %s", told.name, told.from, told.to, root.name)
		}
	}
	if diff := gocmp.Diff(map[string]int{"observe": 1, "plan": 1, "apply": 1}, count); diff != "" {
		s.Errorf("parts of the cycle (-want +got):\n%s", diff)
	}
	if root.failed {
		s.Errorf("the cycle failed: %v", root.attributes)
	}
}

// patchIsLoggedIn asserts that the log has the patch of a group, with the trace and the span of the cycle that patched.
func (s *stage) patchIsLoggedIn(cycle span, group string) {
	s.Helper()
	text, err := os.ReadFile(s.fleet.Log)
	s.must(err)
	for line := range strings.Lines(string(text)) {
		var l struct {
			Message string `json:"msg"`
			Cluster string `json:"cluster"`
			Group   string `json:"group"`
			Trace   string `json:"trace_id"`
			Span    string `json:"span_id"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			s.Fatalf("%q is no line of the log: %v", line, err)
		}
		if l.Message == "patched" && l.Group == group {
			if l.Trace != cycle.trace || l.Span != cycle.id || l.Cluster != namespace+"/"+name {
				s.Errorf("the patch is logged as %s, want it in span %s of trace %s", line, cycle.id, cycle.trace)
			}
			return
		}
	}
	s.Errorf("no patch of group %s is logged", group)
}

// crash kills Heliostat while a pod is pending. The next process reports what it sees.
func (s *stage) crash(driver *rig.Driver) {
	s.Helper()
	s.cordon(true)
	s.must(driver.Do(rig.Command{Do: "task", ID: "two-cpus", CPUs: 2}))
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	s.must(s.journal.Wait(ctx, "a pod of group cpu", func(facts []rig.Fact) bool { return len(rig.Pods(facts, "cpu")) == 1 }))
	s.fleet.Kill()
	s.serve()
	s.until("the new process has looked", func() bool {
		status, _, err := s.fleet.Call(s.ctx, http.MethodGet, "/v1/namespaces/"+namespace+"/rayclusters/"+name+"/snapshot", "")
		return err == nil && status == http.StatusOK
	})
	s.until("the collector has the workers on cordoned nodes", func() bool { return s.collector.names()["heliostat_workers_going"] })
	s.cordon(false)
	s.workers("cpu", 1)
}

// everyExpressionHasData evaluates all expressions until each has the expected data.
func (s *stage) everyExpressionHasData() {
	s.Helper()
	all, err := expressions(namespace, name)
	s.must(err)
	wrong := map[string]string{}
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Second) {
		clear(wrong)
		for _, e := range all {
			series, err := s.prometheus.ask(s.ctx, e.text)
			s.must(err)
			reason, mayBeEmpty := empty[e.where]
			switch {
			case series == 0 && !mayBeEmpty:
				wrong[e.where] = "has no data: " + e.text
			case series > 0 && mayBeEmpty && !slices.Contains(ofSpeed, e.where):
				wrong[e.where] = "is said to have no data, since " + reason + ", and has some: " + e.text
			}
		}
		if len(wrong) == 0 || time.Now().After(deadline) {
			break
		}
	}
	for _, where := range slices.Sorted(maps.Keys(wrong)) {
		s.Errorf("%s %s", where, wrong[where])
	}
	for where := range empty {
		if !slices.ContainsFunc(all, func(e expression) bool { return e.where == where }) {
			s.Errorf("%s is said to have no data, and is no expression", where)
		}
	}
	bad, err := s.prometheus.unhealthy(s.ctx)
	s.must(err)
	if len(bad) > 0 {
		s.Errorf("rules that Prometheus cannot evaluate: %v", bad)
	}
}

// rare lists the instruments that this test does not trigger.
var rare = []string{"heliostat_group_cooldown_seconds", "heliostat_requests",
	"heliostat_shards", "heliostat_clusters_without_shard", "heliostat_shards_read_age_seconds"}

// everyInstrumentWasExported asserts that the collector has received every metric in /metrics.
func (s *stage) everyInstrumentWasExported() {
	s.Helper()
	source, err := os.ReadFile(filepath.Join(root, "internal/telemetry/metricnames.go"))
	s.must(err)
	names := s.collector.names()
	found := 0
	for _, match := range regexp.MustCompile(`"((?:heliostat|autoscaler)_[a-z_]+)"`).FindAllSubmatch(source, -1) {
		found++
		if name := string(match[1]); names[name] == slices.Contains(rare, name) {
			s.Errorf("%s: exported %v", name, names[name])
		}
	}
	if found < 30 {
		s.Errorf("only %d instruments were found", found)
	}
	_, metrics, err := s.fleet.Call(s.ctx, http.MethodGet, "/metrics", "")
	s.must(err)
	for _, want := range []string{"heliostat_clusters 1\n", "heliostat_leading 1\n"} {
		if !bytes.Contains(metrics, []byte(want)) {
			s.Errorf("/metrics has no line %q", want)
		}
	}
}
