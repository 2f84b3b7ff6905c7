package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestTheSummaryOfAPlanMatchesTheSpec(t *testing.T) {
	s, err := snapshotfile.ReadSnapshot(strings.NewReader(`{"takenAt": "2026-01-31T12:01:00Z",
		"groups": [{"name": "gpu", "resources": {"GPU": 1}, "maxReplicas": 2}],
		"nodes": [{"pod": "p", "group": "gpu", "state": "PENDING", "since": "2026-01-31T12:00:30Z"}],
		"pendingRequests": [{"resources": {"GPU": 1}, "count": 4, "labelSelectors": [{"zone": "!a"}]}],
		"pendingGangRequests": [{"id": "aa", "strategy": "PACK", "bundles": [{"GPU": 9}], "fallbackBundles": [[{"GPU": 8}]], "fallbackBundleLabelSelectors": [[{"zone": "a"}]]}],
		"requestResources": [{"resources": {"GPU": 1}, "count": 1}]}`), "s.json")
	must(t, err)
	two, three := raydemand.Whole(2), raydemand.Whole(3)
	gpus := addon.GroupNumGPUs{Mode: nodepool.SyncWhenEmpty, Code: nodepool.SyncNotEmpty, Why: "the group has pods",
		NumGPUs: nodepool.NumGPUs{Derived: &two, Reported: &three, Mismatch: true, Sources: nodepool.NumGPUsSources{Derived: "limit nvidia.com/mig-1g.5gb"}}}
	view := View{
		Decision: &addon.Decision{
			At:       s.TakenAt,
			Mode:     "managed",
			Snapshot: s,
			Plan:     planner.Compute(s, planner.Policy{}),
			NumGPUs:  map[string]addon.GroupNumGPUs{"gpu": gpus},
		},
	}
	shown := view.Status(s.TakenAt.Add(time.Second))
	text, err := json.Marshal(shown)
	must(t, err)
	loadSpec(t).mustMatch("Cluster", text)
	const want = `"numGpus":{"declared":null,"derived":2,"mismatch":true,"ray":null,"reported":3,` +
		`"sources":{"declared":"","derived":"limit nvidia.com/mig-1g.5gb","reported":"","ray":""},` +
		`"sync":{"code":"not-empty","mode":"when-empty","why":"the group has pods"}}`
	if !strings.Contains(string(text), want) {
		t.Errorf("shown %s, want %s in it", text, want)
	}
	if len(shown.Summary) != 3 {
		t.Errorf("summary = %+v, want an entry for the request, the gang and request_resources", shown.Summary)
	}
}

func TestStartingWorkersAreListedByGroupAndByHowFarTheyAre(t *testing.T) {
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	starting := func(pod, group string, state arrival.State) planner.Node {
		return planner.Node{Pod: pod, Group: group, State: planner.Pending, Arrival: &state}
	}
	v := View{
		Decision: &addon.Decision{
			Snapshot: planner.Snapshot{Nodes: []planner.Node{
				{Pod: "joined", Group: "a", State: planner.Running},
				starting("other", "b", arrival.State{Stage: arrival.JoiningRay, Since: noon}),
				starting("unknown", "a", arrival.State{Stage: arrival.NodeLaunched}),
				starting("late", "a", arrival.State{Stage: arrival.NodeLaunched, Since: noon.Add(time.Second)}),
				starting("early", "a", arrival.State{Stage: arrival.NodeLaunched, Since: noon, Message: "why"}),
				starting("almost", "a", arrival.State{Stage: arrival.Starting, Since: noon.Add(time.Minute)}),
			}},
		},
	}
	var got []string
	for _, a := range v.Status(noon).Arrivals {
		got = append(got, a.Pod+" "+a.Group+" "+a.Stage+" "+a.Message)
	}
	want := []string{"almost a starting ", "unknown a node-launched ", "early a node-launched why", "late a node-launched ", "other b joining-ray "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arrivals (-want +got):\n%s", diff)
	}
	for i := range 300 {
		v.Snapshot.Nodes = append(v.Snapshot.Nodes, starting(fmt.Sprint(i), "c", arrival.State{Stage: arrival.Bound}))
	}
	if n := len(v.Status(noon).Arrivals); n != maxWorkers {
		t.Errorf("%d workers are listed, want %d", n, maxWorkers)
	}
}

