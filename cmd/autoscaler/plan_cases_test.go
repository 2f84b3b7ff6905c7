package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// casesDir is the directory of the planning cases that come from the tests of Ray's autoscaler and of KubeRay.
const casesDir = "../../internal/planner/testdata/cases"

// planCase is a case file: a snapshot with the expected plan.
type planCase struct {
	Name, Topic string
	// Exact is false if another plan can be equally good.
	Exact  bool
	Groups []struct {
		Name      string
		Resources raydemand.Bundle
	}
	Expect expectation
	// WithFallback is the expectation for a planner that tries the fallback bundles of gangs. This planner does.
	WithFallback *expectation `json:"expectWithFallback"`
}

type expectation struct {
	Launch                     map[string]int
	Terminate                  []struct{ Pod, Reason string }
	InfeasibleRequests         []raydemand.Request
	InfeasibleGangRequests     []raydemand.Gang
	InfeasibleRequestResources []raydemand.Request
}

func TestEveryCaseOfRayAndKubeRayIsPlannedAsExpectedOrBetter(t *testing.T) {
	for _, file := range caseFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			want := readCase(t, file)
			if problem := want.check(planFile(t, file)); problem != "" {
				t.Error(problem)
			}
		})
	}
}

func caseFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(casesDir, "*.json"))
	if err != nil || len(files) != 96 {
		t.Fatalf("found %d case files (%v), want 96", len(files), err)
	}
	return files
}

func readCase(t *testing.T, file string) planCase {
	t.Helper()
	raw, err := os.ReadFile(file)
	must(t, err)
	var c planCase
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatalf("reading case %s: %v", file, err)
	}
	if c.WithFallback != nil {
		c.Expect.Launch, c.Expect.InfeasibleGangRequests = c.WithFallback.Launch, c.WithFallback.InfeasibleGangRequests
	}
	return c
}

// planFile runs the `plan` command for a file.
func planFile(t *testing.T, file string) planner.Plan {
	t.Helper()
	var out, errOut bytes.Buffer
	if code := run(t.Context(), []string{"autoscaler", "plan", "--snapshot", file}, nil, &out, &errOut); code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, errOut.String())
	}
	var plan planner.Plan
	if err := json.Unmarshal(out.Bytes(), &plan); err != nil {
		t.Fatalf("the plan is no JSON: %v\n%s", err, out.String())
	}
	return plan
}

// check compares a plan with the expectation. It returns the difference.
func (c planCase) check(plan planner.Plan) string {
	got, want := summarise(plan), c.Expect.summary()
	if c.Exact || c.WithFallback != nil {
		return cmp.Diff(want, got)
	}
	// Another plan is equally good if it serves all demand that the expected plan serves, stops the same pods, and its
	// launches cost no more.
	if diff := cmp.Diff(want.Terminate, got.Terminate); diff != "" {
		return diff
	}
	for shape, n := range got.Unmet {
		if n > want.Unmet[shape] {
			return fmt.Sprintf("%d of %s are left, want at most %d", n, shape, want.Unmet[shape])
		}
	}
	if g, w := c.price(got.Launch), c.price(want.Launch); g > w {
		return fmt.Sprintf("launches %v for %.2f; %v for %.2f serves as much", got.Launch, g, want.Launch, w)
	}
	return ""
}

// price returns the cost of launches at typical cloud prices: a GPU costs about as much as fourteen cores.
func (c planCase) price(launch map[string]int) (sum float64) {
	const perCPU, perGPU, perOther = 0.05, 0.70, 0.05
	for _, g := range c.Groups {
		each := 0.0
		for _, name := range g.Resources.Names() {
			amount := g.Resources[name]
			switch name {
			case raydemand.CPU:
				each += perCPU * amount.Float()
			case raydemand.GPU:
				each += perGPU * amount.Float()
			default:
				each += perOther * amount.Float()
			}
		}
		sum += each * float64(launch[g.Name])
	}
	return sum
}

// summary is the part of a plan that a case asserts.
type summary struct {
	Launch    map[string]int
	Terminate map[string]string // reason by pod
	Unmet     map[string]int64  // count by the unmet shape
}

func summarise(plan planner.Plan) summary {
	s := summary{plan.Launch, map[string]string{}, map[string]int64{}}
	for _, t := range plan.Terminate {
		s.Terminate[t.Pod] = t.Reason
	}
	for _, u := range plan.InfeasibleRequests {
		s.Unmet[planner.Describe(u.Request)] += u.Count
	}
	for _, u := range plan.InfeasibleGangRequests {
		s.Unmet[printer.DescribeGang(u.Gang)]++
	}
	for _, u := range plan.InfeasibleRequestResources {
		s.Unmet["request_resources "+planner.Describe(u.Request)] += u.Count
	}
	return s
}

func (e expectation) summary() summary {
	s := summary{e.Launch, map[string]string{}, map[string]int64{}}
	for _, t := range e.Terminate {
		s.Terminate[t.Pod] = t.Reason
	}
	for _, r := range e.InfeasibleRequests {
		s.Unmet[planner.Describe(r)] += r.Count
	}
	for _, g := range e.InfeasibleGangRequests {
		s.Unmet[printer.DescribeGang(g)]++
	}
	for _, r := range e.InfeasibleRequestResources {
		s.Unmet["request_resources "+planner.Describe(r)] += r.Count
	}
	return s
}
