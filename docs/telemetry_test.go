package docs

import (
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// metricName matches the Prometheus name of an instrument.
var metricName = regexp.MustCompile(`\b(?:heliostat|autoscaler)_[a-z_]+\b`)

// instruments returns the names of all instruments.
func instruments(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	for _, file := range goFiles(t, "internal/telemetry/metricnames.go", false) {
		ast.Inspect(file, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok {
				if text, err := strconv.Unquote(literal.Value); err == nil && metricName.FindString(text) == text && text != "" {
					found[text] = true
				}
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(found))
}

func TestTelemetryListsAllInstruments(t *testing.T) {
	listed := map[string]bool{}
	for _, name := range metricName.FindAllString(read(t, "docs/reference/telemetry.md"), -1) {
		listed[name] = true
	}
	if diff := cmp.Diff(instruments(t), slices.Sorted(maps.Keys(listed))); diff != "" {
		t.Errorf("instruments (-source +docs):\n%s", diff)
	}
}

func TestPagesNameExistingInstruments(t *testing.T) {
	known := instruments(t)
	for _, path := range pages(t) {
		for _, name := range metricName.FindAllString(read(t, path), -1) {
			if strings.HasPrefix(name, "heliostat_") && !slices.Contains(known, strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")) {
				t.Errorf("%s names %s, which is not an instrument", path, name)
			}
		}
	}
}