func TestDeparturesComeByDeadlineWithWarningsLast(t *testing.T) {
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	taint := func() *departure.Notice { return departure.OfTaint("karpenter.sh/disrupted", "") }
	v := View{
		Decision: &addon.Decision{
			Snapshot: planner.Snapshot{Nodes: []planner.Node{
				{Pod: "stays", Group: "gpu", State: planner.Running},
				{Pod: "warned", Group: "gpu", State: planner.Running, Going: departure.Of(departure.Cordoned, "cordoned").Until(noon)},
				{Pod: "open", Group: "gpu", State: planner.Leaving, Going: taint()},
				{Pod: "late", Group: "gpu", State: planner.Leaving, Going: taint().Until(noon.Add(time.Hour))},
				{Pod: "soon", Group: "gpu", State: planner.Leaving, Going: taint().Until(noon)},
			}},
		},
	}
	var got []string
	for _, d := range v.Status(noon).Departures {
		text := d.Pod + " " + d.Sign
		if d.Deadline != nil {
			text += " " + d.Deadline.Format(time.TimeOnly)
		}
		if d.Leaving {
			text += " leaving"
		}
		got = append(got, text)
	}
	want := []string{"open karpenter-disrupted leaving", "soon karpenter-disrupted 12:00:00 leaving", "late karpenter-disrupted 13:00:00 leaving",
		"warned cordoned 12:00:00"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("departures (-want +got):\n%s", diff)
	}
}

// plannedView returns a view with the plan of its snapshot.
func plannedView(t *testing.T) View {
	t.Helper()
	s, err := snapshotfile.ReadSnapshot(strings.NewReader(`{"name": "ml/llm", "groups": [{"name": "cpu", "resources": {"CPU": 4}}, {"name": "gpu", "resources": {"CPU": 4, "GPU": 1}, "maxReplicas": 2}],
		"nodes": [{"pod": "gpu-1", "group": "gpu", "state": "RUNNING", "total": {"CPU": 4, "GPU": 1}, "available": {"CPU": 4}}],
		"pendingRequests": [{"resources": {"GPU": 1}, "count": 4}],
		"pendingGangRequests": [{"id": "3f2a", "strategy": "STRICT_SPREAD", "bundles": [{"GPU": 1}, {"GPU": 1}]}],
		"keptResources": [{"resources": {"GPU": 1}, "count": 3}]}`), "snapshot")
	must(t, err)
	return View{Decision: &addon.Decision{Cluster: llm, Mode: nodepool.Managed, At: noon, Snapshot: s, Plan: planner.Compute(s, s.Policy)}}
}

func plannedFixture(t *testing.T, change ...func(*Config)) *fixture {
	w := newFixture(t, change...)
	w.fleet[llm] = plannedView(t)
	return w
}

func TestTheServerExplainsAsThePlannerDoes(t *testing.T) {
	w, ctx := plannedFixture(t), context.Background()
	caller, s := dial(t, w.handler), w.fleet[llm].Snapshot
	for _, question := range []planner.Question{
		{Group: "gpu"}, {Pod: "gpu-1"}, {Gang: "3f2a"}, {Request: planner.PlainRequest},
		{Demand: &raydemand.Request{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One / 2}, Count: 3}},
	} {
		want, err := planner.Explain(s, s.Policy, question)
		must(t, err)
		got, err := caller.Explain(ctx, llm, question)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%+v: %v (-planner +server):\n%s", question, err, diff)
		}
	}
}

