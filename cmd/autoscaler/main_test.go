package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/internal/planner"
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
	return code, o.String(), e.String()
}

func TestBadInputEndsWithExitTwoAndASentence(t *testing.T) {
	for name, c := range map[string]struct {
		stdin string
		argv  []string
		want  string
	}{
		"unknown command":             {"", []string{"autoscaler", "plna"}, "autoscaler: unknown command \"plna\" for \"autoscaler\"\n\nDid you mean this?\n\tplan\n\n"},
		"unknown command with a flag": {"", []string{"autoscaler", "plna", "-o", "json"}, "autoscaler: unknown command \"plna\" for \"autoscaler\"\n\nDid you mean this?\n\tplan\n\n"},
		"unknown flag":                {"", []string{"autoscaler", "plan", "--snap"}, "autoscaler: unknown flag: --snap\n"},
		"removed flag":                {"", []string{"autoscaler", "request", "ml/llm", "--renew"}, "autoscaler: unknown flag: --renew: it was removed; the same request again renews its lease\n"},
		"removed letter":              {"", []string{"autoscaler", "status", "-w"}, "autoscaler: unknown shorthand flag: 'w' in -w: it was removed; use `watch autoscaler status`\n"},
		"removed command":             {"", []string{"autoscaler", "shadow", "ml/llm"}, "autoscaler: unknown command \"shadow\" for \"autoscaler\"\n\nDid you mean this?\n\tstatus\n\n"},
		"question about no name":      {"", []string{"autoscaler", "explain", "--snapshot", "-", "--group", ""}, "autoscaler: --group: it is empty: want the worker group's name\n"},
		"question about no demand":    {"", []string{"autoscaler", "explain", "--snapshot", "-", "--demand="}, "autoscaler: --demand: it is empty: want what one task, bundle or placement group requests, a JSON object\n"},
		"a file as a RayCluster":      {"", []string{"autoscaler", "plan", "s.json"}, "autoscaler: RayCluster \"s.json\": want NAME or NAMESPACE/NAME; a file is for --snapshot of plan and explain\n"},
		"no snapshot":                 {"", []string{"autoscaler", "plan"}, "autoscaler: want a RayCluster, or --snapshot with a file or - for standard input\n"},
		"unknown output":              {"", []string{"autoscaler", "plan", "--snapshot", "-", "-o", "xml"}, "autoscaler: invalid argument \"xml\" for \"-o, --output\" flag: want json, table, wide or yaml\n"},
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
		must(t, err)
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
	if want := "ray: unknown command \"plan\" for \"ray\"\n"; code != cli.ExitBadInput || errOut != want {
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

func TestPricesAreNotCut(t *testing.T) {
	_, out, _ := command(t, `{"groups": [{"name": "a", "resources": {"GPU": 1}, "price": 3.673}, {"name": "b", "resources": {"TPU": 1}, "price": 0.1}],
		"pendingRequests": [{"resources": {"GPU": 1}, "count": 1}, {"resources": {"TPU": 1}, "count": 3}]}`, "autoscaler", "plan", "--snapshot", "-", "-o", "text")
	if want := "price of what is launched: 3.973 an hour\n"; !strings.Contains(out, want) {
		t.Errorf("want in it %q, got\n%s", want, out)
	}
}

func TestTheVersionNamesRevisionAndGo(t *testing.T) {
	build := api.Build{Version: "v1.2.3", Revision: "abc", Modified: true, Go: "go1.26.0"}
	if want := "heliostat v1.2.3, revision abc (modified), go1.26.0"; build.String() != want {
		t.Errorf("got %q", build)
	}
	for format, want := range map[string]string{"text": "heliostat " + api.Release, "json": "{\n  \"version\": ", "yaml": "go: " + runtime.Version()} {
		if code, out, _ := command(t, "", "autoscaler", "version", "-o", format); code != cli.ExitOK || !strings.HasPrefix(out, want) {
			t.Errorf("-o %s: exit %d: %q", format, code, out)
		}
	}
}

func TestAKeyThatIsNotReadIsAWarningAndAFinding(t *testing.T) {
	const input = `{"groups": [{"name": "cpu", "resources": {"CPU": 4}, "minReplica": 2}]}`
	const told = "standard input: groups[0].minReplica: 2: this key is unknown, so it has no effect; rename it to minReplicas"
	const warning = "autoscaler: warning: " + told + "\n"
	code, out, errOut := command(t, input, "autoscaler", "plan", "--snapshot", "-")
	var plan planner.Plan
	if err := json.Unmarshal([]byte(out), &plan); err != nil || code != cli.ExitOK || errOut != warning {
		t.Fatalf("exit %d (%v), told %q, want %q", code, err, errOut, warning)
	}
	if len(plan.Findings) != 1 || plan.Findings[0].Code != planner.FindingKeyUnknown {
		t.Errorf("findings %+v, want the one of the key", plan.Findings)
	}
	code, out, errOut = command(t, input, "autoscaler", "plan", "--snapshot", "-", "-o", "text")
	if text := strings.Join(strings.Fields(out), " "); code != cli.ExitOK || errOut != "" || !strings.Contains(text, "Findings warning key-unknown standard input groups[0].minReplica: 2 this key is unknown") {
		t.Errorf("exit %d, told %q and\n%s", code, errOut, out)
	}
	if code, _, errOut := command(t, input, "autoscaler", "explain", "--snapshot", "-", "--group", "cpu"); code != cli.ExitOK || errOut != warning {
		t.Errorf("explain: exit %d, told %q", code, errOut)
	}
	if code, _, errOut := command(t, `{"rayCluster": `+manifest+`, "takenat": "2026-01-31T12:00:00Z"}`, "autoscaler", "plan", "--snapshot", "-"); code != cli.ExitOK || !strings.Contains(errOut, "rename it to takenAt") {
		t.Errorf("with a manifest: exit %d, told %q", code, errOut)
	}
}

func TestTheCasesOfRayAndKubeRayAreReadWithoutAWarning(t *testing.T) {
	for _, file := range caseFiles(t) {
		if code, _, errOut := command(t, "", "autoscaler", "plan", "--snapshot", file); code != cli.ExitOK || errOut != "" {
			t.Errorf("%s: exit %d, told %s", file, code, errOut)
		}
	}
}

func TestACommandThatHearsOfNoSignalIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, stopped, code := time.Now(), false, -1
		var said bytes.Buffer
		endWithin(endsWithin, func() { stopped = time.Since(begun) == 0 }, &said, func(c int) { code = c })
		if !stopped {
			t.Error("a second signal does not end the program at once")
		}
		if took := time.Since(begun); code != cli.ExitFailed || took != endsWithin || !strings.Contains(said.String(), "9s") {
			t.Errorf("ended with %d after %v, saying %q; want %d after %v, with the time in the sentence", code, took, said.String(), cli.ExitFailed, endsWithin)
		}
	})
}

