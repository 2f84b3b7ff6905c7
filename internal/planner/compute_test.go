package planner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// decision is the part of a plan that changes the world, and the unmet demand.
type decision struct {
	Launch map[string]int
	Stop   map[string]string
	Unmet  []string // codes
}

func decisionOf(p Plan) decision {
	d := decision{Launch: p.Launch}
	for _, stop := range p.Terminate {
		if d.Stop == nil {
			d.Stop = map[string]string{}
		}
		d.Stop[stop.Pod] = stop.Reason
	}
	for _, u := range p.InfeasibleRequests {
		d.Unmet = append(d.Unmet, u.Reason.Code)
	}
	for _, u := range p.InfeasibleGangRequests {
		d.Unmet = append(d.Unmet, u.Reason.Code)
	}
	for _, u := range p.InfeasibleRequestResources {
		d.Unmet = append(d.Unmet, u.Reason.Code)
	}
	return d
}

func TestTheRulesHoldOneByOne(t *testing.T) {
	type launch = map[string]int
	for name, c := range map[string]struct {
		snapshot string
		want     decision
	}{
		"a leaving node takes no demand": {
			`{"groups": [{"name": "g", "resources": {"CPU": 1}, "maxReplicas": 2}],
			  "nodes": [{"pod": "p", "group": "g", "state": "LEAVING", "total": {"CPU": 1}, "available": {"CPU": 1}}],
			  "pendingRequests": [{"resources": {"CPU": 1}, "count": 1}]}`,
			decision{Launch: launch{"g": 1}},
		},
		"a leaving node fills its group until it is gone": {
			`{"groups": [{"name": "g", "resources": {"CPU": 1}, "maxReplicas": 1}],
			  "nodes": [{"pod": "p", "group": "g", "state": "LEAVING", "total": {"CPU": 1}, "available": {"CPU": 1}}],
			  "pendingRequests": [{"resources": {"CPU": 1}, "count": 1}]}`,
			decision{Launch: launch{}, Unmet: []string{Capped}},
		},
		"a node chosen to stop takes no demand": {
			`{"maxWorkers": 1, "groups": [{"name": "a", "resources": {"CPU": 1}, "maxReplicas": 0}, {"name": "b", "resources": {"CPU": 1}, "maxReplicas": 3}],
			  "nodes": [{"pod": "p", "group": "a", "state": "IDLE", "total": {"CPU": 1}, "available": {"CPU": 1}, "idleSeconds": 1}],
			  "pendingRequests": [{"resources": {"CPU": 1}, "count": 1}]}`,
			decision{Launch: launch{}, Stop: map[string]string{"p": "max_group"}, Unmet: []string{Capped}},
		},
		"a node of a removed group is left alone where launch configurations are not compared": {
			`{"launchConfigCheckDisabled": true, "idleTimeoutSeconds": 1, "groups": [{"name": "g", "resources": {"CPU": 1}, "maxReplicas": 1}],
			  "nodes": [{"pod": "p", "group": "gone", "state": "IDLE", "total": {"CPU": 1}, "available": {"CPU": 1}, "idleSeconds": 99}],
			  "pendingRequests": [{"resources": {"CPU": 1}, "count": 1}]}`,
			decision{Launch: launch{"g": 1}},
		},
		"more available than there is counts as what there is": {
			`{"groups": [{"name": "g", "resources": {"CPU": 1}, "maxReplicas": 9}],
			  "nodes": [{"pod": "p", "group": "g", "state": "RUNNING", "total": {"CPU": 1}, "available": {"CPU": 4}}],
			  "pendingRequests": [{"resources": {"CPU": 1}, "count": 3}]}`,
			decision{Launch: launch{"g": 2}},
		},
		"a request for nothing launches nothing": {
			`{"groups": [{"name": "g", "resources": {"CPU": 1}, "maxReplicas": 9}], "pendingRequests": [{"resources": {}, "count": 3}]}`,
			decision{Launch: launch{}},
		},
		"a minimum above the maximum leaves the group as it is": {
			`{"idleTimeoutSeconds": 1, "groups": [{"name": "g", "resources": {"CPU": 1}, "minReplicas": 3, "maxReplicas": 1}],
			  "nodes": [{"pod": "p", "group": "g", "state": "IDLE", "total": {"CPU": 1}, "available": {"CPU": 1}, "idleSeconds": 99},
			            {"pod": "q", "group": "g", "state": "IDLE", "total": {"CPU": 1}, "available": {"CPU": 1}, "idleSeconds": 99}],
			  "pendingRequests": [{"resources": {"CPU": 1}, "count": 3}]}`,
			decision{Launch: launch{}, Unmet: []string{Capped}},
		},
		"a closed group takes no launches, not even for its minimum": {
			`{"groups": [{"name": "g", "resources": {"CPU": 1}, "minReplicas": 1, "maxReplicas": 9, "closed": "suspended"}],
			  "pendingRequests": [{"resources": {"CPU": 1}, "count": 3}]}`,
			decision{Launch: launch{}, Unmet: []string{Closed}},
		},
		"idle for exactly the timeout is not yet idle long enough": {
			`{"idleTimeoutSeconds": 60, "groups": [{"name": "g", "resources": {"CPU": 1}, "maxReplicas": 9}],
			  "nodes": [{"pod": "p", "group": "g", "state": "IDLE", "total": {"CPU": 1}, "available": {"CPU": 1}, "idleSeconds": 60},
			            {"pod": "q", "group": "g", "state": "IDLE", "total": {"CPU": 1}, "available": {"CPU": 1}, "idleSeconds": 60.5}]}`,
			decision{Launch: launch{}, Stop: map[string]string{"q": "idle"}},
		},
		"the longest idle goes first, down to the minimum": {
			`{"idleTimeoutSeconds": 60, "groups": [{"name": "g", "resources": {"CPU": 1}, "minReplicas": 1, "maxReplicas": 9}],
			  "nodes": [{"pod": "p", "group": "g", "state": "IDLE", "total": {"CPU": 1}, "available": {"CPU": 1}, "idleSeconds": 70},
			            {"pod": "q", "group": "g", "state": "IDLE", "total": {"CPU": 1}, "available": {"CPU": 1}, "idleSeconds": 200}]}`,
			decision{Launch: launch{}, Stop: map[string]string{"q": "idle"}},
		},
		"the last host of a replica of which the others leave follows them, whatever the minimum": {
			`{"idleTimeoutSeconds": 60, "groups": [{"name": "g", "resources": {"CPU": 1}, "minReplicas": 1, "maxReplicas": 1, "replicas": 1, "numOfHosts": 2}],
			  "nodes": [{"pod": "p", "group": "g", "replica": "a", "state": "LEAVING", "total": {"CPU": 1}, "available": {"CPU": 1}},
			            {"pod": "q", "group": "g", "replica": "a", "state": "IDLE", "total": {"CPU": 1}, "available": {"CPU": 1}, "idleSeconds": 200}]}`,
			decision{Launch: launch{}, Stop: map[string]string{"q": "idle"}},
		},
		"a strictly packed gang with two selectors needs one node that matches both": {
			`{"groups": [{"name": "a", "resources": {"CPU": 4}, "labels": {"x": "1"}, "maxReplicas": 9}, {"name": "b", "resources": {"CPU": 4}, "labels": {"y": "1"}, "maxReplicas": 9},
			             {"name": "c", "resources": {"CPU": 4}, "labels": {"x": "1", "y": "1"}, "maxReplicas": 9}],
			  "pendingGangRequests": [{"strategy": "STRICT_PACK", "bundles": [{"CPU": 1}, {"CPU": 1}], "bundleLabelSelectors": [{"x": "1"}, {"y": "1"}]}]}`,
			decision{Launch: launch{"c": 1}},
		},
		"a rescheduled bundle of a strictly spread gang avoids the nodes that hold the others": {
			`{"groups": [{"name": "g", "resources": {"CPU": 2}, "maxReplicas": 9}],
			  "nodes": [{"pod": "p", "group": "g", "state": "RUNNING", "total": {"CPU": 2}, "available": {"CPU": 1}, "placedLabels": {"_PG_ab": ""}}],
			  "pendingGangRequests": [{"id": "ab", "strategy": "STRICT_SPREAD", "bundles": [{"CPU": 1}]}]}`,
			decision{Launch: launch{"g": 1}},
		},
		"a topology gang stays within one value of its label": {
			`{"groups": [{"name": "a", "resources": {"CPU": 1}, "labels": {"rack": "1"}, "maxReplicas": 2}, {"name": "b", "resources": {"CPU": 1}, "labels": {"rack": "2"}, "maxReplicas": 3}],
			  "pendingGangRequests": [{"strategy": "SPREAD", "topologyLabel": "rack", "bundles": [{"CPU": 1}, {"CPU": 1}, {"CPU": 1}]}]}`,
			decision{Launch: launch{"b": 3}},
		},
		"a topology gang that no one value can hold launches nothing": {
			`{"groups": [{"name": "a", "resources": {"CPU": 1}, "labels": {"rack": "1"}, "maxReplicas": 2}, {"name": "b", "resources": {"CPU": 1}, "labels": {"rack": "2"}, "maxReplicas": 2}],
			  "pendingGangRequests": [{"strategy": "PACK", "topologyLabel": "rack", "bundles": [{"CPU": 1}, {"CPU": 1}, {"CPU": 1}]}]}`,
			decision{Launch: launch{}, Unmet: []string{Capped}},
		},
		"replicas asked for and not seen are capacity on its way": {
			`{"groups": [{"name": "g", "resources": {"CPU": 1}, "maxReplicas": 9, "replicas": 2}], "pendingRequests": [{"resources": {"CPU": 1}, "count": 3}]}`,
			decision{Launch: launch{"g": 1}},
		},
		"expected nodes are not counted beside the replicas that asked for them": {
			`{"groups": [{"name": "g", "resources": {"CPU": 1}, "maxReplicas": 9, "replicas": 1}],
			  "nodes": [{"pod": "g-expected-0", "group": "g", "state": "PENDING", "expected": true, "total": {"CPU": 1}, "available": {"CPU": 1}}],
			  "pendingRequests": [{"resources": {"CPU": 1}, "count": 2}]}`,
			decision{Launch: launch{"g": 1}},
		},
		"multi-host groups launch whole replicas": {
			`{"groups": [{"name": "g", "resources": {"TPU": 4}, "maxReplicas": 3, "numOfHosts": 4}], "pendingRequests": [{"resources": {"TPU": 4}, "count": 5}]}`,
			decision{Launch: launch{"g": 8}},
		},
		"a multi-host replica with one busy host stays whole": {
			`{"idleTimeoutSeconds": 1, "groups": [{"name": "g", "resources": {"TPU": 4}, "maxReplicas": 3, "numOfHosts": 2}],
			  "nodes": [{"pod": "a0", "group": "g", "replica": "a", "state": "IDLE", "total": {"TPU": 4}, "available": {"TPU": 4}, "idleSeconds": 9},
			            {"pod": "a1", "group": "g", "replica": "a", "state": "RUNNING", "total": {"TPU": 4}, "available": {"TPU": 0}},
			            {"pod": "b0", "group": "g", "replica": "b", "state": "IDLE", "total": {"TPU": 4}, "available": {"TPU": 4}, "idleSeconds": 9},
			            {"pod": "b1", "group": "g", "replica": "b", "state": "IDLE", "total": {"TPU": 4}, "available": {"TPU": 4}, "idleSeconds": 9}]}`,
			decision{Launch: launch{}, Stop: map[string]string{"b0": "idle", "b1": "idle"}},
		},
		"Conservative has at most five on the way in an empty group": {
			`{"upscalingMode": "Conservative", "groups": [{"name": "g", "resources": {"CPU": 1}, "maxReplicas": 20}], "pendingRequests": [{"resources": {"CPU": 1}, "count": 10}]}`,
			decision{Launch: launch{"g": 5}, Unmet: []string{Capped}},
		},
		"Conservative doubles what runs": {
			`{"upscalingMode": "Conservative", "groups": [{"name": "g", "resources": {"CPU": 1}, "maxReplicas": 20}],
			  "nodes": [{"pod": "1", "group": "g", "state": "RUNNING", "total": {"CPU": 1}, "available": {"CPU": 0}}, {"pod": "2", "group": "g", "state": "RUNNING", "total": {"CPU": 1}, "available": {"CPU": 0}},
			            {"pod": "3", "group": "g", "state": "RUNNING", "total": {"CPU": 1}, "available": {"CPU": 0}}, {"pod": "4", "group": "g", "state": "RUNNING", "total": {"CPU": 1}, "available": {"CPU": 0}},
			            {"pod": "5", "group": "g", "state": "RUNNING", "total": {"CPU": 1}, "available": {"CPU": 0}}, {"pod": "6", "group": "g", "state": "RUNNING", "total": {"CPU": 1}, "available": {"CPU": 0}}],
			  "pendingRequests": [{"resources": {"CPU": 1}, "count": 10}]}`,
			decision{Launch: launch{"g": 6}, Unmet: []string{Capped}},
		},
		"each call of request_resources is judged on the whole cluster, they do not add up": {
			`{"groups": [{"name": "g", "resources": {"CPU": 1}, "maxReplicas": 9}],
			  "requestResources": [{"resources": {"CPU": 1}, "count": 3}], "keptResources": [{"resources": {"CPU": 1}, "count": 4}]}`,
			decision{Launch: launch{"g": 4}},
		},
		"request_resources counts what is in use and keeps it from idling out": {
			`{"idleTimeoutSeconds": 1, "groups": [{"name": "g", "resources": {"CPU": 1}, "maxReplicas": 9}],
			  "nodes": [{"pod": "p", "group": "g", "state": "RUNNING", "total": {"CPU": 1}, "available": {"CPU": 0}},
			            {"pod": "q", "group": "g", "state": "IDLE", "total": {"CPU": 1}, "available": {"CPU": 1}, "idleSeconds": 9}],
			  "requestResources": [{"resources": {"CPU": 1}, "count": 2}]}`,
			decision{Launch: launch{}},
		},
		"work without GPU takes the CPU group, memory on both or not": {
			`{"groups": [{"name": "a", "resources": {"CPU": 4, "GPU": 1, "memory": 17179869184}, "maxReplicas": 9}, {"name": "b", "resources": {"CPU": 8, "memory": 34359738368}, "maxReplicas": 9}],
			  "pendingRequests": [{"resources": {"CPU": 4}, "count": 1}]}`,
			decision{Launch: launch{"b": 1}},
		},
		"work without GPU takes a GPU group where nothing else can serve": {
			`{"groups": [{"name": "a", "resources": {"CPU": 4, "GPU": 1}, "maxReplicas": 9}], "pendingRequests": [{"resources": {"CPU": 4}, "count": 1}]}`,
			decision{Launch: launch{"a": 1}},
		},
		"the head serves demand": {
			`{"groups": [{"name": "a", "resources": {"CPU": 4}, "maxReplicas": 9}], "head": {"resources": {"CPU": 4}}, "pendingRequests": [{"resources": {"CPU": 4}, "count": 2}]}`,
			decision{Launch: launch{"a": 1}},
		},
		"fallback bundles are tried in order": {
			`{"groups": [{"name": "a", "resources": {"CPU": 4}, "maxReplicas": 1}],
			  "pendingGangRequests": [{"strategy": "PACK", "bundles": [{"CPU": 8}], "fallbackBundles": [[{"CPU": 4}, {"CPU": 4}], [{"CPU": 3}]]}]}`,
			decision{Launch: launch{"a": 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, decisionOf(Compute(plannertest.Read(t, c.snapshot), Policy{}))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnmetDemandSaysWhatWasMissing(t *testing.T) {
	groups := `"groups": [{"name": "a", "resources": {"CPU": 4, "GPU": 1}, "maxReplicas": 2, "labels": {"zone": "eu"}}, {"name": "b", "resources": {"CPU": 64}, "maxReplicas": 3}]`
	for name, c := range map[string]struct{ demand, code, message string }{
		"too large": {`"pendingRequests": [{"resources": {"GPU": 2}, "count": 1}]`, Impossible, "needs 2 GPU; the largest group has 1 (a)"},
		"unknown":   {`"pendingRequests": [{"resources": {"TPU": 1}, "count": 1}]`, Impossible, "needs 1 TPU; no group has any"},
		"not together": {`"pendingRequests": [{"resources": {"GPU": 1, "CPU": 8}, "count": 1}]`, Impossible,
			"no group has all of {CPU 8, GPU 1}: group a: too small: needs 8 CPU, has 4; group b: too small: needs 1 GPU, has 0"},
		"labels": {`"pendingRequests": [{"resources": {"GPU": 1}, "count": 1, "labelSelectors": [{"zone": "us"}]}]`, Impossible,
			"no group has all of {GPU 1} where zone=us: group a: label zone is eu, must be us; group b: too small: needs 1 GPU, has 0; label zone is missing, must be us"},
		"maximum of the group": {`"pendingRequests": [{"resources": {"GPU": 1}, "count": 5}]`, Capped,
			"group a is at its maximum of 2 (has 0, launching 2); group b: too small: needs 1 GPU, has 0"},
		"maximum in all": {`"maxWorkers": 1, "pendingRequests": [{"resources": {"GPU": 1}, "count": 5}]`, Capped,
			"all groups together are at their maximum of 1; group b: too small: needs 1 GPU, has 0"},
		"a gang of different nodes": {`"pendingGangRequests": [{"strategy": "STRICT_SPREAD", "bundles": [{"GPU": 1}, {"GPU": 1}, {"GPU": 1}]}]`, Capped,
			"needs 3 different nodes at once: group a can add only 2 pods: its maximum is 2 (has 0); group b: too small: needs 1 GPU, has 0"},
		"a fallback that a limit stands in the way of": {`"maxWorkers": 0, "pendingGangRequests": [{"strategy": "PACK", "bundles": [{"GPU": 9}], "fallbackBundles": [[{"GPU": 1}]]}]`, Capped,
			"choice 1 of 2: needs 9 GPU; the largest group has 1 (a); choice 2 of 2: all groups together are at their maximum of 0; group b: too small: needs 1 GPU, has 0"},
		"a gang on one node": {`"pendingGangRequests": [{"strategy": "STRICT_PACK", "bundles": [{"GPU": 1}, {"GPU": 1}]}]`, Impossible,
			"all bundles on one node: needs 2 GPU; the largest group has 1 (a)"},
		"a topology that is not there": {`"pendingGangRequests": [{"strategy": "PACK", "topologyLabel": "rack", "bundles": [{"GPU": 1}]}]`, Impossible,
			"no node and no group has the gang's topology label rack"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Compute(plannertest.Read(t, "{"+groups+", "+c.demand+"}"), Policy{})
			var got []Reason
			for _, u := range plan.InfeasibleRequests {
				got = append(got, u.Reason)
			}
			for _, u := range plan.InfeasibleGangRequests {
				got = append(got, u.Reason)
			}
			if diff := cmp.Diff([]Reason{{Code: c.code, Message: c.message}}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEveryGroupSaysWhy(t *testing.T) {
	s := plannertest.Read(t, `{"takenAt": "2026-01-31T12:00:45Z", "idleTimeoutSeconds": 60, "groups": [
		{"name": "full", "resources": {"GPU": 1}, "maxReplicas": 1},
		{"name": "idle", "resources": {"CPU": 1}, "minReplicas": 1, "maxReplicas": 4},
		{"name": "shut", "resources": {"CPU": 9}, "maxReplicas": 4, "closed": "cooling down for 40s"},
		{"name": "up", "resources": {"CPU": 8, "memory": 17179869184}, "minReplicas": 1, "maxReplicas": 4}],
		"nodes": [
		{"pod": "full-0", "group": "full", "state": "PENDING", "since": "2026-01-31T12:00:00Z"},
		{"pod": "idle-0", "group": "idle", "state": "IDLE", "total": {"CPU": 1}, "available": {"CPU": 1}, "idleSeconds": 90},
		{"pod": "idle-1", "group": "idle", "state": "IDLE", "total": {"CPU": 1}, "available": {"CPU": 1}, "idleSeconds": 34}],
		"pendingRequests": [{"resources": {"GPU": 1}, "count": 3}, {"resources": {"CPU": 8, "memory": 1073741824}, "count": 2}]}`)
	want := map[string][]Reason{
		"full": {{Code: model.CodeAtMax, Message: "group full is at its maximum of 1 (has 1)"}, {Code: model.CodeOnTheWay, Message: "1 pod requested earlier has not joined Ray yet, the oldest for 45s"}},
		"idle": {{Code: model.CodeTooSmall, Message: "{GPU 1}: too small: needs 1 GPU, has 0"},
			{Code: model.CodeStop, Message: "stopping 1 pod: idle-0 (idle for 90s, longer than 60s)"}, {Code: model.CodeIdle, Message: "1 of 1 idle, longest 34s of 60s"}},
		"shut": {{Code: CodeClosed, Message: "closed: cooling down for 40s"}},
		"up":   {{Code: CodeLaunch, Message: "launching 2 pods for the minimum of 1, 2 × {CPU 8, memory 1 GiB}"}},
	}
	got := map[string][]Reason{}
	for _, row := range Compute(s, Policy{}).Groups {
		got[row.Name] = row.Reasons
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatMakesNoSenseIsAFinding(t *testing.T) {
	s := plannertest.Read(t, `{"launchConfigCheckDisabled": true, "groups": [{"name": "g", "resources": {"CPU": 1}, "maxReplicas": 9}],
		"nodes": [{"pod": "p", "group": "g", "state": "RUNNING", "total": {"CPU": 1}, "available": {"CPU": 4}},
		          {"pod": "q", "group": "gone", "state": "RUNNING", "total": {"CPU": 1}, "available": {"CPU": 1}}]}`)
	var got []string
	for _, f := range Compute(s, Policy{}).Findings {
		got = append(got, f.Code+" "+f.Object)
	}
	if diff := cmp.Diff([]string{"available-over-total node p", "group-removed pod q"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestThePriceIsToldWhenEveryLaunchedGroupHasOne(t *testing.T) {
	price := 1.5
	s := Snapshot{Groups: []Group{{Name: "g", Resources: plannertest.Bundle(1, 0, 0), Max: 9, NumOfHosts: 1, Price: &price}},
		Demand: raydemand.Demand{Requests: []raydemand.Request{{Bundle: plannertest.Bundle(1, 0, 0), Count: 2}}}}
	if got := Compute(s, Policy{}).Price; got == nil || *got != 3 {
		t.Errorf("price %v, want 3", got)
	}
	s.Groups[0].Price = nil
	if got := Compute(s, Policy{}).Price; got != nil {
		t.Errorf("price %v of a group without one", *got)
	}
}
