package planner

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/nodepool"
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

func TestWorkHasADeadlineOnlyAboveTheMaximumOfItsGroup(t *testing.T) {
	plan := Compute(plannertest.Read(t, `{"groups": [{"name": "a", "resources": {"CPU": 1}, "maxReplicas": 1, "launchConfigHash": "new"}],
		"nodes": [
			{"pod": "a0", "group": "a", "state": "RUNNING", "total": {"CPU": 1}},
			{"pod": "a1", "group": "a", "state": "RUNNING", "total": {"CPU": 1}},
			{"pod": "old", "group": "a", "state": "RUNNING", "total": {"CPU": 1}, "launchConfigHash": "old"},
			{"pod": "idle", "group": "a", "state": "IDLE", "total": {"CPU": 1}, "launchConfigHash": "old"},
			{"pod": "lost", "group": "b", "state": "RUNNING", "total": {"CPU": 1}}]}`), Policy{})
	parting := map[string]int{}
	for _, stop := range plan.Terminate {
		parting[stop.Reason+stop.Parting()]++
	}
	want := map[string]int{
		"max_group; it has work, so it stops by a drain with a deadline": 1,
		"outdated; it has work and stops after the work is done":         2,
		"outdated": 1,
	}
	for text, n := range want {
		if parting[text] != n || len(parting) != len(want) {
			t.Errorf("%q stands %d times, want %d: %v", text, parting[text], n, parting)
		}
	}
}

// The operator does not delete pods of unknown groups, and the loop does not name them, so the sentence says so.
func TestThePodOfARemovedGroupIsLeftToTheUser(t *testing.T) {
	const snapshot = `{"groups": [], "nodes": [{"pod": "lost", "group": "b", "state": "RUNNING", "total": {"CPU": 1}}]`
	plan := Compute(plannertest.Read(t, snapshot+`}`), Policy{})
	if len(plan.Terminate) != 1 || !strings.Contains(plan.Terminate[0].Message, "the operator does not delete its pods") {
		t.Errorf("stops: %+v", plan.Terminate)
	}
	kept := Compute(plannertest.Read(t, snapshot+`, "launchConfigCheckDisabled": true}`), Policy{})
	if len(kept.Terminate) > 0 {
		t.Errorf("on KubeRay it is not stopped: %+v", kept.Terminate)
	}
	for says, p := range map[string]Plan{"should stop, which the operator does not carry out": plan, "does not stop it": kept} {
		if len(p.Findings) != 1 || !strings.HasSuffix(p.Findings[0].Why, says) || !strings.HasPrefix(p.Findings[0].Fix, "delete the pod after its work is done") {
			t.Errorf("findings: %+v", p.Findings)
		}
	}
}

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

func TestANodeThatSaysNothingOfWhatItHasCountsAsItsGroup(t *testing.T) {
	const group = `{"idleTimeoutSeconds": 60, "groups": [{"name": "g", "resources": {"GPU": 1}, "maxReplicas": 1}], "nodes": [{"pod": "a", "group": "g", "idleSeconds": 300, "state": `
	const asked = `}], "pendingRequests": [{"resources": {"GPU": 1}, "count": 1}]}`
	for state, served := range map[string]int64{`"IDLE"`: 1, `"RUNNING"`: 0, `"IDLE", "total": {}`: 0} {
		plan := Compute(plannertest.Read(t, group+state+asked), Policy{})
		found := len(plan.Findings) == 1 && plan.Findings[0].Code == model.FindingUnreported && plan.Findings[0].Object == "node a"
		if reported := state == `"IDLE", "total": {}`; plan.Summary[0].Served != served || found == reported {
			t.Errorf("%s: %d served, want %d; findings %+v", state, plan.Summary[0].Served, served, plan.Findings)
		}
		if served == 1 && len(plan.Terminate) > 0 {
			t.Errorf("%s: %+v are stopped beside demand for them", state, plan.Terminate)
		}
	}
}

// rayCluster has one group of 4-core workers.
func rayCluster(replicas, least, most int) nodepool.Cluster {
	return nodepool.Cluster{IdleTimeout: time.Minute, Groups: []nodepool.WorkerGroup{
		{Name: "cpu", Resources: plannertest.Bundle(4, 0, 0), Replicas: replicas, Min: least, Max: most, NumOfHosts: 1},
	}}
}

func TestAMinimumAboveReplicasIsTheOperatorsToLaunch(t *testing.T) {
	plan := Compute(SnapshotOf(rayCluster(1, 3, 5)), Policy{})
	if diff := cmp.Diff(map[string]int{}, plan.Launch); diff != "" || plan.Groups[0].Current != 3 {
		t.Errorf("launches %s with %d on the way, want 3", diff, plan.Groups[0].Current)
	}
}

func TestAGatedGroupTakesNoLaunchesButThoseOfItsMinimum(t *testing.T) {
	cluster := rayCluster(1, 3, 5)
	cluster.Groups[0].ScaleGates = []string{"kueue.k8s.io/quota-exceeded"}
	s := SnapshotOf(cluster)
	s.Requests = []raydemand.Request{{Bundle: plannertest.Bundle(4, 0, 0), Count: 9}}
	plan := Compute(s, Policy{})
	if len(plan.Launch) > 0 || plan.Groups[0].Current != 3 || plan.Groups[0].Reasons[0].Code != model.CodeScaleGate ||
		len(plan.InfeasibleRequests) != 1 || plan.InfeasibleRequests[0].Reason.Code != Capped {
		t.Errorf("%+v", plan)
	}
}

func TestASuspendedRayClusterTakesNoLaunches(t *testing.T) {
	cluster := rayCluster(1, 1, 5)
	cluster.Suspended = true
	if got := SnapshotOf(cluster).Groups[0].Closed; got != "the RayCluster is suspended" {
		t.Errorf("closed = %q", got)
	}
}
