package planner

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/snapshotfile"
)

// TestPlansAreNoWorseThanRays holds what was worse than the plan of Ray 2.60.0 once, one cause each.
func TestPlansAreNoWorseThanRays(t *testing.T) {
	type result struct {
		Launch   map[string]int
		Stop     []string
		Unserved int64
	}
	cases := map[string]result{
		// A replica of two hosts fits only as long as no single pod has taken a place.
		"replicas-fill-the-common-bound": {Launch: map[string]int{"g1": 4}},
		// request_resources launches, requests launch the rest: offered all these pods at once, what is small takes the wrong ones.
		"found-again-step-by-step": {Launch: map[string]int{"group-0": 4}, Unserved: 2},
		// In Ray's order the nodes that a gang has come to already take the next one too. All together cost less still: the second
		// pod is of group-2.
		"what-was-placed-before-counts": {Launch: map[string]int{"group-0": 1, "group-2": 1, "group-3": 3}},
		// Tightly placed, the gangs take the accelerators beside which the CPUs serve requests.
		"gangs-on-the-roomiest-nodes": {Launch: map[string]int{"group-0": 2, "group-3": 1}, Unserved: 5},
		// Two idle nodes whose time is not over serve all of request_resources.
		"overdue-nodes-last": {Stop: []string{"pod-2", "pod-3"}},
		// A CPU node that is idle for too long would stay for one CPU that a GPU node in use has free.
		"riding-before-an-overdue-node-stays": {Launch: map[string]int{"group-0": 1, "group-2": 2}, Stop: []string{"pod-4"}},
		// Small bundles of a STRICT_SPREAD gang leave the nodes alone that only the large ones need.
		"spread-over-what-is-there": {Unserved: 1},
		// Only requests that go before gangs find the places again for which the pods were launched.
		"requests-before-gangs": {Launch: map[string]int{"group-0": 1, "group-2": 2, "group-3": 4}, Stop: []string{"pod-0"}},
		// Ray's order serves one more request under the common bound.
		"ray-order-under-a-limit": {Launch: map[string]int{"group-1": 1}, Unserved: 6},
	}
	for name, want := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", "no-worse-than-ray", name+".json")
			raw, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer raw.Close()
			s, err := snapshotfile.ReadSnapshot(raw, file)
			if err != nil {
				t.Fatal(err)
			}
			plan := Compute(s, s.Policy)
			got := result{Unserved: unserved(plan)}
			if len(plan.Launch) > 0 {
				got.Launch = plan.Launch
			}
			for _, stop := range plan.Terminate {
				got.Stop = append(got.Stop, stop.Pod)
			}
			slices.Sort(got.Stop)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the plan (-want +got): %s", diff)
			}
		})
	}
}
