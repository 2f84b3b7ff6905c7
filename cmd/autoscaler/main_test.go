package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
)

// asAutoscaler is the environment variable that makes the test binary run as the program.
const asAutoscaler = "RUN_AS_AUTOSCALER"

func TestMain(m *testing.M) {
	if os.Getenv(asAutoscaler) != "" {
		main()
	}
	// Cobra keeps the completions of every command line, and serve limits the memory of its process: with both,
	// collecting garbage took two thirds of the time of these tests.
	debug.SetGCPercent(400)
	for variable, value := range map[string]string{"GOGC": "400", "GOMEMLIMIT": "off"} {
		if err := os.Setenv(variable, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// command runs one command line with the given input and returns its exit code and output.
func command(t *testing.T, stdin string, argv ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), argv, strings.NewReader(stdin), &o, &e)
	if tabular(argv) {
		fitsThePage(t, o.String())
	}
	return code, o.String(), e.String()
}

// tabular reports whether a command line prints tables that are at most pageWidth columns wide.
func tabular(argv []string) bool {
	if len(argv) < 2 || slices.Contains([]string{"completion", "__complete", "serve", "agent", "plan"}, argv[1]) || slices.Contains(argv, "--help") {
		return false
	}
	at := slices.Index(argv, "-o")
	return at < 0 || at+1 < len(argv) && slices.Contains([]string{"table", "text"}, argv[at+1])
}

func TestBadInputEndsWithExitTwoAndASentence(t *testing.T) {
	for name, c := range map[string]struct {
		stdin string
		argv  []string
		want  string
	}{
		"unknown command":             {"", []string{"autoscaler", "plna"}, "autoscaler: unknown command \"plna\": want plan; see autoscaler --help\n"},
		"unknown command with a flag": {"", []string{"autoscaler", "plna", "-o", "json"}, "autoscaler: unknown command \"plna\": want plan; see autoscaler --help\n"},
		"unknown flag":                {"", []string{"autoscaler", "plan", "--snap"}, "autoscaler: unknown flag --snap: want --snapshot; see autoscaler plan --help\n"},
		"no snapshot":                 {"", []string{"autoscaler", "plan"}, "autoscaler: want a RayCluster, or --snapshot with a file or - for standard input\n"},
		"unknown output":              {"", []string{"autoscaler", "plan", "--snapshot", "-", "-o", "xml"}, "autoscaler: --output \"xml\": want json, table, wide or yaml; see autoscaler plan --help\n"},
		"no such file": {"", []string{"autoscaler", "plan", "--snapshot", "no/such.json"},
			"autoscaler: opening snapshot: open no/such.json: no such file or directory\n"},
		"bad value": {`{"groups": [{"name": "a", "minReplicas": -1}]}`, []string{"autoscaler", "plan", "--snapshot", "-"},
			"autoscaler: standard input: groups[0].minReplicas: -1: want a whole number from 0 to 2147483647\n"},
		"no RayCluster": {`{"rayCluster": {"kind": "Pod"}}`, []string{"autoscaler", "plan", "--snapshot", "-"},
			"autoscaler: standard input: rayCluster: reading RayCluster: kind is Pod: want the manifest of a RayCluster\n"},
		"arguments": {"", []string{"autoscaler", "version", "now"}, "autoscaler: unexpected argument \"now\": want flags only; see autoscaler version --help\n"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := command(t, c.stdin, c.argv...)
			if code != cli.ExitBadInput || out != "" {
				t.Errorf("exit %d with output %q", code, out)
			}
			if diff := cmp.Diff(c.want, errOut); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAllKeysOfThePlanArePresentEvenWhenThereIsNothingToSay(t *testing.T) {
	code, out, errOut := command(t, `{"groups": []}`, "autoscaler", "plan", "--snapshot", "-")
	want := `{
  "launch": {},
  "terminate": [],
  "groups": [],
  "infeasibleRequests": [],
  "infeasibleGangRequests": [],
  "infeasibleRequestResources": [],
  "summary": []
}
`
	if diff := cmp.Diff(want, out); code != cli.ExitOK || diff != "" {
		t.Errorf("exit %d %s: %s", code, errOut, diff)
	}
}

const manifest = `{"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "llm", "namespace": "ml"}, "spec": {
	"enableInTreeAutoscaling": true, "autoscalerOptions": {"idleTimeoutSeconds": 30},
	"headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "h", "image": "ray"}]}}},
	"workerGroupSpecs": [{"groupName": "gpu", "replicas": 1, "minReplicas": 0, "maxReplicas": 4, "rayStartParams": {}, "template": {"spec": {"containers": [
		{"name": "w", "image": "ray", "resources": {"limits": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "1"}}}]}}}]}}`

func TestGroupsMayComeFromARayClusterManifest(t *testing.T) {
	code, out, errOut := command(t, `{"rayCluster": `+manifest+`, "pendingRequests": [{"resources": {"GPU": 1}, "count": 3}]}`,
		"autoscaler", "plan", "--snapshot", "-", "-o", "text")
	if code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	want := `  gpu: 1 → 3 pods (min 0, max 4), each {CPU 4, GPU 1, memory 8 GiB}
    launching 2 pods for 2 × {GPU 1}
    1 pod requested earlier has not joined Ray yet
`
	if !strings.Contains(out, want) {
		t.Errorf("want in it\n%s\ngot\n%s", want, out)
	}
}

func TestASnapshotIsPlannedByThePolicyThatItSays(t *testing.T) {
	const groups = `"groups": [{"name": "cpu", "resources": {"CPU": 16}, "price": 0.8}, {"name": "gpu", "resources": {"CPU": 4, "GPU": 1}, "price": 0.5}],
		"pendingRequests": [{"resources": {"CPU": 4}, "count": 1}]`
	for input, want := range map[string]string{
		`{` + groups + `}`: "launch 1 × cpu",
	} {
		if code, out, errOut := command(t, input, "autoscaler", "plan", "--snapshot", "-", "-o", "text"); code != cli.ExitOK || !strings.Contains(out, want) {
			t.Errorf("exit %d %s: want in it %q, got\n%s", code, errOut, want, out)
		}
	}
}

func TestAMinimumThatTheOperatorKeepsByItselfIsNotLaunched(t *testing.T) {
	raised := strings.Replace(manifest, `"minReplicas": 0`, `"minReplicas": 3`, 1)
	code, out, errOut := command(t, `{"rayCluster": `+raised+`}`, "autoscaler", "plan", "--snapshot", "-", "-o", "text")
	if code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	if want := "  gpu: 3 pods (min 3, max 4)"; !strings.Contains(out, want) || !strings.Contains(out, "nothing to do") {
		t.Errorf("want in it %q and nothing to do, got\n%s", want, out)
	}
}

func TestTheTextOfAPlanReadsInOrderAndFitsThePage(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(casesDir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	inputs := []string{`{"groups": [{"name": "` + strings.Repeat("long-", 60) + `", "resources": {"` + strings.Repeat("r", 300) + `": 1}}]}`}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, string(raw))
	}
	for _, input := range inputs {
		code, out, errOut := command(t, input, "autoscaler", "plan", "--snapshot", "-", "--output", "text")
		if code != cli.ExitOK {
			t.Fatalf("exit %d: %s", code, errOut)
		}
		at := 0
		for _, title := range []string{"Demand\n", "\nGroups\n", "\nDecision\n", "\nUnmet\n"} {
			next := strings.Index(out[at:], title)
			if next < 0 {
				t.Fatalf("no %q after byte %d of\n%s", title, at, out)
			}
			at += next
		}
		for line := range strings.Lines(out) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > printer.PageWidth {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
}

func TestTheTextOfAPlanSaysAllThatAGangAsksFor(t *testing.T) {
	_, out, _ := command(t, `{"groups": [], "pendingGangRequests": [{"id": "3f2a", "strategy": "PACK", "bundles": [{"GPU": 1}, {"GPU": 1}],
		"topologyLabel": "zone", "fallbackBundles": [[{"CPU": 4}], [{"CPU": 1}, {"CPU": 2}]]}]}`, "autoscaler", "plan", "--snapshot", "-", "-o", "text")
	asked := "  gang 3f2a PACK 2 × {GPU 1} on nodes of one zone, else 1 × {CPU 4}, else 1 × {CPU 1}, 1 × {CPU 2}"
	for _, want := range []string{"Demand\n" + asked + "\n", "Unmet\n" + asked + ":"} {
		if !strings.Contains(out, want) {
			t.Errorf("want in it\n%s\ngot\n%s", want, out)
		}
	}
}

func TestNamesCannotMoveTheTerminalsCursor(t *testing.T) {
	_, out, _ := command(t, `{"groups": [{"name": "a\u001b[2Jb"}]}`, "autoscaler", "plan", "--snapshot", "-", "-o", "text")
	if strings.Contains(out, "\x1b") || !strings.Contains(out, "a?[2Jb") {
		t.Errorf("got %q", out)
	}
}

func TestUnderTheNameRayOnlyWhatKubeRayStartsIsOffered(t *testing.T) {
	code, _, errOut := command(t, "", "/usr/local/bin/ray", "plan")
	if want := "ray: unknown command \"plan\"; see ray --help\n"; code != cli.ExitBadInput || errOut != want {
		t.Errorf("exit %d: %q, want %q", code, errOut, want)
	}
}

func TestManyPodsThatGoForOneReasonAreToldInALine(t *testing.T) {
	var nodes []string
	for i := range 40 {
		nodes = append(nodes, fmt.Sprintf(`{"pod": "w-%02d", "group": "a", "state": "IDLE", "idleSeconds": 90}`, i))
	}
	nodes = append(nodes, `{"pod": "solo", "group": "b", "state": "RUNNING"}`)
	_, out, _ := command(t, `{"idleTimeoutSeconds": 60, "groups": [{"name": "a", "resources": {"CPU": 1}}, {"name": "b", "resources": {"CPU": 1}, "maxReplicas": 0}],
		"nodes": [`+strings.Join(nodes, ",")+`]}`, "autoscaler", "plan", "--snapshot", "-", "-o", "text")
	want := `Decision
  stop 40 × a (idle): w-00, w-01, w-02, w-03, w-04 and 35 more; w-00: idle for 90s, longer than 60s
  stop solo of b (max_group): group b has 1, maximum 0; it has work, so it stops by a drain with a
      deadline
`
	if !strings.Contains(out, want) {
		t.Errorf("want in it\n%s\ngot\n%s", want, out)
	}
}

// TestTheTextOfAPlanHasNoStairs checks that a sentence with several lines stays in one column.
func TestTheTextOfAPlanHasNoStairs(t *testing.T) {
	_, out, _ := command(t, `{"groups": [{"name": "a", "resources": {"GPU": 1}, "closed": "`+strings.Repeat("no node can be had ", 30)+`"}],
		"pendingRequests": [{"resources": {"GPU": 1}, "count": 1}]}`, "autoscaler", "plan", "--snapshot", "-", "-o", "text")
	indents := map[int]bool{}
	for line := range strings.Lines(out) {
		indents[len(line)-len(strings.TrimLeft(line, " "))] = true
	}
	if diff := cmp.Diff(map[int]bool{0: true, 2: true, 4: true, 6: true, 8: true}, indents); diff != "" {
		t.Errorf("columns at which lines begin: %s\n%s", diff, out)
	}
}

func TestPricesAreNotCut(t *testing.T) {
	_, out, _ := command(t, `{"groups": [{"name": "a", "resources": {"GPU": 1}, "price": 3.673}, {"name": "b", "resources": {"TPU": 1}, "price": 0.1}],
		"pendingRequests": [{"resources": {"GPU": 1}, "count": 1}, {"resources": {"TPU": 1}, "count": 3}]}`, "autoscaler", "plan", "--snapshot", "-", "-o", "text")
	if want := "price of what is launched: 3.973 an hour\n"; !strings.Contains(out, want) {
		t.Errorf("want in it %q, got\n%s", want, out)
	}
}
