package main

import (
	"fmt"
	"strings"
	"testing"
)

// promisedSnapshot returns a snapshot of one group on a node of 8 GPUs, with these promises to other RayClusters.
func promisedSnapshot(gpus, bound int, promised string) string {
	return fmt.Sprintf(`{"groups": [{"name": "a", "resources": {"CPU": 1, "GPU": 1}, "minReplicas": 0, "maxReplicas": 20, "bound": %d,
			"pod": {"requests": {"nvidia.com/gpu": %d}}}], "nodes": [],
		"places": [{"pool": "p", "node": "n1", "nodes": 1, "free": {"nvidia.com/gpu": 8}, "accepts": ["a", "ml/b/gpu"]},
			{"pool": "q", "node": "n2", "nodes": 1, "free": {"nvidia.com/gpu": 8}, "accepts": ["ml/c/gpu"]}],
		"promised": [%s], "pendingRequests": [{"resources": {"GPU": 1}, "count": 20}]}`, bound, gpus, promised)
}

func TestWhatIsPromisedToOthersIsLeftToThem(t *testing.T) {
	promise := func(cluster string, pods, gpus int) string {
		return fmt.Sprintf(`{"rayCluster": %q, "pods": %d, "pod": {"name": "%s/gpu", "requests": {"nvidia.com/gpu": %d}}}`, cluster, pods, cluster, gpus)
	}
	const theirs = "group a can have no more pods: what is free on the nodes is promised to 3 pods of RayCluster ml/b, which come first"
	tests := []struct {
		name, promised string
		gpus, want     int
		message        string
	}{
		{"nothing is promised", "", 1, 8, ""},
		{"three of eight GPUs are promised", promise("ml/b", 3, 1), 1, 5, theirs},
		{"all GPUs are promised", promise("ml/b", 2, 4), 1, 0, "2 pods of RayCluster ml/b"},
		{"what others use elsewhere does not count", promise("ml/c", 8, 1), 1, 8, ""},
		{"only those that can use the same nodes are named", promise("ml/c", 8, 1) + ", " + promise("ml/b", 3, 1), 1, 5, theirs},
		{"the node is too small in any case", promise("ml/b", 1, 1), 6, 1, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			plan := planOf(t, promisedSnapshot(test.gpus, 0, test.promised))
			if plan.Launch["a"] != test.want {
				t.Errorf("launches %v, want %d", plan.Launch, test.want)
			}
			why := plan.InfeasibleRequests[0].Reason.Message
			if !strings.Contains(why, test.message) || strings.Contains(why, "promised") != (test.message != "") {
				t.Errorf("the rest is not served because of %q, want %q", why, test.message)
			}
			wantCode := "capped"
			if test.message != "" {
				wantCode = "pool_promised"
			}
			if reason := plan.InfeasibleRequests[0].Reason; reason.Code != wantCode {
				t.Errorf("the rest has the code %q, want %q", reason.Code, wantCode)
			}
			if s := plan.Summary[0]; (s.PoolPromised > 0) != (test.message != "") || s.PoolPromised+s.Capped != int64(20-test.want) {
				t.Errorf("summary %+v", s)
			}
			if last := plan.Groups[0].Reasons[0]; test.want == 0 && last.Code != "pool_promised" {
				t.Errorf("reasons %+v, want pool_promised", plan.Groups[0].Reasons)
			}
		})
	}
}

func TestAPromiseNeedsTheNameByWhichPlacesAcceptIt(t *testing.T) {
	for promised, want := range map[string]string{
		`{"rayCluster": "ml/b", "pods": 1}`:                       `promised[0].pod`,
		`{"rayCluster": "ml/b", "pods": 1, "pod": {}}`:            `promised[0].pod.name`,
		`{"pods": 1, "pod": {"name": "x"}}`:                       `promised[0].rayCluster`,
		`{"rayCluster": "b", "pods": -1, "pod": {"name": "b/a"}}`: `promised[0].pods`,
	} {
		_, _, errOut := command(t, promisedSnapshot(1, 0, promised), "autoscaler", "plan", "--snapshot", "-")
		if !strings.Contains(errOut, want) {
			t.Errorf("%s: error %q, want %s", promised, errOut, want)
		}
	}
}
