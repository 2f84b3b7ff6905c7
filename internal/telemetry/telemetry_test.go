package telemetry

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestGroupsAndClustersThatAreGoneLeaveNoSeries(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := New(registry)
	if err != nil {
		t.Fatal(err)
	}
	cycle := Cycle{Namespace: "ml", Cluster: "llm", Managed: true, RayFailed: true, Took: time.Millisecond, SeenToPatched: time.Millisecond,
		Groups:  []Group{{Name: "gpu", Current: 1, Desired: 2, Max: 4}, {Name: "cpu"}},
		Unmet:   map[string]int64{"capped": 3},
		Actions: []Action{{Kind: "patch", Result: "ok", Took: time.Millisecond}}}
	m.Observe(cycle)
	if got := gauge(t, registry, "heliostat_group_workers", "gpu", "desired"); got != 2 {
		t.Errorf("desired workers = %v, want 2", got)
	}
	cycle.Groups, cycle.Unmet = cycle.Groups[:1], nil
	m.Observe(cycle)
	if got := countSeries(m.workers); got != 4 {
		t.Errorf("%d series of workers, want the 4 of the group that is left", got)
	}
	if got := countSeries(m.unmet); got != 0 {
		t.Errorf("%d series of unmet demand, want none once it is served", got)
	}
	m.Forget("ml", "llm")
	left, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range left {
		for _, metric := range family.Metric {
			for _, label := range metric.Label {
				if label.GetValue() == "llm" {
					t.Errorf("%s still has a series of the cluster", family.GetName())
				}
			}
		}
	}
}

func TestNumbersOfGPUsThatAreNotKnownHaveNoSeries(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := New(registry)
	if err != nil {
		t.Fatal(err)
	}
	cycle := Cycle{Namespace: "ml", Cluster: "llm", Groups: []Group{
		{Name: "slices", NumGPUs: map[string]float64{"derived": 2, "reported": 3}, NumGPUsMismatch: true}, {Name: "cpu"}}}
	m.Observe(cycle)
	if got := gauge(t, registry, "heliostat_group_num_gpus", "slices", "reported"); got != 3 {
		t.Errorf("reported = %v, want 3", got)
	}
	if got := gauge(t, registry, "heliostat_group_num_gpus_mismatch", "slices"); got != 1 {
		t.Errorf("mismatch = %v, want 1", got)
	}
	if columns, groups := countSeries(m.numGPUs), countSeries(m.mismatch); columns != 2 || groups != 2 {
		t.Errorf("%d columns and %d groups, want 2 of each", columns, groups)
	}
	cycle.Groups[0].NumGPUs = map[string]float64{"derived": 3}
	m.Observe(cycle)
	if got := countSeries(m.numGPUs); got != 1 {
		t.Errorf("%d columns, want 1 once no node proves a number", got)
	}
	cycle.Groups = cycle.Groups[1:]
	m.Observe(cycle)
	if columns, groups := countSeries(m.numGPUs), countSeries(m.mismatch); columns != 0 || groups != 1 {
		t.Errorf("%d columns and %d groups once the group is gone, want 0 and 1", columns, groups)
	}
	cycle.Groups = []Group{{Name: "slices", NumGPUs: map[string]float64{"derived": 2}}}
	m.Observe(cycle)
	m.Forget("ml", "llm")
	if columns, groups := countSeries(m.numGPUs), countSeries(m.mismatch); columns+groups != 0 {
		t.Errorf("%d columns and %d groups once the RayCluster is gone", columns, groups)
	}
}

// Dropping a cluster's series to set them anew means a search through those of all clusters.
func TestSeriesThatStayAreNotMadeAnew(t *testing.T) {
	m, err := New(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	cycle := Cycle{Namespace: "ml", Cluster: "llm", Groups: []Group{{Name: "gpu", Desired: 1}}, Unmet: map[string]int64{"capped": 1}}
	m.Observe(cycle)
	workers, unmet := m.workers.WithLabelValues("ml", "llm", "gpu", "desired"), m.unmet.WithLabelValues("ml", "llm", "capped")
	m.Observe(cycle)
	if workers != m.workers.WithLabelValues("ml", "llm", "gpu", "desired") || unmet != m.unmet.WithLabelValues("ml", "llm", "capped") {
		t.Error("the series were dropped and made anew")
	}
}

func BenchmarkObserveAmongAThousandClusters(b *testing.B) {
	m, err := New(prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	cycles := make([]Cycle, 1000)
	for i := range cycles {
		cycles[i] = Cycle{Namespace: "ml", Cluster: fmt.Sprint("llm-", i), Groups: []Group{{Name: "cpu"}, {Name: "gpu"}}, Unmet: map[string]int64{"capped": 1}}
		m.Observe(cycles[i])
	}
	for i := 0; b.Loop(); i++ {
		m.Observe(cycles[i%len(cycles)])
	}
}

// gauge finds the value of the series that has all of these label values.
func gauge(t *testing.T, registry *prometheus.Registry, name string, labels ...string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			found := 0
			for _, label := range metric.GetLabel() {
				if slices.Contains(labels, label.GetValue()) {
					found++
				}
			}
			if family.GetName() == name && found == len(labels) {
				return metric.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no series of %s with labels %v", name, labels)
	return 0
}

func countSeries(c prometheus.Collector) int {
	all := make(chan prometheus.Metric, 100)
	c.Collect(all)
	return len(all)
}

func TestRegisteringTwiceIsAnError(t *testing.T) {
	registry := prometheus.NewRegistry()
	if _, err := New(registry); err != nil {
		t.Fatal(err)
	}
	if _, err := New(registry); err == nil {
		t.Error("want an error")
	}
}

func TestLoggerFormats(t *testing.T) {
	for format, want := range map[string]string{"text": "reason=idle", "json": `"reason":"idle"`} {
		var out bytes.Buffer
		log, err := NewLogger(&out, format, "warn")
		if err != nil {
			t.Fatal(err)
		}
		log.Info("hidden")
		log.Warn("shown", "reason", "idle")
		if got := out.String(); !strings.Contains(got, want) || strings.Contains(got, "hidden") {
			t.Errorf("%s: %q", format, got)
		}
	}
	for _, bad := range [][2]string{{"xml", "info"}, {"text", "loud"}} {
		if _, err := NewLogger(&bytes.Buffer{}, bad[0], bad[1]); err == nil {
			t.Errorf("format %q and level %q: want an error", bad[0], bad[1])
		}
	}
}