func TestACommandThatIsBrokenOffIsInterruptedAndNoErrorOfTheServer(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, call *http.Request) {
		end()
		<-call.Context().Done()
	}))
	defer server.Close()
	var errOut bytes.Buffer
	code := run(ctx, []string{"autoscaler", "status", "--server", server.URL}, strings.NewReader(""), io.Discard, &errOut)
	if want := "autoscaler: interrupted; a request that was already sent may still take effect\n"; code != cli.ExitFailed || errOut.String() != want {
		t.Errorf("exit %d, told %q, want %q", code, errOut.String(), want)
	}
}

// asProgram is the environment variable that makes the test binary run as the program, which reads a pipe.
const asProgram = "HELIOSTAT_TEST_AS_PROGRAM"

func TestAProgramThatReadsAPipeWithoutEndIsEndedByASignal(t *testing.T) {
	if os.Getenv(asProgram) != "" {
		os.Args = []string{"autoscaler", "plan", "--snapshot", "-"}
		main()
	}
	t.Parallel()
	self, err := os.Executable()
	must(t, err)
	program := exec.Command(self, "-test.run=^"+t.Name()+"$")
	program.Env = append(os.Environ(), asProgram+"=yes")
	pipe, err := program.StdinPipe()
	must(t, err)
	var said bytes.Buffer
	program.Stderr = &said
	must(t, program.Start())
	ended := make(chan error, 1)
	go func() { ended <- program.Wait() }()
	// This is more than a pipe's buffer. After the write returns, the program has started to read.
	if _, err := pipe.Write(bytes.Repeat([]byte(" "), 1<<20)); err != nil {
		t.Fatal(err)
	}
	must(t, program.Process.Signal(syscall.SIGTERM))
	select {
	case <-ended:
		if code := program.ProcessState.ExitCode(); code != cli.ExitFailed || !strings.Contains(said.String(), "shutdown exceeded 9s; forcing exit") {
			t.Errorf("it ended with %d, saying %q", code, said.String())
		}
	case <-time.After(time.Minute):
		program.Process.Kill()
		t.Error("a minute after SIGTERM it still runs")
	}
}

