package main

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
)

func TestACapacityPolicyIsSetShownAndRemoved(t *testing.T) {
	r := newRemote(t)
	run := func(stdin string, want string, argv ...string) {
		t.Helper()
		code, out, errOut := command(t, stdin, append([]string{"autoscaler", "policy", "ml/llm"}, argv...)...)
		if code != cli.ExitOK || !strings.Contains(out, want) {
			t.Errorf("%v: exit %d %s: want in it %q, got %q", argv, code, errOut, want, out)
		}
	}
	run("", "ml/llm has no capacity policy\n")
	const two = `{"keepWarm": [{"group": "gpu", "count": 2}]}`
	run("", `{"keepWarm":[{"group":"gpu","count":2}]}`, "--set", two)
	if r.policy == nil || r.policy.KeepWarm[0].Count != 2 {
		t.Errorf("set %+v", r.policy)
	}
	run(two, `"count":2`, "--set", "-")
	r.view.Kube.Policy = &capacity.Written{Policy: *r.policy, Source: "CapacityPolicy office"}
	r.view.Idle = "suspended in 5m"
	r.view.Plan.Warm = []planner.WarmPlan{{WarmEntry: planner.WarmEntry{Name: "keepWarm[0]"}, Reason: planner.Reason{Code: "warm", Message: "2 of 2 free"}}}
	r.view.WarmNodes = []capacity.NodesPlan{{Name: "keepWarmNodes[0]", Code: capacity.NodesWaiting, Message: "nodes for 1 of 1 workers"}}
	for _, want := range []string{"ml/llm: CapacityPolicy office\n", "  keepWarm[0]: warm: 2 of 2 free\n", "  keepWarmNodes[0]: nodes_waiting: nodes for 1 of 1 workers\n", "  idle: suspended in 5m\n"} {
		run("", want)
	}
	run("", `"source": "CapacityPolicy office"`, "-o", "json")
	run("", "ml/llm: the annotation is removed\n", "--remove")
	if r.policy != nil {
		t.Errorf("%+v is left", r.policy)
	}
}

func TestABadPolicyIsRefusedBeforeAnythingIsCalled(t *testing.T) {
	r := newRemote(t)
	code, _, errOut := command(t, "", "autoscaler", "policy", "ml/llm", "--set", `{"keepWarm": [{"count": 1}]}`)
	if code != cli.ExitBadInput || !strings.Contains(errOut, "keepWarm[0].group: missing: want the name of a worker group") || r.policy != nil {
		t.Errorf("exit %d %s, set %+v", code, errOut, r.policy)
	}
}

func TestAClusterIsResumed(t *testing.T) {
	r := newRemote(t)
	code, out, errOut := command(t, "", "autoscaler", "resume", "ml/llm")
	if code != cli.ExitOK || out != "ml/llm is not suspended: the operator starts its head\n" || !r.resumed {
		t.Errorf("exit %d %s: %q, resumed %v", code, errOut, out, r.resumed)
	}
}