// The planner does not know of launches that wait for a ProvisioningRequest, because its plan is the same without one.
func TestAnExplanationFirstSaysWhyALaunchWaits(t *testing.T) {
	w := plannedFixture(t)
	caller, view := dial(t, w.handler), w.fleet[llm]
	waits := planner.Reason{Code: planner.CodeProvisioning, Message: "waits for ProvisioningRequest heliostat-1: no capacity"}
	view.Plan.Groups = slices.Clone(view.Plan.Groups)
	for i := range view.Plan.Groups {
		if g := &view.Plan.Groups[i]; g.Name == "gpu" {
			g.Reasons = append([]planner.Reason{waits}, g.Reasons...)
		}
	}
	w.fleet[llm] = view
	for question, want := range map[planner.Question]bool{{Group: "gpu"}: true, {Group: "cpu"}: false, {Pod: "gpu-1"}: true} {
		got, err := caller.Explain(t.Context(), llm, question)
		must(t, err)
		if first := got.Details[0]; (first.About == "group gpu" && first.Reason == waits) != want {
			t.Errorf("%+v: %+v comes first, want that the launch waits: %t", question, first, want)
		}
	}
}

func TestAnExplanationFirstSaysWhyThePlanIsNotApplied(t *testing.T) {
	w := plannedFixture(t)
	caller, managed := dial(t, w.handler), w.fleet[llm]
	for want, change := range map[string]func(*View){
		"": func(*View) {},
		"this is only a plan: the RayCluster is frozen": func(v *View) { v.Kube.Freeze = true },
		"this is only a plan: the mode of serve":        func(v *View) { v.Mode, v.Why.Message = nodepool.Shadow, "the mode of serve" },
		"is retried: forbidden":                         func(v *View) { v.Unwritten = "forbidden" },
	} {
		view := *managed.Decision
		change(&View{Decision: &view})
		w.fleet[llm] = View{Decision: &view}
		got, err := caller.Explain(t.Context(), llm, planner.Question{Group: "gpu"})
		must(t, err)
		first := got.Details[0]
		if explained := first.Code == raydemand.CodeNotScaled; explained != (want != "") || explained && !strings.Contains(first.Message, want) {
			t.Errorf("%q: %+v", want, first)
		}
	}
}

