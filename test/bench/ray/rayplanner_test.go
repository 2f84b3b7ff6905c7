package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/snapshotfile"
)

// casesDir holds the planning cases derived from the tests of Ray's own autoscaler. Ray's planner must plan them as
// they say.
const casesDir = "../../../internal/planner/testdata/cases"

func TestRaysPlannerIsAskedWhatItsOwnTestsAskIt(t *testing.T) {
	ray := startRay(t)
	files, err := filepath.Glob(filepath.Join(casesDir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d case files (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := snapshotfile.ReadSnapshot(strings.NewReader(string(raw)), file)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := ray.plan(s)
			if err != nil {
				t.Fatal(err)
			}
			var want struct {
				Expect struct {
					Launch                                             map[string]int
					Terminate                                          []struct{ Pod, Reason string }
					InfeasibleRequests                                 []struct{ Count int64 }
					InfeasibleGangRequests, InfeasibleRequestResources []any
				}
			}
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			stop, unserved := map[string]string{}, int64(0)
			for _, each := range want.Expect.Terminate {
				stop[each.Pod] = each.Reason
			}
			for _, each := range want.Expect.InfeasibleRequests {
				unserved += max(each.Count, 1)
			}
			unserved += int64(len(want.Expect.InfeasibleGangRequests)) + int64(min(len(want.Expect.InfeasibleRequestResources), 1))
			if diff := cmp.Diff(want.Expect.Launch, got.launch); diff != "" {
				t.Errorf("launch (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(stop, got.stop); diff != "" {
				t.Errorf("stop (-want +got):\n%s", diff)
			}
			if got.unserved() != unserved {
				t.Errorf("%d unserved, want %d", got.unserved(), unserved)
			}
		})
	}
}