func TestServeNamesItselfToTheAPIServer(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	var mu sync.Mutex
	agents := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, call *http.Request) {
		mu.Lock()
		agents[call.UserAgent()] = true
		mu.Unlock()
		end()
		http.NotFound(w, call)
	}))
	defer server.Close()
	run(ctx, []string{"autoscaler", "serve", "--kubeconfig", kubeconfigOf(t, server.URL), "--listen", ""},
		strings.NewReader(""), io.Discard, io.Discard)
	mu.Lock()
	defer mu.Unlock()
	if len(agents) == 0 {
		t.Error("serve has not called the API server")
	}
	for agent := range agents {
		if want := "heliostat/" + api.Release + " ("; !strings.HasPrefix(agent, want) {
			t.Errorf("the user agent is %q, want that it begins with %q", agent, want)
		}
	}
}

// TestWrongInvocationsSayWhatWouldBeRight checks the message for an invalid command line. It is one line on standard
// error with the error, the value, and the valid alternative.
func TestWrongInvocationsSayWhatWouldBeRight(t *testing.T) {
	newRemote(t)
	snapshot := fileOf(t, explainable)
	empty, large := fileOf(t, "# nothing\n"), fileOf(t, strings.Repeat(" ", mostBody+1))
	blank := fileOf(t, "\n")
	const bundle = `{"GPU": 1}`
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"status", "-o", "xml"}, `invalid argument "xml" for "-o, --output" flag: want table, wide, json or yaml`},
		{[]string{"status", "a", "b"}, `unexpected argument "b": want one RayCluster at most, NAME or NAMESPACE/NAME; see autoscaler status --help`},
		{[]string{"status", "ml/"}, `RayCluster "ml/": want NAME or NAMESPACE/NAME`},
		{[]string{"status", "ml/llm", "-n", "dev"}, `RayCluster "ml/llm" is not in --namespace dev: want one of the two, or the same namespace`},
		{[]string{"status", "--server", "nowhere"}, `--server: reading server address "nowhere": write https://host:port, or http:// without TLS`},
		{[]string{"status", "--server", "http://127.0.0.1:99999"}, `--server: reading server address "http://127.0.0.1:99999": port 99999: want 1 to 65535`},
		{[]string{"status", "--server", "ftp://x"}, `--server: reading server address "ftp://x": write http://host:port`},
		{[]string{"status", "--token-file", "no/such"}, "reading --token-file, $HELIOSTAT_TOKEN_FILE or --certificate-authority: failed to read token file \"no/such\": open no/such: no such file or directory"},
		{[]string{"freeze"}, "the RayCluster is missing: want one RayCluster, NAME or NAMESPACE/NAME; see autoscaler freeze --help"},
		{[]string{"version", "now"}, `unexpected argument "now": want flags only; see autoscaler version --help`},
		{[]string{"request", "ml/llm", "--bundle", "[1]"}, `--bundle [1]: want a JSON object such as {"GPU": 1}`},
		{[]string{"request", "ml/llm", "--bundle", "null"}, `--bundle null: want a JSON object such as {"GPU": 1}`},
		{[]string{"request", "ml/llm", "--id", "a", "--lease", "soon", "--bundle", bundle}, `invalid argument "soon" for "--lease" flag: want a duration such as 300ms, 90s or 1h30m`},
		{[]string{"request", "ml/llm", "--id", "A_B", "--lease", "1m", "--bundle", bundle}, "answers 400: id: want a DNS name of at most 63 characters, is A_B"},
		{[]string{"request", "ml/llm", "--bundle", `{"GPU": "x"}`}, `answers 400: bundles[0].resources.GPU: want 0, or a number from 0.0001 to 109951162777600, is "x"`},
		{[]string{"request", "ml/llm", "--lease", "1m"}, "--lease is for a request in your own name: give --id"},
		{[]string{"request", "ml/llm", "-f", "no/such"}, "opening a request: open no/such: no such file or directory"},
		{[]string{"request", "ml/llm", "-f", empty}, "reading a request from " + empty + ": it is empty: want the body of a call, as JSON or YAML"},
		{[]string{"request", "ml/llm", "-f", large}, "reading a request from " + large + ": it has more than 4194304 bytes, the most that are read"},
		{[]string{"explain", "ml/llm"}, "at least one of the flags in the group [demand group pod gang request] is required"},
		{[]string{"explain", "-f", snapshot, "--group", "gpus"}, `--group: "gpus": want one of cpu, gpu`},
		{[]string{"explain", "ml/llm", "--group", "gpu", "--pool-label", "x"}, "--resource, --pool-label and --topology-label are for files: the server reads the RayCluster's nodes with its own settings"},
		{[]string{"explain", "-f", snapshot, "--group", "gpu", "--resource", "a/b=mig", "--resource", "a/b=mps"}, `--resource "a/b=mps": a/b is repeated: want each name once`},
		{[]string{"explain", "-f", snapshot, "--group", "gpu", "--resource", "x"}, `--resource "x": want a name such as example.com/gpu, =, and one of whole, mig, time-sliced, mps, gpu-mem:MIB, vgpu, none, elsewhere`},
		{[]string{"plan"}, "want a RayCluster, or --snapshot with a file or - for standard input"},
		{[]string{"plan", "-n", "ml"}, "want a RayCluster, or --snapshot with a file or - for standard input"},
		{[]string{"plan", "ml/llm", "--resource", "a/b=whole"}, "--resource, --pool-label and --topology-label are for files: the server reads the RayCluster's nodes with its own settings"},
		{[]string{"plan", "--what-if", "w.json"}, "--what-if is for a RayCluster: want NAME or NAMESPACE/NAME beside it, or --snapshot in its place"},
		{[]string{"plan", "-f", snapshot, "--server", "http://127.0.0.1:1"}, "if any flags in the group [snapshot server] are set none of the others can be; [server snapshot] were all set"},
		{[]string{"explain", "-f", snapshot, "--group", "gpu", "-n", "ml", "--context", "dev"}, "if any flags in the group [snapshot context] are set none of the others can be; [context snapshot] were all set"},
		{[]string{"serve", "--kube-api-qps=abc"}, `invalid argument "abc" for "--kube-api-qps" flag: want a number from 0.1 to 100000`},
		{[]string{"serve", "--mode=managd"}, `invalid argument "managd" for "--mode" flag: want managed, shadow or off`},
		{[]string{"serve", "--mode="}, `invalid argument "" for "--mode" flag: want managed, shadow or off`},
		{[]string{"serve", "--shards", "--leader-elect"}, "want --shards or --leader-elect: shards have leases of their own"},
		{[]string{"serve", "--pools", blank}, "reading pools from " + blank + ": the file is empty: want a list of pools, or {} for none"},
		{[]string{"serve", "--advertise-address", "foo"}, `--advertise-address "foo": want an IP address such as 10.0.0.7`},
		{[]string{"serve", "--topology-label", "foo"}, `--topology-label "foo": has no =: want NODE=RAY such as nvidia.com/gpu.clique=ray.io/gpu-domain`},
		{[]string{"serve", "--topology-label", "a=b=c"}, `--topology-label "a=b=c": "b=c" is not a label's name (at most 63 of a to z, A to Z, 0 to 9, -, _ and ., after a domain and / if it has one): want NODE=RAY such as nvidia.com/gpu.clique=ray.io/gpu-domain`},
		{[]string{"nodepools", "-f", fileOf(t, "hello\n")}, "reading document 1: want a Kubernetes object: the document is of type string"},
		{[]string{"nodepools", "-f", fileOf(t, "kind: 5\n")}, "reading document 1: kind is 5: want a name such as RayCluster"},
		{[]string{"plan", "-f", snapshot, "ml/llm"}, `--snapshot "` + snapshot + `" cannot be combined with a RayCluster, here "ml/llm": want one of the two`},
		{[]string{"plan", "-f", empty}, empty + `: not JSON: want a snapshot {"groups": […], "nodes": […], …}, a JSON object with the keys of docs/reference/plan.md`},
		{[]string{"explain", "-f", snapshot, "--demand", `{"GPU": 1, "count": 2}`}, `--demand: count: 2: want {"resources": {…}, "count": 2}, because count is not a resource`},
		{[]string{"plan", "-f", blank}, blank + `: it is empty: want a snapshot {"groups": […], "nodes": […], …}, a JSON object with the keys of docs/reference/plan.md`},
		{[]string{"serve", "--log-level=loud"}, `invalid argument "loud" for "--log-level" flag: want debug, info, warn or error`},
		{[]string{"serve", "--log-format=xml"}, `invalid argument "xml" for "--log-format" flag: want json or text`},
		{[]string{"doctor", "a", "b"}, `unexpected argument "b": want the name of one RayCluster; files follow -f`},
		{[]string{"doctor", "llm"}, `RayCluster "llm": want NAMESPACE/NAME, or its namespace with -n; files follow -f`},
		{[]string{"nodepools", "--topology-label", "a=b"}, "unknown flag: --topology-label"},
		{[]string{"nodepools", "nodes.yaml"}, `unexpected argument "nodes.yaml"; files follow -f`},
	} {
		code, out, errOut := command(t, "", append([]string{"autoscaler"}, c.argv...)...)
		if code != cli.ExitBadInput || out != "" || !strings.HasSuffix(errOut, c.want+"\n") || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%v: exit %d %q: got\n%swant\nautoscaler: %s", c.argv, code, out, errOut, c.want)
		}
	}
}

