package planner_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/snapshotfile"
)

// scenario is a snapshot and the plan that it must result in: a snapshot file in YAML, with a name and an outcome.
type scenario struct {
	planner.Snapshot
	name string
	want []string
}

// units matches an amount of memory, such as "16Gi".
var units = regexp.MustCompile(`"(\d+)([MGT])i"`)

// readScenarios reads a file of scenarios. testdata/README.md describes it.
func readScenarios(t *testing.T, name string) []scenario {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		t.Fatalf("%s: %s", name, err)
	}
	raw = units.ReplaceAllFunc(raw, func(amount []byte) []byte {
		parts := units.FindSubmatch(amount)
		n, _ := strconv.ParseInt(string(parts[1]), 10, 64)
		return strconv.AppendInt(nil, n<<map[string]int{"M": 20, "G": 30, "T": 40}[string(parts[2])], 10)
	})
	var all []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatalf("%s: %s", name, err)
	}
	scenarios := make([]scenario, len(all))
	for i, keys := range all {
		s := &scenarios[i]
		var want string
		for key, into := range map[string]*string{"scenario": &s.name, "want": &want} {
			if err := json.Unmarshal(keys[key], into); err != nil {
				t.Fatalf("%s: scenario %d: %s: %s", name, i+1, key, err)
			}
			delete(keys, key)
		}
		if s.want = strings.Split(strings.TrimSuffix(want, "\n"), "\n"); want == "" {
			s.want = nil
		}
		if keys["groups"] == nil {
			keys["groups"] = json.RawMessage("[]")
		}
		content, err := json.Marshal(keys)
		if err != nil {
			t.Fatal(err)
		}
		document, err := snapshotfile.ReadDocument(bytes.NewReader(content), name+": "+s.name)
		if err != nil || len(document.Findings) > 0 {
			t.Fatal(err, document.Findings)
		}
		s.Snapshot = document.Snapshot
	}
	return scenarios
}

func scenarioFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/scenarios/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no scenario files (%v)", err)
	}
	return files
}

// updates reports whether the flag -update is set.
func updates() bool { return flag.Lookup("update").Value.String() == "true" }

// TestScenarios plans every scenario in testdata/scenarios and compares the plan with its "want". With -update it
// rewrites "want".
func TestScenarios(t *testing.T) {
	for _, name := range scenarioFiles(t) {
		scenarios := readScenarios(t, name)
		outcomes := make([][]string, len(scenarios))
		for i, s := range scenarios {
			plan := planner.Compute(s.Snapshot, s.Policy)
			outcomes[i] = outcome(&plan)
			if diff := cmp.Diff(s.want, outcomes[i]); diff != "" && !updates() {
				t.Errorf("%s: %s: the plan (-want +got):\n%s", name, s.name, diff)
			}
		}
		if updates() {
			rewrite(t, name, outcomes)
		}
	}
}

// written matches the outcome of a scenario.
var written = regexp.MustCompile(`(?m)^  want: \|\n(    .*\n)*`)

// rewrite writes other outcomes into a file. Everything else stays the same.
func rewrite(t *testing.T, name string, outcomes [][]string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if found := len(written.FindAll(text, -1)); found != len(outcomes) {
		t.Fatalf(`%s: %d scenarios have a line "  want: |", want all %d`, name, found, len(outcomes))
	}
	text = written.ReplaceAllFunc(text, func([]byte) []byte {
		lines := slices.Concat([]string{"  want: |"}, outcomes[0])
		outcomes = outcomes[1:]
		return []byte(strings.Join(lines, "\n    ") + "\n")
	})
	if err := os.WriteFile(name, text, 0o644); err != nil { //nolint:gosec // a file of the repository
		t.Fatal(err)
	}
}

