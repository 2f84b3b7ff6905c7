package telemetry

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
)

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
