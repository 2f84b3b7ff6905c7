package planner

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/snapshotfile"
)

// An amount of 0 asks for nothing, so it must not reveal which of two equal requests came first.
func TestAmountsOfZeroLeaveNoTrace(t *testing.T) {
	plan := func(requests string) string {
		s, err := snapshotfile.ReadSnapshot(strings.NewReader(`{"groups": [{"name": "a", "resources": {"CPU": 4}, "maxReplicas": 2}], "pendingRequests": `+requests+`}`), "snapshot")
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(Compute(s, Policy{}))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	with, without := `{"resources": {"CPU": 100, "GPU": 0}, "count": 1}`, `{"resources": {"CPU": 100}, "count": 1}`
	if a, b := plan("["+with+","+without+"]"), plan("["+without+","+with+"]"); a != b {
		t.Errorf("another order gives another plan:\n%s\n%s", a, b)
	}
}

// Sentences that were once untrue.
func TestSentencesAreTrue(t *testing.T) {
	const equal = `{"groups": [{"name": "a", "resources": {"CPU": 4}, "maxReplicas": 9}, {"name": "b", "resources": {"CPU": 4}, "maxReplicas": 9}],
		"pendingRequests": [{"resources": {"CPU": 4}, "count": 2}]}`
	const capped = `{"groups": [{"name": "a", "resources": {"CPU": 4}, "maxReplicas": 2}], "requestResources": [{"resources": {"CPU": 4}, "count": 5}]}`
	const idle = `{"idleTimeoutSeconds": 3600, "groups": [{"name": "a", "resources": {"CPU": 4}, "maxReplicas": 2}], "nodes": [
		{"pod": "p", "group": "a", "state": "IDLE", "total": {"CPU": 4}, "available": {"CPU": 4}, "idleSeconds": 3601}]}`
	const cheap = `{"groups": [{"name": "a", "resources": {"CPU": 4}, "maxReplicas": 9, "price": 3.00011}, {"name": "b", "resources": {"CPU": 4}, "maxReplicas": 9, "price": 3.00012}],
		"pendingRequests": [{"resources": {"CPU": 4}, "count": 2}]}`
	for name, test := range map[string]struct{ snapshot, group, pod, want, never string }{
		"of equal groups the name decides":           {equal, "b", "", "group a was chosen: both offer the same, and its name sorts first", "served with less"},
		"demand that cannot be served needs a group": {capped, "a", "", "cannot be served in full", "none is needed"},
		"a pod that goes does not stay":              {idle, "a", "", "stopping 1 pod", "1 idle"},
		"a second more than an hour":                 {idle, "", "p", "idle for longer than 60m", "than 60m, longer"},
		"prices are distinguished":                   {cheap, "b", "", "price 3.00012 > 3.00011", "3 > 3"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := snapshotfile.ReadSnapshot(strings.NewReader(test.snapshot), "snapshot")
			if err != nil {
				t.Fatal(err)
			}
			explained, found := explainGroup(s, test.group)
			if test.pod != "" {
				explained, found = explainPod(s, test.pod)
			}
			if text := fmt.Sprint(explained); !found || !strings.Contains(text, test.want) || strings.Contains(text, test.never) {
				t.Errorf("got %s\nwant %q and never %q", text, test.want, test.never)
			}
		})
	}
}
