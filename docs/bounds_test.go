package docs

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// source is a number in a row of the table of bounds, and where the code has it.
type source struct{ shown, path, code string }

// boundSources lists, for each row of the table, the code of its numbers. A row without numbers has none: its bound is a
// flag, or the number of objects.
var boundSources = map[string][]source{
	"of a RayCluster": nil, "of a worker group": nil, "of a worker": nil,
	"nodes, pods on them, NodeClaims, ResourceSlices, Workloads, ProvisioningRequests, namespaces": nil,
	// client-go's recorder has this number (maxQueuedEvents).
	"Events on RayClusters that wait to be written": nil,
	"a reading of Ray": {
		{"50,000 nodes", "pkg/raydemand/gcs/state.go", "maxNodes = 50_000"}, {"1.5 million elements", "pkg/raydemand/gcs/decodereply.go", "maxElements = 1_500_000"},
		{"node has 60 and a shape 10", "pkg/raydemand/gcs/decodereply.go", "A node has about 60 elements and a shape 10"},
	},
	"demand of a reading": {
		{"20,000 shapes", "pkg/raydemand/gcs/state.go", "maxShapes = 20_000"}, {"100,000 bundles", "pkg/raydemand/gcs/state.go", "maxBundles = 100_000"},
	},
	"different requests and bundles of gangs in one plan": {
		{"200", "internal/planner/place/turn.go", "fewShapes = 200"}, {"1,000", "internal/planner/place/turn.go", "mostShapes = 1000"},
	},
	"requests of owners": {
		{"400 of a namespace", "pkg/nodepool/ownedrequest.go", "MaxRequests = 400"}, {"10 kinds", "pkg/raydemand/owned.go", "MaxOwnedBundles = 10"},
	},
	"pods that do not exist yet, in a snapshot": {{"4,096", "internal/controller/observe/snapshot.go", "maxExpected = 4096"}},
	"drains":                       {{"16", "internal/controller/drain.go", "maxDrains = 16"}},
	"names of nodes that are gone": {{"10,000", "pkg/nodepool/kube/nodes/absentnodes.go", "maxAbsent = 10_000"}},
	"the list of another shard":    {{"64 MiB", "internal/api/division.go", "maxGathered = 64 << 20"}},
	"Events of node autoscalers":   {{"50,000", "pkg/nodepool/kube/nodes/eventfeed.go", "mostEvents = 50_000"}},
	"the history": {
		{"64 MiB", "cmd/autoscaler/engine/history.go", "defaultHistoryBytes = 64 << 20"},
		{"200 decisions", "cmd/autoscaler/engine/history.go", "defaultHistoryEntries = 200"},
	},
	"costs": {
		{"64 accounts", "internal/ledger/ledger.go", "limits.Accounts, 64"}, {"2,000 that ended", "internal/ledger/ledger.go", "limits.Ended, 2000"},
	},
	"REST callers": {
		{"10,000", "internal/api/limits.go", "maxCallers = 10_000"}, {"200 calls", "internal/api/limits.go", "maxCalls = 200"},
		{"2,000 connections", "cmd/autoscaler/engine/servers.go", "maxConnections = 2000"},
	},
	"bodies of REST calls": {
		{"512 KiB", "internal/api/body.go", "maxBody = 512 << 10"}, {"10,000 bundles", "internal/api/body.go", "maxBundles = 10_000"},
	},
	"plans for what-if": {
		{"2 at once", "internal/api/limits.go", "maxPlans = 2"},
	},
	"findings": {{"20 of one code", "pkg/nodepool/kube/decode/fields.go", "MostOfOneCode = 20"}},
	"tokens and rights of callers": {
		{"200 reviews", "cmd/autoscaler/engine/gate.go", "reviewsPerSecond = 200"},
	},
	"series of metrics": {
		{"20,000", "internal/telemetry/collect.go", "maxSeries = 20_000"},
	},
	"traces": {
		{"32 actions", "internal/telemetry/trace.go", "mostTraced = 32"},
	},
}

// metricsOfTheProduct returns the names of the metrics that exist.
func metricsOfTheProduct(t *testing.T) map[string]bool {
	t.Helper()
	// The collector of processes of Prometheus' client has these.
	names := map[string]bool{"process_resident_memory_bytes": true, "process_open_fds": true}
	for _, found := range regexp.MustCompile(`"(heliostat_[a-z_]+)"`).FindAllStringSubmatch(read(t, "internal/telemetry/metricnames.go"), -1) {
		names[found[1]] = true
	}
	return names
}

// TestBoundsAreThoseOfTheCode: each row of the table of bounds has the numbers of the code, and names metrics that exist.
func TestBoundsAreThoseOfTheCode(t *testing.T) {
	spaces, metric := regexp.MustCompile(`\s+`), regexp.MustCompile("`((heliostat|process)_[a-z_]+)")
	exist := metricsOfTheProduct(t)
	var rows []string
	for line := range strings.Lines(between(t, "docs/operations.md", "\n## Bounds\n", "\n## ")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 4 || strings.Contains(cells[0], "what is kept") {
			continue
		}
		row, _, _ := strings.Cut(strings.TrimSpace(cells[0]), ":")
		rows = append(rows, row)
		named := metric.FindAllStringSubmatch(cells[2], -1)
		if named == nil && cells[2] != "the same" {
			t.Errorf("row %q names no metric: %s", row, cells[2])
		}
		for _, name := range named {
			if !exist[name[1]] {
				t.Errorf("row %q names %s, which does not exist", row, name[1])
			}
		}
		for _, number := range boundSources[row] {
			code := spaces.ReplaceAllString(read(t, number.path), " ")
			if !strings.Contains(cells[1], number.shown) || !regexp.MustCompile(regexp.QuoteMeta(number.code)+`\b`).MatchString(code) {
				t.Errorf("row %q has the bound %q, want %q; %s should have %q", row, cells[1], number.shown, number.path, number.code)
			}
		}
	}
	slices.Sort(rows)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(boundSources)), rows); diff != "" {
		t.Errorf("rows of the table (-test +page):\n%s", diff)
	}
}
