package planner

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const explained = `{"takenAt": "2026-01-31T12:01:00Z", "idleTimeoutSeconds": 60, "launchConfigCheckDisabled": true, "groups": [
	{"name": "cool", "resources": {"TPU": 4}, "coolingSeconds": 40, "closed": "3 pods are unschedulable"},
	{"name": "gpu", "resources": {"CPU": 4, "GPU": 1}, "maxReplicas": 6, "price": 1.1},
	{"name": "late", "resources": {"CPU": 4, "GPU": 1}, "maxReplicas": 5, "price": 3.2}],
	"head": {"pod": "head", "resources": {"CPU": 1}},
	"nodes": [
	{"pod": "busy", "group": "gpu", "state": "RUNNING", "total": {"CPU": 4, "GPU": 1}, "available": {"CPU": 3}},
	{"pod": "coming", "group": "gpu", "state": "PENDING", "since": "2026-01-31T12:00:30Z"},
	{"pod": "free", "group": "gpu", "state": "IDLE", "total": {"CPU": 4, "GPU": 1}, "available": {"CPU": 4, "GPU": 1}, "idleSeconds": 90},
	{"pod": "going", "group": "gpu", "state": "LEAVING"},
	{"pod": "lost", "group": "gpu", "state": "ALLOCATION_TIMEOUT"},
	{"pod": "old", "group": "gone", "state": "IDLE"},
	{"pod": "unused", "group": "late", "state": "IDLE", "total": {"CPU": 4}, "available": {"CPU": 4}, "idleSeconds": 90}],
	"pendingRequests": [{"resources": {"GPU": 1}, "count": 3}, {"resources": {"TPU": 4}, "count": 2}]}`

