package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestTheSummaryOfAPlanMatchesTheSpec(t *testing.T) {
	s, err := snapshotfile.ReadSnapshot(strings.NewReader(`{"takenAt": "2026-01-31T12:01:00Z",
		"groups": [{"name": "gpu", "resources": {"GPU": 1}, "maxReplicas": 2}],
		"nodes": [{"pod": "p", "group": "gpu", "state": "PENDING", "since": "2026-01-31T12:00:30Z"}],
		"pendingRequests": [{"resources": {"GPU": 1}, "count": 4, "labelSelectors": [{"zone": "!a"}]}],
		"pendingGangRequests": [{"id": "aa", "strategy": "PACK", "bundles": [{"GPU": 9}], "fallbackBundles": [[{"GPU": 8}]], "fallbackBundleLabelSelectors": [[{"zone": "a"}]]}],
		"requestResources": [{"resources": {"GPU": 1}, "count": 1}]}`), "s.json")
	if err != nil {
		t.Fatal(err)
	}
	two, three := raydemand.Whole(2), raydemand.Whole(3)
	gpus := addon.GroupNumGPUs{Mode: nodepool.SyncWhenEmpty, Code: nodepool.SyncNotEmpty, Why: "the group has pods",
		NumGPUs: nodepool.NumGPUs{Derived: &two, Reported: &three, Mismatch: true, Sources: nodepool.NumGPUsSources{Derived: "limit nvidia.com/mig-1g.5gb"}}}
	view := View{
		Decision: addon.Decision{
			At:       s.TakenAt,
			Mode:     "managed",
			Snapshot: s,
			Plan:     planner.Compute(s, planner.Policy{}),
			NumGPUs:  map[string]addon.GroupNumGPUs{"gpu": gpus},
		},
	}
	shown := view.Status(s.TakenAt.Add(time.Second))
	text, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	loadSpec(t).mustMatch("Cluster", text)
	const want = `"numGpus":{"declared":null,"derived":2,"mismatch":true,"ray":null,"reported":3,` +
		`"sources":{"declared":"","derived":"limit nvidia.com/mig-1g.5gb","reported":"","ray":""},` +
		`"sync":{"code":"not-empty","mode":"when-empty","why":"the group has pods"}}`
	if !strings.Contains(string(text), want) {
		t.Errorf("shown %s, want %s in it", text, want)
	}
	if len(shown.Summary) != 3 {
		t.Errorf("summary = %+v, want an entry for the request, the gang and request_resources", shown.Summary)
	}
}
