package planner

import (
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite testdata/drawn.sha256 with the plans as they are now")

// TestGoldenPlansOfDrawnSnapshotsKeepTheirBytes compares plans and explanations of drawn snapshots with one stored hash
// for each kind.
func TestGoldenPlansOfDrawnSnapshotsKeepTheirBytes(t *testing.T) {
	var text string
	for _, kind := range kinds {
		sum := sha256.New()
		for seed := range 40 {
			s := rapid.Custom(kind.draw).Example(seed)
			for _, policy := range []Policy{{}, {MaxInFlight: 3}} {
				_ = json.NewEncoder(sum).Encode(Compute(s, policy))
			}
			for _, q := range questionsAbout(&s) {
				e, err := Explain(s, Policy{}, q)
				_ = json.NewEncoder(sum).Encode(e)
				fmt.Fprintln(sum, err)
			}
		}
		text += fmt.Sprintf("%s %x\n", kind.name, sum.Sum(nil))
	}
	const file = "testdata/drawn.sha256"
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(stored) != text {
		t.Errorf("plans of drawn snapshots hash to\n%sstored is\n%s", text, stored)
	}
}

// questionsAbout asks for a few of all objects in a snapshot.
func questionsAbout(s *Snapshot) []Question {
	questions := []Question{{Request: PlainRequest}}
	for i := range s.Requests[:min(len(s.Requests), 2)] {
		questions = append(questions, Question{Demand: &s.Requests[i]})
	}
	for i := range s.Groups[:min(len(s.Groups), 2)] {
		questions = append(questions, Question{Group: s.Groups[i].Name})
	}
	for i := range s.Nodes[:min(len(s.Nodes), 3)] {
		questions = append(questions, Question{Pod: s.Nodes[i].Pod})
	}
	for i := range s.Gangs[:min(len(s.Gangs), 2)] {
		questions = append(questions, Question{Gang: s.Gangs[i].ID}, Question{AskedGang: &s.Gangs[i]})
	}
	for i := range s.OwnedRequests[:min(len(s.OwnedRequests), 2)] {
		questions = append(questions, Question{Request: s.OwnedRequests[i].ID})
	}
	return questions
}
