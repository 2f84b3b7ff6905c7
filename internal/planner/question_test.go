package planner

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const questioned = `{"groups": [{"name": "cpu", "resources": {"CPU": 4}}, {"name": "gpu", "resources": {"CPU": 4, "GPU": 1}, "maxReplicas": 2}],
	"nodes": [{"pod": "gpu-1", "group": "gpu", "state": "RUNNING", "total": {"CPU": 4, "GPU": 1}, "available": {"CPU": 4}}],
	"pendingGangRequests": [{"id": "3f2a", "strategy": "STRICT_SPREAD", "bundles": [{"GPU": 1}, {"GPU": 1}]}, {"id": "77", "strategy": "PACK", "bundles": [{"CPU": 2}]}],
	"requestResources": [{"resources": {"CPU": 4}, "count": 2}], "keptResources": [{"resources": {"GPU": 1}, "count": 3}]}`

func TestEachThingThatMayBeAskedIsAnsweredByCode(t *testing.T) {
	s := readText(t, questioned)
	for name, c := range map[string]struct {
		question Question
		want     string
	}{
		"a gang that has no room":   {Question{Gang: "3f2a"}, "gang 3f2a: capped: 1 asked, 1 is capped: needs 2 different nodes at once"},
		"a gang that is served now": {Question{Gang: "77"}, "gang 77: served: 1 asked, 1 is served by running nodes"},
		"calls without an owner":    {Question{Request: PlainRequest}, "request request_resources: capped: 5 asked"},
		"a group":                   {Question{Group: "gpu"}, "group gpu: "},
		"a pod":                     {Question{Pod: "gpu-1"}, "pod gpu-1: busy: "},
		"a demand":                  {Question{Demand: &raydemand.Request{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One}}}, "demand {GPU 1}: "},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Explain(s, s.Policy, c.question)
			if got := fmt.Sprintf("%s: %s: %s", e.About, e.Code, e.Message); err != nil || !strings.HasPrefix(got, c.want) {
				t.Errorf("%v: got %q, want it to begin with %q", err, got, c.want)
			}
			if e.Details == nil {
				t.Error("details are null in JSON")
			}
		})
	}
	served := readText(t, `{"groups": [{"name": "g", "resources": {"CPU": 4}}], "requestResources": [{"resources": {"CPU": 1}, "count": 3}],
		"nodes": [{"pod": "g-1", "group": "g", "state": "RUNNING", "total": {"CPU": 4}, "available": {}}]}`)
	e, _ := Explain(served, served.Policy, Question{Request: PlainRequest})
	if want := "3 asked, 3 are served by running nodes"; e.Message != want {
		t.Errorf("served calls are explained as %q, want %q", e.Message, want)
	}
	served.Constraint[0].Bundle = raydemand.Bundle{raydemand.CPU: 0}
	e, _ = Explain(served, served.Policy, Question{Request: PlainRequest})
	if want := "3 asked, 3 require no resources, so nothing is launched for them"; e.Message != want {
		t.Errorf("calls for nothing are explained as %q, want %q", e.Message, want)
	}
	e, _ = Explain(s, s.Policy, Question{Gang: "3f2a"})
	var got []string
	for _, d := range e.Details {
		got = append(got, d.About+": "+d.Code)
	}
	want := []string{"2 × {GPU 1}: group cpu: " + model.CodeTooSmall, "2 × {GPU 1}: group gpu: " + model.CodeNotInFull}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("details of the gang (-want +got):\n%s", diff)
	}
}