// TestExplainReadsNodesAsItIsTold checks that --resource changes how explain reads the groups of a manifest offline, as
// it does online.
func TestExplainReadsNodesAsItIsTold(t *testing.T) {
	const file = `{"rayCluster": {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "llm", "namespace": "ml"}, "spec": {
		"headGroupSpec": {"template": {"spec": {"containers": [{"name": "h", "image": "r"}]}}},
		"workerGroupSpecs": [{"groupName": "half", "replicas": 0, "minReplicas": 0, "maxReplicas": 2, "rayStartParams": {"num-gpus": "1"}, "template": {"spec": {"containers": [
			{"name": "w", "image": "r", "resources": {"limits": {"cpu": "1", "memory": "1Gi", "corp.example/half": "1"}}}]}}}]}},
		"pendingRequests": [{"count": 1, "resources": {"GPU": 1}, "slice": {"isolation": "hardware"}}]}`
	asked := []string{"autoscaler", "explain", "-f", "-", "--demand", `{"resources": {"GPU": 1}, "slice": {"isolation": "hardware"}}`}
	_, untold, _ := command(t, file, asked...)
	code, told, errOut := command(t, file, append(asked, "--resource", "corp.example/half=whole")...)
	if code != cli.ExitOK || told == untold || !strings.Contains(told, "group half: launch") {
		t.Errorf("exit %d %s: told\n%suntold\n%s", code, errOut, told, untold)
	}
}

func TestAMinimumThatIsNotReachedIsUnmet(t *testing.T) {
	const input = `{"maxWorkers": 3, "groups": [{"name": "a", "resources": {"CPU": 1}, "minReplicas": 3}, {"name": "b", "resources": {"CPU": 1}, "minReplicas": 2}]}`
	_, out, _ := command(t, input, "autoscaler", "plan", "--snapshot", "-", "-o", "text")
	_, unmet, _ := strings.Cut(out, "Unmet\n")
	if want := "  minimum of group b: 2 of 2 missing\n"; unmet != want {
		t.Errorf("got %q, want %q in\n%s", unmet, want, out)
	}
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
