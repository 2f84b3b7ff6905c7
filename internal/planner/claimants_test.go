package planner

import (
	"fmt"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/planner/plannertest"
)

func TestALaunchNamesWhoseRequestsItIsFor(t *testing.T) {
	request := func(id, owner string, gpus int) string {
		return fmt.Sprintf(`{"id": %q, "owner": %q, "requests": [{"resources": {"GPU": 1}, "count": %d}]}`, id, owner, gpus)
	}
	const node = `{"pod": "gpu-0", "group": "gpu", "state": "RUNNING", "total": {"GPU": 1}, "available": {}}`
	account := "system:serviceaccount:research:" + strings.Repeat("n", 30)
	for name, test := range map[string]struct{ more, owned, want string }{
		"one owner":   {"", request("train-7", "ann", 2), "launching 2 pods for request train-7 of ann: 2 × {GPU 1}"},
		"two owners":  {"", request("a", "ann", 2) + "," + request("b", "bob", 1), "launching 3 pods for requests a of ann, b of bob: 3 × {GPU 1}"},
		"many owners": {"", request("a", "ann", 1) + "," + request("b", "bob", 1) + "," + request("c", "cid", 1) + "," + request("d", "dan", 1), "for requests a of ann, b of bob, 2 more: 4 × {GPU 1}"},
		"a long name": {"", request("a", account, 1), "for request a of …research:" + strings.Repeat("n", 30) + ": 1 × {GPU 1}"},
		"an owner whose request is served already is not named": {`, "nodes": [` + node + `]`, request("a", "ann", 1) + "," + request("b", "bob", 1),
			"launching 1 pod for request b of bob: 1 × {GPU 1}"},
		"an owner whose request is capped is not named": {"", request("a", "ann", 8) + "," + request("b", "bob", 1), "launching 8 pods for request a of ann: 8 × {GPU 1}"},
		"the plain request is named too":                {`, "keptResources": [{"resources": {"GPU": 1}, "count": 1}]`, request("a", "ann", 1), "for request_resources over REST and request a of ann: 2 × {GPU 1}"},
		"the plain request alone":                       {`, "keptResources": [{"resources": {"GPU": 1}, "count": 1}]`, "", "for request_resources over REST 1 × {GPU 1}"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Compute(plannertest.Read(t, `{"groups": [{"name": "gpu", "resources": {"GPU": 1}, "maxReplicas": 8}]`+test.more+`, "ownedRequests": [`+test.owned+`]}`), Policy{})
			if got := plan.Groups[0].Reasons[0].Message; !strings.HasSuffix(got, test.want) {
				t.Errorf("got %q, want at its end %q", got, test.want)
			}
		})
	}
}