func TestWhatIsNotThereIsNamedWithWhatIs(t *testing.T) {
	s := readText(t, questioned)
	for want, q := range map[string]Question{
		`group: "tpu": want one of cpu, gpu`:                 {Group: "tpu"},
		`pod: "x": want one of gpu-1`:                        {Pod: "x"},
		`gang: "9": want one of 3f2a, 77`:                    {Gang: "9"},
		`request: "training": want one of request_resources`: {Request: "training"},
	} {
		_, err := Explain(s, s.Policy, q)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for _, q := range []Question{{}, {Group: "gpu", Pod: "gpu-1"}} {
		if _, err := Explain(s, s.Policy, q); !errors.Is(err, ErrQuestion) {
			t.Errorf("%+v: %v, want ErrQuestion", q, err)
		}
	}
}

func TestWhatIsSupposedIsPlannedAndThePresentStaysAsItIs(t *testing.T) {
	s := readText(t, questioned)
	before := fmt.Sprintf("%+v", s)
	supposed, err := snapshotfile.WhatIf(s, []byte(`{"groups": [{"name": "gpu", "maxReplicas": 4, "closed": ""}, {"name": "cpu", "remove": true}, {"name": "big", "resources": {"CPU": 64}, "slice": null}],
		"pendingRequests": [{"resources": {"CPU": 64}, "count": 1}], "maxWorkers": 9}`), "what-if")
	if err != nil {
		t.Fatal(err)
	}
	if after := fmt.Sprintf("%+v", s); after != before {
		t.Error("the snapshot itself was changed")
	}
	plan, sizes := Compute(supposed, supposed.Policy), map[string]int{}
	for _, g := range plan.Groups {
		sizes[g.Name] = g.Desired
	}
	if diff := cmp.Diff(map[string]int{"big": 1, "gpu": 3}, sizes); diff != "" {
		t.Errorf("sizes of groups (-want +got):\n%s", diff)
	}
	if plan.Launch["big"] != 1 || *supposed.MaxWorkers != 9 || len(plan.InfeasibleGangRequests) != 0 || len(Compute(s, s.Policy).InfeasibleGangRequests) != 1 {
		t.Errorf("launch %v, supposed %+v, gangs that wait %+v", plan.Launch, supposed, plan.InfeasibleGangRequests)
	}
}

func TestNothingSupposedMakesNoDifference(t *testing.T) {
	s := readText(t, questioned)
	supposed, err := snapshotfile.WhatIf(s, []byte(`{}`), "what-if")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Compute(s, s.Policy), Compute(supposed, supposed.Policy)); diff != "" {
		t.Errorf("-present +supposed:\n%s", diff)
	}
}

func TestASuppositionThatCannotBeMeantNamesTheField(t *testing.T) {
	s := readText(t, questioned)
	for text, want := range map[string]string{
		`[]`:                               "not a JSON object",
		`{"group": []}`:                    "what-if: group: unknown key: want groups",
		`{"groups": [{"maxReplicas": 1}]}`: "what-if: groups[0].name: missing: want the worker group's name",
		`{"groups": [{"name": "tpu"}]}`:    `what-if: groups[0].resources: missing: want the resources of one pod of the new group "tpu"`,
		`{"groups": [{"name": "tpu", "remove": true}]}`:                                        `groups[0].name: "tpu": want one of cpu, gpu`,
		`{"groups": [{"name": "gpu", "maxReplicas": -1}]}`:                                     "groups[0].maxReplicas: -1: want a whole number",
		`{"groups": [{"name": "gpu", "maxWorkers": 1}]}`:                                       "groups[0].maxWorkers: unknown key",
		`{"groups": [{"name": "gpu"}, {"name": "gpu"}]}`:                                       "a unique name",
		`{"pendingGangRequests": [{"id": "77", "strategy": "PACK", "bundles": [{"CPU": 1}]}]}`: "pendingGangRequests[0].id: \"77\": want a unique id",
		`{"pendingRequests": [{"resources": {"GPU": 1}}]}`:                                     "pendingRequests[0].count: missing",
		`{"groups": null}`: "what-if: groups: null: want a value, or remove the key",
		`{"groups": [{"name": "gpu", "pools": [null]}]}`: "groups[0].pools[0]: null: want an object",
	} {
		_, err := snapshotfile.WhatIf(s, []byte(text), "what-if")
		var input *snapshotfile.InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestAnAnswerOfManyDetailsIsCutAndSaysSo(t *testing.T) {
	e, err := Explain(oneGroup(ownResources(0, 1100), 5), Policy{}, Question{Group: "g"})
	if err != nil || len(e.Details) != 1000 || !strings.Contains(e.Message, "details cover the first 1000 of 1101") {
		t.Errorf("%d details: %s (%v)", len(e.Details), e.Message, err)
	}
}