func TestABadQuestionIsAProblem(t *testing.T) {
	w := plannedFixture(t)
	w.fleet[otherKey] = View{Decision: &addon.Decision{Cluster: otherKey}}
	for query, want := range map[string]string{
		"":                     "400 want exactly one of the parameters",
		"?group=gpu&pod=gpu-1": "400 want exactly one of the parameters",
		"?group=tpu":           `404 group: "tpu": want one of cpu, gpu`,
		"?gang=0":              `404 gang: "0": want one of 3f2a`,
		"?bundle=GPU":          "400 bundle: GPU: want an object of amounts",
		"?bundle=" + url.QueryEscape(`{"resources": {"GPU": 1}, "kount": 2}`): "400 bundle: kount: unknown key: want count",
		"?pod=" + strings.Repeat("x", 254):                                    "400 ",
	} {
		answer := w.call(http.MethodGet, llmPath+"/explain"+query, "")
		problem := readAnswer[apiv1.Problem](t, answer)
		if got := fmt.Sprint(answer.Code, " ", problem.Detail); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if answer := w.call(http.MethodGet, "/v1/namespaces/ml/rayclusters/quiet/explain?group=gpu", ""); answer.Code != http.StatusServiceUnavailable {
		t.Errorf("without a decision: %d", answer.Code)
	}
}

func TestAWhatIfPlanWritesNothing(t *testing.T) {
	w := plannedFixture(t)
	caller, before := dial(t, w.handler), fmt.Sprintf("%+v", w.fleet[llm])
	answer, err := caller.Plan(context.Background(), llm, json.RawMessage(`{"groups": [{"name": "gpu", "maxReplicas": 8}], "pendingRequests": [{"resources": {"CPU": 4}, "count": 1}]}`))
	must(t, err)
	s, err := snapshotfile.WhatIf(w.fleet[llm].Snapshot, []byte(`{"groups": [{"name": "gpu", "maxReplicas": 8}], "pendingRequests": [{"resources": {"CPU": 4}, "count": 1}]}`), "")
	must(t, err)
	if diff := cmp.Diff(planner.Compute(s, s.Policy), answer); diff != "" {
		t.Errorf("plan (-planner +server):\n%s", diff)
	}
	if after := fmt.Sprintf("%+v", w.fleet[llm]); after != before || w.requests.sets != 0 {
		t.Errorf("%d requests were written, and the view is\n%s\nafter\n%s", w.requests.sets, after, before)
	}
}

func TestABadWhatIfBodyNamesTheField(t *testing.T) {
	w := plannedFixture(t)
	for body, want := range map[string]string{
		`{"groups": [{"name": "gpu", "maxReplicas": -1}]}`: "groups[0].maxReplicas",
		`{"groups": [}`: "line 1, column 13",
		``:              "",
	} {
		answer := w.call(http.MethodPost, llmPath+"/plan", body)
		problem := readAnswer[apiv1.Problem](t, answer)
		if answer.Code != http.StatusBadRequest || len(problem.Errors) != 1 || problem.Errors[0].Field != want {
			t.Errorf("%s: %d %+v, want field %q", body, answer.Code, problem.Errors, want)
		}
	}
}

// fakeHistory has one decision.
type fakeHistory struct{}

func (fakeHistory) Entries(key nodepool.ClusterKey) []apiv1.HistoryEntry {
	if key != llm {
		return nil
	}
	return []apiv1.HistoryEntry{{ID: "1772366400000", At: noon, Mode: nodepool.Managed, Decisions: busy().Status(noon).Decisions,
		Groups: []apiv1.HistoryGroup{{Name: "a100", Current: 2, Desired: 4, Reasons: []planner.Reason{{Code: "launch", Message: "m"}}}}, Unmet: 1}}
}

func (fakeHistory) Past(key nodepool.ClusterKey, id string) (snapshot json.RawMessage, known bool, err error) {
	return json.RawMessage(`{"groups":[]}`), key == llm && id == "1772366400000", nil
}

func TestHistoryIsListedAndEachDecisionExported(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.History = fakeHistory{} })
	list := readAnswer[apiv1.HistoryList](t, w.call(http.MethodGet, llmPath+"/history", ""))
	if diff := cmp.Diff(fakeHistory{}.Entries(llm), list.Items); diff != "" {
		t.Errorf("-remembered +read:\n%s", diff)
	}
	for path, want := range map[string]string{"/history/1772366400000": `{"groups":[]}`} {
		if answer := w.call(http.MethodGet, llmPath+path, ""); strings.TrimSpace(answer.Body.String()) != want {
			t.Errorf("%s: %d, %s", path, answer.Code, answer.Body)
		}
	}
	for path, want := range map[string]int{"/history/1": 404, "/history/x": 400, "/history/00000000000000000001": 400} {
		if answer := w.call(http.MethodGet, llmPath+path, ""); answer.Code != want {
			t.Errorf("%s: %d, want %d: %s", path, answer.Code, want, answer.Body)
		}
	}
	if answer := newFixture(t).call(http.MethodGet, llmPath+"/history", ""); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), `"items":[]`) {
		t.Errorf("where nothing is remembered: %d %s", answer.Code, answer.Body)
	}
}

// fakeNodes has one node.
type fakeNodes struct{ err error }

func (f fakeNodes) Nodepools(context.Context) (apiv1.NodepoolsReport, error) {
	return apiv1.NodepoolsReport{Nodes: []sharing.GPUs{{Name: "n1"}}}, f.err
}

