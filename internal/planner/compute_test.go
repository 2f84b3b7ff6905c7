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

func TestALeavingPodOfARemovedGroupIsNoFinding(t *testing.T) {
	s := plannertest.Read(t, `{"groups": [{"name": "g", "resources": {"CPU": 1}}], "nodes": [{"pod": "p", "group": "gone", "state": "LEAVING"}]}`)
	if found := Compute(s, Policy{}).Findings; len(found) > 0 {
		t.Errorf("findings: %v, want none, because nothing is left to do", found)
	}
}

func TestThePriceIsReportedIfEveryLaunchedGroupHasOne(t *testing.T) {
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