// outcome writes the decisions of a plan, with codes and sentences: one line for each group's reason, each pod to stop,
// each unserved demand, each owned request, each entry of warm capacity and each finding.
func outcome(p *planner.Plan) (lines []string) {
	add := func(r model.Reason, format string, args ...any) {
		line := strings.TrimSpace(fmt.Sprintf(format, args...) + " " + r.Code)
		lines = append(lines, strings.TrimSuffix(line+": "+r.Message, ": "))
	}
	for _, g := range p.Groups {
		about := fmt.Sprintf("%s stays %d", g.Name, g.Current)
		if g.Current != g.Desired {
			about = fmt.Sprintf("%s %d → %d", g.Name, g.Current, g.Desired)
		}
		about += some(" held %d", g.Held) + some(" below-min %d", g.BelowMin)
		for _, r := range g.Reasons {
			add(r, "%s", about)
			about = g.Name
		}
	}
	for _, s := range p.Terminate {
		busy := map[bool]string{true: " busy"}[s.Busy]
		add(model.Reason{Message: s.Message}, "stop %s of %s %s%s", s.Pod, s.Group, s.Reason, busy)
	}
	for _, u := range p.InfeasibleRequests {
		add(u.Reason, "unmet %d × %s", u.Count, planner.Describe(u.Request))
	}
	for _, u := range p.InfeasibleGangRequests {
		add(u.Reason, "unmet gang %s of %s", strings.TrimSpace(u.ID+" "+string(u.Strategy)),
			model.Plural(int64(len(u.Bundles)), "bundle"))
	}
	for _, u := range p.InfeasibleRequestResources {
		by := strings.TrimSuffix(" of "+u.AskedBy, " of ")
		add(u.Reason, "unmet request_resources %d × %s%s", u.Count, planner.Describe(u.Request), by)
	}
	for _, r := range p.Requests {
		name := "owned " + r.ID
		if r.Plain {
			name = "keep"
		}
		add(r.Reason, "%s %s, %d asked, %d served, %d waiting,", name, r.State, r.Asked, r.Served, r.Waiting)
	}
	for _, w := range p.Warm {
		kept := strings.TrimSuffix(" keeps "+strings.Join(w.Kept, " keeps "), " keeps ")
		add(w.Reason, "warm %s %d ready%s%s%s", w.Name, w.Ready, some(", %d coming", w.Coming),
			some(", %d launching", w.Launching), kept)
	}
	for _, f := range p.Findings {
		add(model.Reason{Message: strings.TrimSpace(f.Object + " " + f.Field)}, "finding %s", f.Code)
	}
	if p.Price != nil {
		add(model.Reason{}, "price %.6g", *p.Price)
	}
	return lines
}

// some formats a number that is not 0.
func some[T int | int64](format string, n T) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(format, n)
}

// TestScenariosAreExplainedAndPrintedAsBefore compares the plan of each scenario as JSON and as text, and its
// explanations, with the stored hashes. -update rewrites them.
func TestScenariosAreExplainedAndPrintedAsBefore(t *testing.T) {
	const stored = "testdata/scenarios.sha256"
	var now strings.Builder
	for _, name := range scenarioFiles(t) {
		for _, s := range readScenarios(t, name) {
			fmt.Fprintf(&now, "%s#%s", filepath.Base(name), strings.ReplaceAll(s.name, " ", "-"))
			plan := planner.Compute(s.Snapshot, s.Policy)
			for _, output := range []string{"json", "text"} {
				var text strings.Builder
				if err := printer.Write(&text, output, plan, printer.WritePlanText); err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&now, " %.8x", sha256.Sum256([]byte(text.String())))
			}
			fmt.Fprintf(&now, " %.8x\n", sha256.Sum256([]byte(explained(t, s.Snapshot))))
		}
	}
	if updates() {
		if err := os.WriteFile(stored, []byte(now.String()), 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(stored)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(before), "\n"), strings.Split(now.String(), "\n")); diff != "" {
		t.Errorf("plan as JSON, plan as text, explanations (-stored +now):\n%s", diff)
	}
}

// explained asks about every object of a snapshot, and once about each pending request, and returns the answers.
func explained(t *testing.T, s planner.Snapshot) string {
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
		e, err := planner.Explain(s, s.Policy, q)
		raw, marshalErr := json.Marshal(e)
		if marshalErr != nil {
			t.Fatal(marshalErr)
		}
		fmt.Fprintf(&all, "%s %v\n", raw, err)
	}
	return all.String()
}
