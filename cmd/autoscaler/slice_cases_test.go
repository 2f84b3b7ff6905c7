package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// sliceCases is the directory of snapshots with RayClusters, nodes and pools, and their expected plans.
const sliceCases = "../../test/cases/slices"

// sliceExpectation is the part of a plan that a case asserts. Findings are codes. "*" matches any code.
type sliceExpectation struct {
	Launch map[string]int
	Unmet  []struct {
		Count      int64
		Code, Says string
	}
	Findings []string
	NumGPUs  map[string]planner.NumGPUs `json:"numGpus"`
	Slice    map[string]struct {
		Kind, Profile string
		MemoryMiB     *int64
	}
}

func TestEveryCaseOfSlicesIsPlannedAsExpected(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(sliceCases, "*.json"))
	if err != nil || len(files) < 25 {
		t.Fatalf("found %d case files (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			must(t, err)
			var c struct{ Expect sliceExpectation }
			must(t, json.Unmarshal(raw, &c))
			c.Expect.check(t, planFile(t, file))
		})
	}
}

func (want sliceExpectation) check(t *testing.T, plan planner.Plan) {
	t.Helper()
	if diff := cmp.Diff(want.Launch, plan.Launch); diff != "" {
		t.Error(diff)
	}
	unmet := slices.Concat(plan.InfeasibleRequests, plan.InfeasibleRequestResources)
	if len(unmet) != len(want.Unmet) {
		t.Fatalf("%d are unmet, want %d: %+v", len(unmet), len(want.Unmet), unmet)
	}
	for i, u := range want.Unmet {
		if got := unmet[i]; got.Count != u.Count || got.Reason.Code != u.Code || !strings.Contains(got.Reason.Message, u.Says) {
			t.Errorf("%d unmet, %s: %s\nwant %d, %s: … %s", got.Count, got.Reason.Code, got.Reason.Message, u.Count, u.Code, u.Says)
		}
	}
	codes := map[string]bool{}
	for _, f := range plan.Findings {
		codes[f.Code] = true
	}
	for _, code := range want.Findings {
		if code != "*" && !codes[code] {
			t.Errorf("no finding %s among %v", code, codes)
		}
	}
	for _, g := range plan.Groups {
		if n, asked := want.NumGPUs[g.Name]; asked {
			if diff := cmp.Diff(&n, g.NumGPUs); diff != "" {
				t.Errorf("num-gpus of %s: %s", g.Name, diff)
			}
		}
		if s, asked := want.Slice[g.Name]; asked {
			switch {
			case g.Slice == nil,
				s.Kind != "" && s.Kind != string(g.Slice.Kind), s.Profile != "" && s.Profile != g.Slice.Profile,
				s.MemoryMiB != nil && (g.Slice.MemoryMiB == nil || *s.MemoryMiB != *g.Slice.MemoryMiB):
				t.Errorf("slice of %s: %+v, want %+v", g.Name, g.Slice, s)
			}
		}
	}
}

// TestWithoutNodesPlainDemandIsPlannedByWhatGroupsDeclare checks that, without access to nodes, the plan for plain
// demand uses the declared resources and has no findings about slices.
func TestWithoutNodesPlainDemandIsPlannedByWhatGroupsDeclare(t *testing.T) {
	plan := planFile(t, filepath.Join(sliceCases, "no-nodes-plain-demand-goes-by-declaration.json"))
	if len(plan.Findings) != 0 {
		t.Errorf("findings: %+v", plan.Findings)
	}
	wishing := planFile(t, filepath.Join(sliceCases, "unknown-slice-is-never-chosen.json"))
	if len(wishing.Findings) != 1 || wishing.Findings[0].Severity != raydemand.Warning {
		t.Errorf("findings: %+v", wishing.Findings)
	}
}