func TestADemandIsExplainedWithEveryGroupThatWasConsidered(t *testing.T) {
	s := readText(t, explained)
	for name, c := range map[string]struct {
		bundle raydemand.Bundle
		want   Explanation
	}{
		"launched for": {raydemand.Bundle{raydemand.GPU: raydemand.One}, Explanation{About: "demand {GPU 1}",
			Reason: Reason{Code: model.DispositionLaunching, Message: "3 asked, 1 is served by running nodes, 1 waits for pods on their way, the oldest for 30s, 1 is placed on pods launched now"},
			Details: []Detail{
				{About: "group cool", Reason: Reason{Code: model.CodeTooSmall, Message: "too small: needs 1 GPU, has 0"}},
				{About: "group gpu", Reason: Reason{Code: CodeLaunch, Message: "launching 1 pod, which serves 1"}},
				{About: "group late", Reason: Reason{Code: model.CodeNotChosen, Message: "group gpu was chosen: price of a pod 3.2 > 1.1"}},
			}}},
		"cooling down": {raydemand.Bundle{"TPU": raydemand.Whole(4)}, Explanation{About: "demand {TPU 4}",
			Reason: Reason{Code: CoolingDown, Message: "2 asked, 2 wait until a group has cooled down: group cool: cooling down for 40s: 3 pods are unschedulable; " +
				"group gpu: too small: needs 4 TPU, has 0; group late: too small: needs 4 TPU, has 0"},
			Details: []Detail{
				{About: "group cool", Reason: Reason{Code: CodeCoolingDown, Message: "cooling down for 40s: 3 pods are unschedulable"}},
				{About: "group gpu", Reason: Reason{Code: model.CodeTooSmall, Message: "too small: needs 4 TPU, has 0"}},
				{About: "group late", Reason: Reason{Code: model.CodeTooSmall, Message: "too small: needs 4 TPU, has 0"}},
			}}},
		"not asked for": {bundleOf(64, 0, 0), Explanation{About: "demand {CPU 64}",
			Reason: Reason{Code: Impossible, Message: "no task in the snapshot is waiting for it; with 1: 1 asked, 1 is impossible: needs 64 CPU; the largest group has 4 (gpu)"},
			Details: []Detail{
				{About: "group cool", Reason: Reason{Code: model.CodeTooSmall, Message: "too small: needs 64 CPU, has 0"}},
				{About: "group gpu", Reason: Reason{Code: model.CodeTooSmall, Message: "too small: needs 64 CPU, has 4"}},
				{About: "group late", Reason: Reason{Code: model.CodeTooSmall, Message: "too small: needs 64 CPU, has 4"}},
			}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := explainDemand(s, raydemand.Request{Bundle: c.bundle})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAPodIsExplainedByWhatItDoes(t *testing.T) {
	s := readText(t, explained)
	for pod, want := range map[string]Reason{
		"busy":   {Code: model.PodBusy, Message: "it has work, so it is not idle"},
		"coming": {Code: model.PodPending, Message: "it has not joined Ray yet, for 30s; it counts with its group's resources"},
		"free":   {Code: model.PodIdle, Message: "idle for 90s; kept for demand that is placed on it"},
		"going":  {Code: model.PodLeaving, Message: "it is draining or being deleted; it serves nothing, but counts toward its group's limits until it is gone"},
		"lost":   {Code: model.PodGivenUp, Message: "it did not join Ray in time and does not count; other pods serve the demand"},
		"old":    {Code: model.PodRemoved, Message: `the snapshot has no worker group "gone", so the plan ignores the pod: it places no demand on it and does not stop it`},
		"unused": {Code: model.StopIdle, Message: "idle for 90s, longer than 60s"},
		"head":   {Code: model.PodHead, Message: "it is the head: it serves demand and is never launched or stopped"},
	} {
		got, ok := explainPod(s, pod)
		if diff := cmp.Diff(want, got.Reason); !ok || diff != "" {
			t.Errorf("%s: known %v: %s", pod, ok, diff)
		}
	}
	coming := slices.IndexFunc(s.Nodes, func(n Node) bool { return n.Pod == "coming" })
	busy := s
	busy.Nodes = slices.Clone(s.Nodes)
	busy.Nodes[0].Going = &departure.Notice{Sign: departure.Cordoned, Message: "the node is cordoned"}
	if got, _ := explainPod(busy, "busy"); got.Message != "its machine may go: the node is cordoned; it has work, so it is not idle" {
		t.Errorf("a pod whose machine may go: %s", got.Message)
	}
	for name, c := range map[string]struct {
		state        arrival.State
		pod, inGroup string
	}{
		"since when":       {arrival.State{Stage: arrival.NodeLaunched, Since: s.TakenAt.Add(-12 * time.Second)}, "its machine is launched, for 12s", "1 on their way: 1 node-launched"},
		"what holds it up": {arrival.State{Stage: arrival.Starting, Message: "ImagePullBackOff"}, "its container is being created: ImagePullBackOff", "1 on their way: 1 starting"},
		"the stage alone":  {arrival.State{Stage: arrival.Gated}, "a scheduling gate holds it back", "1 on their way: 1 gated"},
	} {
		s.Nodes[coming].Arrival = &c.state
		if got, _ := explainPod(s, "coming"); got.Message != "it has not joined Ray yet, for 30s; "+c.pod+"; it counts with its group's resources" {
			t.Errorf("%s: %s", name, got.Message)
		}
		got, _ := explainGroup(s, "gpu")
		if !slices.ContainsFunc(got.Details, func(d Detail) bool { return d.Message == c.inGroup }) {
			t.Errorf("%s: the group says %v", name, got.Details)
		}
	}
	s.Nodes[0].Available = s.Nodes[0].Total
	if got, _ := explainPod(s, "busy"); got.Reason != (Reason{Code: model.PodBusy, Message: "all of its resources are free, but Ray does not report it as idle"}) {
		t.Errorf("the reason of a pod that has just joined is %v", got.Reason)
	}
	if _, ok := explainPod(s, "nobody"); ok {
		t.Error("a pod that the snapshot does not have was explained")
	}
}

func TestAGroupIsExplainedByItsPodsAndByEachDemand(t *testing.T) {
	got, ok := explainGroup(readText(t, explained), "gpu")
	want := Explanation{About: "group gpu", Reason: Reason{Code: CodeLaunch, Message: "launching 1 pod for 1 × {GPU 1}"}, Details: []Detail{
		{About: "size", Reason: Reason{Code: CodeLaunch, Message: "4 → 5 pods (min 0, max 6), each {CPU 4, GPU 1}"}},
		{About: "pods", Reason: Reason{Code: model.CodeOnTheWay, Message: "1 pod requested earlier has not joined Ray yet, the oldest for 30s"}},
		{About: "pods", Reason: Reason{Code: model.CodeIdle, Message: "1 of 3 idle, longest 90s; kept for demand that is placed on it"}},
		{About: "pods", Reason: Reason{Code: model.PodBusy, Message: "1 with work"}}, {About: "pods", Reason: Reason{Code: model.PodIdle, Message: "1 idle"}}, {About: "pods", Reason: Reason{Code: model.PodPending, Message: "1 on their way"}},
		{About: "pods", Reason: Reason{Code: model.PodLeaving, Message: "1 leaving"}}, {About: "pods", Reason: Reason{Code: model.PodGivenUp, Message: "1 given up"}},
		{About: "demand 2 × {TPU 4}", Reason: Reason{Code: model.CodeTooSmall, Message: "too small: needs 4 TPU, has 0"}},
		{About: "demand 3 × {GPU 1}", Reason: Reason{Code: CodeLaunch, Message: "launching 1 pod, which serves 1"}},
	}}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("known %v: %s", ok, diff)
	}
	kept := readText(t, explained)
	kept.OwnedRequests = []raydemand.Owned{{ID: "a", Owner: "ann", Requests: []raydemand.Request{{Bundle: raydemand.Bundle{"GPU": raydemand.Whole(1)}, Count: 1}}}}
	if got, _ := explainGroup(kept, "gpu"); !strings.HasPrefix(got.Details[len(got.Details)-1].About, "requests over REST 1 ×") {
		t.Errorf("what ann requests is called %q", got.Details[len(got.Details)-1].About)
	}
	if _, ok := explainGroup(readText(t, explained), "nobody"); ok {
		t.Error("a group that the snapshot does not have was explained")
	}
}

func TestWhatIsExplainedIsWhatIsPlanned(t *testing.T) {
	forEachKind(t, func(t *rapid.T, s Snapshot) {
		plan := Compute(s, Policy{})
		stops := map[string]string{}
		for _, stop := range plan.Terminate {
			stops[stop.Pod] = stop.Reason
		}
		for _, n := range s.Nodes {
			e, ok := explainPod(s, n.Pod)
			if reason, goes := stops[n.Pod]; !ok || goes && e.Code != reason {
				t.Errorf("%s is stopped for %q and explained as %+v", n.Pod, reason, e)
			}
		}
		for _, row := range plan.Groups {
			if e, ok := explainGroup(s, row.Name); !ok || e.Reason != row.Reasons[0] {
				t.Errorf("group %s is %+v and explained as %+v", row.Name, row.Reasons[0], e.Reason)
			}
		}
		for _, u := range plan.InfeasibleRequests {
			if e := explainDemand(s, u.Request); len(u.Selectors) > 0 && e.Code != u.Reason.Code {
				t.Errorf("%s is %s and explained as %s", Describe(u.Request), u.Reason.Code, e.Code)
			}
		}
		for _, r := range plan.Requests {
			e, err := Explain(s, Policy{}, Question{Request: r.ID})
			if !r.Plain && (err != nil || e.Code != r.Reason.Code || !strings.HasPrefix(e.Message, string(r.State)+": ")) {
				t.Errorf("request %s is %s (%s) and explained as %+v (%v)", r.ID, r.State, r.Reason.Code, e.Reason, err)
			}
		}
	})
}

func explainDemand(s Snapshot, r raydemand.Request) Explanation {
	e, err := Explain(s, Policy{}, Question{Demand: &r})
	if err != nil {
		panic(err) // a demand can always be explained
	}
	return e
}

// explainGroup reports false if the snapshot has no such group.
func explainGroup(s Snapshot, name string) (Explanation, bool) {
	e, err := Explain(s, Policy{}, Question{Group: name})
	return e, err == nil
}

// explainPod reports false if the snapshot has no such pod.
func explainPod(s Snapshot, name string) (Explanation, bool) {
	e, err := Explain(s, Policy{}, Question{Pod: name})
	return e, err == nil
}

func TestAPodThatIsNotIdleIsExplainedByWhatRayReports(t *testing.T) {
	const (
		works   = "Busy workers on node."
		objects = "Resource: object_store_memory currently in use."
	)
	inUse := func(name string) string { return "Resource: " + name + " currently in use." }
	total := raydemand.Bundle{"CPU": raydemand.Whole(4), "my_slot": raydemand.Whole(2), "node:10.0.0.1": raydemand.One,
		raydemand.ObjectStoreMemory: raydemand.Whole(4 << 30)}
	for name, c := range map[string]struct {
		used     raydemand.Bundle
		placed   bool
		activity []string
		want     []Reason
	}{
		"a custom resource that no demand names": {raydemand.Bundle{"my_slot": raydemand.One, "node:10.0.0.1": 10}, false,
			[]string{works, inUse("my_slot"), inUse("node:10.0.0.1")},
			[]Reason{{Code: model.PodBusy, Message: "tasks or actors run on it, which use {my_slot 1}"}}},
		"the same without Ray's words": {raydemand.Bundle{"my_slot": raydemand.One}, false, nil,
			[]Reason{{Code: model.PodBusy, Message: "it has work, so it is not idle"}}},
		"an actor without resources": {nil, false, []string{works},
			[]Reason{{Code: model.CodeUncounted, Message: "tasks or actors run on it that hold no resources: for example the driver of " +
				"a submitted job, a proxy of Ray Serve, or a task that waits in ray.get()"}}},
		"objects": {raydemand.Bundle{raydemand.ObjectStoreMemory: raydemand.Whole(3 << 29)}, false, []string{objects},
			[]Reason{{Code: model.CodeHoldsObjects, Message: "nothing runs on it, but its object store holds primary copies of objects " +
				"(1.5 GiB); it becomes idle once nothing references them"}}},
		"work and objects": {raydemand.Bundle{"CPU": raydemand.One}, false, []string{works, objects, inUse("CPU")},
			[]Reason{{Code: model.PodBusy, Message: "tasks or actors run on it, which use {CPU 1}"},
				{Code: model.CodeHoldsObjects, Message: "its object store holds primary copies of objects, which keep it busy after its work is done"}}},
		"a placement group": {raydemand.Bundle{"CPU": raydemand.Whole(2)}, true, []string{inUse("CPU")},
			[]Reason{{Code: model.CodeReserved, Message: "nothing runs on it, but placement groups reserve {CPU 2} of it"}}},
		"a placement group with work in it": {raydemand.Bundle{"CPU": raydemand.Whole(2)}, true, []string{works, inUse("CPU")},
			[]Reason{{Code: model.PodBusy, Message: "tasks or actors run on it; they use, or placement groups reserve, {CPU 2}"}}},
		"a task that starts": {raydemand.Bundle{"CPU": raydemand.One}, false, []string{inUse("CPU")},
			[]Reason{{Code: model.PodBusy, Message: "{CPU 1} of it is in use: the worker process of a task or actor is starting"}}},
		"arguments": {nil, false, []string{"Pulling task arguments."},
			[]Reason{{Code: model.PodArguments, Message: "a task waits on it until its arguments have arrived"}}},
		"new words": {nil, false, []string{"Warming up."},
			[]Reason{{Code: model.PodUnexplained, Message: `Ray reports "Warming up.", which Heliostat does not know`}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := readText(t, explained)
			n := &s.Nodes[0]
			n.Total, n.Available, n.Activity = total, total.Clone(), c.activity
			for resource, amount := range c.used {
				n.Available[resource] -= amount
			}
			if c.placed {
				n.PlacedLabels = map[string]string{"_PG_01": ""}
			}
			for _, state := range []model.NodeState{model.Running, model.Leaving} {
				n.State = state
				e, _ := explainPod(s, n.Pod)
				got := activityOf(e)
				if state == model.Running {
					got = append([]Reason{e.Reason}, got...)
				}
				if diff := cmp.Diff(c.want, got); diff != "" && (state == model.Running || c.activity != nil) {
					t.Errorf("%s (-want +got):\n%s", state, diff)
				}
			}
		})
	}
}

func activityOf(e Explanation) (reasons []Reason) {
	for _, d := range e.Details {
		if d.About == "activity" {
			reasons = append(reasons, d.Reason)
		}
	}
	return reasons
}

// TestReasonsOfEqualGangsAreFoundOnce counts allocations, because time depends on the machine.
func TestReasonsOfEqualGangsAreFoundOnce(t *testing.T) {
	allocations := func(count int) float64 {
		s := fleetOf(200)
		s.LaunchConfigCheckDisabled = true
		s.Gangs = gangsOf(count, 4)
		for i := range s.Gangs {
			s.Gangs[i].Strategy = raydemand.StrictPack
			for k := range s.Gangs[i].Bundles {
				s.Gangs[i].Bundles[k] = bundleOf(100, 1, 0)
			}
		}
		return testing.AllocsPerRun(3, func() { Compute(s, Policy{}) })
	}
	const few, many, each = 10, 110, 10
	if more := (allocations(many) - allocations(few)) / (many - few); more > each {
		t.Errorf("%.0f allocations for each gang that is not served, want at most %d", more, each)
	}
}

const choosy = `{"groups": [
	{"name": "a", "resources": {"GPU": 1}, "labels": {"zone": "a"}, "maxReplicas": 0},
	{"name": "b", "resources": {"GPU": 1}, "labels": {"zone": "b"}, "maxReplicas": 4},
	{"name": "small", "resources": {"CPU": 4}, "labels": {"zone": "d"}}]`

func TestADemandIsPlannedAsIfSoManyWaitedAsItCounts(t *testing.T) {
	s := readText(t, choosy+`, "pendingRequests": [{"resources": {"GPU": 1}, "count": 3}, {"resources": {"GPU": 1}, "count": 1, "labelSelectors": [{"zone": "b"}]}]}`)
	for count, want := range map[int64]string{
		1: "3 asked, 3 are placed on pods launched now",
		3: "3 asked, 3 are placed on pods launched now",
		6: "3 in the snapshot; with 6: 6 asked, 3 are placed on pods launched now, 3 are capped: ",
	} {
		got := explainDemand(s, raydemand.Request{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One}, Count: count})
		if !strings.HasPrefix(got.Message, want) {
			t.Errorf("asked for %d: %s, want it to begin with %s", count, got.Message, want)
		}
	}
	s.Requests = s.Requests[1:] // only those for one zone
	if got := explainDemand(s, raydemand.Request{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One}}); !strings.HasPrefix(got.Message, "1 asked, 1 is placed") {
		t.Errorf("of tasks with a selector alone: %s", got.Message)
	}
}
