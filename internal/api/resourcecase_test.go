package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAResourceInOtherCaseIsRefused(t *testing.T) {
	custom := planner.Group{Name: "own", Resources: raydemand.Bundle{"gpu": raydemand.One, "TPU": raydemand.One}}
	for name, test := range map[string]struct {
		body  string
		group *planner.Group
		want  string // the detail, empty if it is accepted
	}{
		"GPU of Ray":                   {`{"bundles": [{"CPU": 1}, {"gpu": 1}]}`, nil, `bundles[1]: want GPU; nothing in ml/llm has a resource gpu, is "gpu"`},
		"within resources":             {`[{"resources": {"Cpu": 1}, "count": 2}]`, nil, `bundles[0]: want CPU; nothing in ml/llm has a resource Cpu, is "Cpu"`},
		"bytes":                        {`[{"MEMORY": 1}]`, nil, `bundles[0]: want memory; nothing in ml/llm has a resource MEMORY, is "MEMORY"`},
		"a resource of a group":        {`[{"tpu": 1}]`, &custom, `bundles[0]: want TPU; nothing in ml/llm has a resource tpu, is "tpu"`},
		"a group has exactly this one": {`[{"gpu": 1}]`, &custom, ""},
		"no similar resource":          {`[{"licence": 1}]`, nil, ""},
		"Ray's own spelling":           {`[{"GPU": 1, "CPU": 1, "memory": 1, "object_store_memory": 1}]`, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			if test.group != nil {
				view := w.fleet[llm]
				view.Snapshot.Groups = append(view.Snapshot.Groups, *test.group)
				w.fleet[llm] = view
			}
			before := w.requests.sets
			answer := w.call(http.MethodPost, llmPath+"/request_resources", test.body)
			if test.want == "" {
				if answer.Code != http.StatusOK {
					t.Errorf("status %d: %s", answer.Code, answer.Body)
				}
				return
			}
			problem := readAnswer[apiv1.Problem](t, answer)
			if answer.Code != http.StatusBadRequest || problem.Detail != test.want || w.requests.sets != before {
				t.Errorf("status %d, detail %q, want %q; written %d times", answer.Code, problem.Detail, test.want, w.requests.sets-before)
			}
		})
	}
}

func TestBeforeTheFirstDecisionAllResourcesAreAccepted(t *testing.T) {
	w := newFixture(t)
	view := w.fleet[llm]
	view.At = time.Time{}
	w.fleet[llm] = view
	if answer := w.call(http.MethodPost, llmPath+"/request_resources", `[{"gpu": 1}]`); answer.Code != http.StatusOK {
		t.Errorf("status %d: %s", answer.Code, answer.Body)
	}
}

func TestResourcesOfTheHeadAndOfNodesAreAccepted(t *testing.T) {
	for name, change := range map[string]func(*planner.Snapshot){
		"the head alone has it": func(s *planner.Snapshot) {
			s.Head = &planner.Node{Pod: "llm-head", Total: raydemand.Bundle{"gpu": raydemand.One}}
		},
		"a node alone has it": func(s *planner.Snapshot) {
			s.Nodes = append(slices.Clone(s.Nodes), planner.Node{Pod: "llm-a100-9", Group: "a100", Total: raydemand.Bundle{"gpu": raydemand.One}})
		},
		"no group is known": func(s *planner.Snapshot) { s.Groups = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			view := w.fleet[llm]
			change(&view.Snapshot)
			w.fleet[llm] = view
			if answer := w.call(http.MethodPost, llmPath+"/request_resources", `[{"gpu": 1}]`); answer.Code != http.StatusOK {
				t.Errorf("status %d: %s", answer.Code, answer.Body)
			}
		})
	}
}

func TestOwnedRequestsWithResourcesInOtherCaseAreRefused(t *testing.T) {
	w, _ := ownedFixture(t)
	answer := w.by("alice", http.MethodPut, llmPath+"/request_resources/train-7", `{"leaseSeconds": 60, "bundles": [{"resources": {"gpu": 1}}]}`)
	if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), "want GPU") {
		t.Errorf("status %d: %s", answer.Code, answer.Body)
	}
}
