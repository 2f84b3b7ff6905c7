package plannertest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/snapshotfile"
)

// Read parses a hand-written snapshot.
func Read(t *testing.T, text string) model.Snapshot {
	t.Helper()
	s, err := snapshotfile.ReadSnapshot(strings.NewReader(text), t.Name())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func Compact(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// Explanations asks about every object in the snapshot, and once about each pending request, and returns the answers of
// explain.
func Explanations(
	t *testing.T, s *model.Snapshot, explain func(model.Question) (model.Explanation, error),
) string {
	t.Helper()
	questions := []model.Question{{Request: model.PlainRequest}}
	for i := range s.Requests {
		questions = append(questions, model.Question{Demand: &s.Requests[i]})
	}
	for _, g := range s.Groups {
		questions = append(questions, model.Question{Group: g.Name})
	}
	for _, n := range s.Nodes {
		questions = append(questions, model.Question{Pod: n.Pod})
	}
	for i, g := range s.Gangs {
		questions = append(questions, model.Question{Gang: g.ID}, model.Question{AskedGang: &s.Gangs[i]})
	}
	for _, r := range s.OwnedRequests {
		questions = append(questions, model.Question{Request: r.ID})
	}
	const most = 60 // each answer needs a plan of its own
	var all strings.Builder
	for _, q := range questions[:min(len(questions), most)] {
		e, err := explain(q)
		raw, marshalErr := json.Marshal(e)
		if marshalErr != nil {
			t.Fatal(marshalErr)
		}
		fmt.Fprintf(&all, "%s %v\n", raw, err)
	}
	return all.String()
}