func TestNodepoolsAreThoseOfTheReader(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.Nodepools = fakeNodes{} })
	report := readAnswer[apiv1.NodepoolsReport](t, w.call(http.MethodGet, "/v1/nodepools", ""))
	if len(report.Nodes) != 1 || report.Nodes[0].Name != "n1" || report.Pools == nil || report.Notes == nil {
		t.Errorf("%+v", report)
	}
	w = newFixture(t, func(c *Config) { c.Nodepools = fakeNodes{ErrUnavailable} })
	if answer := w.call(http.MethodGet, "/v1/nodepools", ""); answer.Code != http.StatusServiceUnavailable {
		t.Errorf("Kubernetes cannot be asked: %d", answer.Code)
	}
	if answer := newFixture(t).call(http.MethodGet, "/v1/nodepools", ""); answer.Code != http.StatusServiceUnavailable {
		t.Errorf("a process that reads no nodes: %d", answer.Code)
	}
}

func TestTheViewsMatchTheSpec(t *testing.T) {
	s := loadSpec(t)
	w := plannedFixture(t, func(c *Config) {
		c.History, c.Nodepools = fakeHistory{}, fakeNodes{}
	})
	for path, schema := range map[string]string{
		llmPath + "/explain?group=gpu": "Explanation",
		llmPath + "/explain?group=x":   "Problem",
		llmPath + "/history":           "HistoryList",
		"/v1/nodepools":                "Nodepools",
	} {
		s.mustMatch(schema, w.call(http.MethodGet, path, "").Body.Bytes())
	}
	s.mustMatch("Plan", w.call(http.MethodPost, llmPath+"/plan", `{"groups": [{"name": "gpu", "maxReplicas": 8}, {"name": "cpu", "price": 1}]}`).Body.Bytes())
	s.mustMatch("Plan", w.call(http.MethodPost, llmPath+"/plan", `{}`).Body.Bytes())
}

func TestWhatIfGroupsHaveTheLimitsOfTheContract(t *testing.T) {
	s := loadSpec(t)
	w := plannedFixture(t)
	group := s.at(s.root, "components", "schemas", "Supposition", "properties", "groups", "items", "properties")
	numbers := 0
	for name := range group {
		bounds := s.at(group, name)
		least, most := bounds["minimum"], bounds["maximum"]
		if least == nil || most == nil {
			continue
		}
		numbers++
		for value, want := range map[float64]int{least.(float64): http.StatusOK, most.(float64): http.StatusOK,
			least.(float64) - 1: http.StatusBadRequest, most.(float64) + 1: http.StatusBadRequest} {
			body := fmt.Sprintf(`{"groups": [{"name": "new", "resources": {"CPU": 1}, "maxReplicas": 2147483647, %q: %.0f}]}`, name, value)
			if name == "maxReplicas" {
				body = fmt.Sprintf(`{"groups": [{"name": "new", "resources": {"CPU": 1}, %q: %.0f}]}`, name, value)
			}
			if answer := w.call(http.MethodPost, llmPath+"/plan", body); answer.Code != want {
				t.Errorf("%s: %d, want %d: %.300s", body, answer.Code, want, answer.Body)
			}
		}
	}
	if numbers < 6 {
		t.Errorf("the contract bounds %d numbers", numbers)
	}
}

func TestChangesAreShownNewestFirst(t *testing.T) {
	v := View{Decision: &addon.Decision{}}
	v.Recent = []addon.Action{
		{Kind: addon.ActionPatch, Result: addon.ResultOK, From: 1, To: 2},
		{Kind: addon.ActionDrain, Result: addon.ResultRefused, Pods: []string{"a"}},
		{Kind: addon.ActionPatch, Result: addon.ResultOK, From: 2, To: 1, Pods: []string{"a"}},
		{Kind: addon.ActionPatch, Result: addon.ResultOK, From: 1, To: 1, Pods: []string{"b"}},
	}
	var actions []string
	for _, change := range v.changes() {
		actions = append(actions, change.Action)
	}
	if diff := cmp.Diff([]string{"replace", "scale-down", "drain-refused", "scale-up"}, actions); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if v.RayErr = "the head does not answer"; v.Status(noon).Error != v.RayErr {
		t.Error("a head that does not answer is no error")
	}
}
