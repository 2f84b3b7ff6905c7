package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

var llmKey = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}

// remote is a Heliostat server of one cluster, ml/llm, for commands to call.
type remote struct {
	address string

	mu    sync.Mutex // guards the fields below
	view  api.View
	kept  []raydemand.Request
	since time.Time
	// seen contains the headers of the last call.
	seen http.Header
	// owned contains requests that have owners, by ID.
	owned map[string]nodepool.OwnedRequest
	// set is the last mode that a command set.
	set nodepool.Mode
}

func newRemote(t *testing.T) *remote {
	t.Helper()
	s, err := snapshotfile.ReadSnapshot(strings.NewReader(explainable), "snapshot")
	must(t, err)
	s.Name, s.TakenAt = "ml/llm", time.Now()
	one := raydemand.One
	r := &remote{owned: map[string]nodepool.OwnedRequest{}, view: api.View{
		Decision: &addon.Decision{
			Cluster:  llmKey,
			Mode:     nodepool.Managed,
			Why:      planner.Reason{Message: "managed by --mode"},
			At:       s.TakenAt,
			Read:     addon.LatestOf(s.TakenAt),
			Took:     3 * time.Millisecond,
			Snapshot: s,
			Plan:     planner.Compute(s, s.Policy),
			Findings: []raydemand.Finding{{Code: "demand-truncated", Severity: raydemand.Warning, Object: "RayCluster ml/llm", Why: "more may wait", Fix: "ask for fewer shapes"}},
			Recent: []addon.Action{{At: s.TakenAt, Kind: "patch", Result: "ok", Group: "gpu", From: 1, To: 2,
				Message: "group gpu: replicas 1 → 2"}},
			NumGPUs: map[string]addon.GroupNumGPUs{"gpu": {NumGPUs: nodepool.NumGPUs{Derived: &one, Reported: &one}}},
		},
	}}
	handler, err := api.NewHandler(api.Config{Fleet: r, Requests: r, Clusters: r, GiveBacks: r, Nodepools: r, Owned: owners{r}, Costs: costly(), Currency: "USD"})
	must(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.mu.Lock()
		r.seen = request.Header.Clone()
		r.mu.Unlock()
		handler.ServeHTTP(w, request)
	}))
	t.Cleanup(server.Close)
	r.address = server.URL
	t.Setenv(cli.ServerVariable, r.address)
	t.Setenv(cli.TokenFileVariable, "")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	return r
}

// costly returns a ledger in which ml/llm has used one worker with a GPU, and had another one idle, for an hour.
func costly() *ledger.Ledger {
	now := time.Now()
	begin := now.Add(-time.Hour)
	l := ledger.New(ledger.Limits{})
	pod := func(cause ledger.Cause, why string) ledger.Pod {
		return ledger.Pod{Account: ledger.Account{Group: "gpu", Owner: "RayJob/nightly", Cause: cause, Why: why}, Part: 1, GPUs: 1, Hourly: 3}
	}
	for at := begin; !at.After(now); at = at.Add(time.Minute) {
		l.Observe(ledger.Observation{At: at, Cluster: llmKey, Pods: []ledger.Pod{pod(ledger.Used, ""), pod(ledger.Idle, "minimum")}})
	}
	return l
}

func (r *remote) Views() []api.View {
	r.mu.Lock()
	defer r.mu.Unlock()
	return []api.View{r.view}
}

func (r *remote) View(key nodepool.ClusterKey) (api.View, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.view, key == llmKey
}

func (r *remote) ResourceRequests(_ context.Context, key nodepool.ClusterKey) ([]raydemand.Request, time.Time, error) {
	if key != llmKey {
		return nil, time.Time{}, nodepool.ErrGone
	}
	return r.kept, r.since, nil
}

func (r *remote) SetResourceRequests(_ context.Context, _ nodepool.ClusterKey, requests []raydemand.Request, since time.Time) error {
	r.kept, r.since = requests, since
	return nil
}

// Begin agrees on an idle worker.
func (r *remote) Begin(_ context.Context, _ nodepool.ClusterKey, ask giveback.Ask) (giveback.Reservation, error) {
	agreed := giveback.Reservation{Ask: ask, Deadline: time.Now().Add(ask.Within()), Hold: 16, PodGPUs: map[string]int64{"h100": 8},
		Workers: []giveback.Worker{{Pod: "llm-h100-1", UID: "u", Group: "h100", GPUs: 8, Why: "idle"}}}
	if !ask.DryRun {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.view.Kube.GiveBack = &agreed
	}
	return agreed, nil
}

// End ends the reservation.
func (r *remote) End(context.Context, nodepool.ClusterKey) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view.Kube.GiveBack = nil
	return nil
}

func (r *remote) SetFreeze(_ context.Context, key nodepool.ClusterKey, frozen bool) error {
	if key != llmKey {
		return nodepool.ErrGone
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view.Kube.Freeze = frozen
	return nil
}

func (r *remote) SetMode(_ context.Context, key nodepool.ClusterKey, mode nodepool.Mode) error {
	if key != llmKey {
		return nodepool.ErrGone
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set = mode
	return nil
}

func (r *remote) Nodepools(context.Context) (apiv1.NodepoolsReport, error) {
	return apiv1.NodepoolsReport{Nodes: []sharing.GPUs{{Name: "n1"}}}, nil
}

func TestTheFleetAndAClusterAreShownInTables(t *testing.T) {
	newRemote(t)
	code, out, errOut := command(t, "", "autoscaler", "status")
	want := `NAMESPACE  NAME  MODE     WORKERS  WAITING  UNMET  FINDINGS  DATA  STATUS
ml         llm   managed  1/2      4        1      1         0s    demand is not served
`
	out = regexp.MustCompile(` \d+m?s +`).ReplaceAllString(out, " 0s    ") // the age's width varies
	out = regexp.MustCompile(`DATA +`).ReplaceAllString(out, "DATA  ")
	if diff := cmp.Diff(want, out); code != cli.ExitOK || diff != "" {
		t.Errorf("exit %d %s (-want +got):\n%s", code, errOut, diff)
	}
	code, out, errOut = command(t, "", "autoscaler", "status", "ml/llm")
	for _, want := range []string{
		"ml/llm: managed (managed by --mode)\n",
		"GROUP  HAS  WANTS  ASKED  MIN  MAX   READY  IDLE  STARTING  LEAVING  WHY\n",
		"gpu    1    2      0      0    2     1      0     0         0        ",
		"GPUS OF A WORKER  DECLARED  DERIVED  REPORTED  RAY  NOTE\ngpu               -         1        1         -    -\n",
		"Demand\n  4 × {GPU 1}\n", "Unmet\n  3 × {GPU 1}: capped", "  warning  demand-truncated\n           RayCluster ml/llm\n           more may wait\n           ask for fewer shapes\n",
		"scale-up  gpu    1 → 2     group gpu: replicas 1 → 2\n",
	} {
		if code != cli.ExitOK || !strings.Contains(out, want) {
			t.Errorf("exit %d %s: want in it %q, got\n%s", code, errOut, want, out)
		}
	}
}

func TestJSONAndYAMLHoldWhatTheAPISays(t *testing.T) {
	newRemote(t)
	for _, argv := range [][]string{
		{"status"}, {"status", "ml/llm"}, {"explain", "ml/llm", "--group", "gpu"}, {"request", "ml/llm"},
	} {
		argv = append([]string{"autoscaler"}, argv...)
		code, asJSON, errOut := command(t, "", append(argv, "-o", "json")...)
		yamlCode, asYAML, _ := command(t, "", append(argv, "-o", "yaml")...)
		if code != cli.ExitOK || yamlCode != cli.ExitOK || !json.Valid([]byte(asJSON)) {
			t.Fatalf("%v: exit %d and %d %s: %s", argv, code, yamlCode, errOut, asJSON)
		}
		converted, err := yaml.YAMLToJSON([]byte(asYAML))
		must(t, err)
		if diff := cmp.Diff(steady(t, []byte(asJSON)), steady(t, converted)); diff != "" {
			t.Errorf("%v (-json +yaml):\n%s", argv, diff)
		}
		if code, _, errOut := command(t, "", append(argv, "-o", "xml")...); code != cli.ExitBadInput || !strings.Contains(errOut, `invalid argument "xml" for "-o, --output" flag`) {
			t.Errorf("%v -o xml: exit %d %s", argv, code, errOut)
		}
	}
}

// steady decodes a document without the values that differ between two calls.
func steady(t *testing.T, text []byte) (value any) {
	t.Helper()
	must(t, json.Unmarshal(text, &value))
	drop := func(v any) {
		if object, ok := v.(map[string]any); ok {
			delete(object, "dataAgeSeconds")
		}
	}
	drop(value)
	if object, ok := value.(map[string]any); ok {
		items, _ := object["items"].([]any)
		for _, item := range items {
			drop(item)
		}
	}
	return value
}

func TestACommandExplainsALiveClusterAsItsSnapshot(t *testing.T) {
	newRemote(t)
	for _, what := range [][]string{{"--group", "gpu"}, {"--pod", "worker-7"}, {"--demand", `{"resources": {"GPU": 1}, "count": 6}`}} {
		_, offline, _ := command(t, explainable, append([]string{"autoscaler", "explain", "--snapshot", "-"}, what...)...)
		code, online, errOut := command(t, "", append([]string{"autoscaler", "explain", "ml/llm"}, what...)...)
		if diff := cmp.Diff(offline, online); code != cli.ExitOK || diff != "" || online == "" {
			t.Errorf("%v: exit %d %s (-offline +online):\n%s", what, code, errOut, diff)
		}
	}
	if code, _, errOut := command(t, "", "autoscaler", "explain", "ml/llm", "--group", "tpu"); code != cli.ExitFailed || !strings.Contains(errOut, `group: "tpu": want one`) {
		t.Errorf("exit %d %s", code, errOut)
	}
}

func TestCapacityIsRequestedShownAndCleared(t *testing.T) {
	newRemote(t)
	body := filepath.Join(t.TempDir(), "body.yaml")
	must(t, os.WriteFile(body, []byte("bundles:\n- {GPU: 1}\n- {CPU: 3}\n"), 0o600))
	for _, c := range []struct {
		argv []string
		want string
	}{
		{nil, "No requests found.\n"},
		{[]string{"--bundle", `{"CPU": 1, "count": 2}`, "--bundle", `{"GPU": 1}`, "--bundle", `{"resources": {"CPU": 2}, "slice": {"memory": "10Gi"}, "count": 3}`},
			"  2 × {CPU 1}\n  1 × {GPU 1}\n  3 × {CPU 2, GPU 1}"},
		{nil, "(plain)  -      2 × {CPU 1}, 1 × {GPU 1}, 3 × {CPU 2, GPU 1}"},
		{[]string{"-f", body}, "  1 × {GPU 1}\n  1 × {CPU 3}\n"},
		{[]string{"--delete"}, "There is no request without an id.\n"},
		{nil, "No requests found.\n"},
	} {
		code, out, errOut := command(t, "", append([]string{"autoscaler", "request", "ml/llm"}, c.argv...)...)
		if code != cli.ExitOK || !strings.Contains(out, c.want) {
			t.Errorf("%v: exit %d %s: want in it %q, got %q", c.argv, code, errOut, c.want, out)
		}
	}
}

func TestWhatACommandCannotDoEndsWithItsExitCode(t *testing.T) {
	r := newRemote(t)
	token := fileOf(t, "t0ken\n")
	for _, c := range []struct {
		argv []string
		code int
		want string
	}{
		{[]string{"status", "ml/other"}, cli.ExitFailed, "autoscaler: " + r.address + " answers 404: there is no RayCluster ml/other among those that Heliostat looks after\n"},
		{[]string{"request", "ml/other"}, cli.ExitFailed, " answers 404: there is no RayCluster ml/other among those that Heliostat looks after\n"},
		{[]string{"freeze", "ml/other"}, cli.ExitFailed, " answers 404: there is no RayCluster ml/other among those that Heliostat looks after\n"},
		{[]string{"status", "ml/other"}, cli.ExitFailed, "autoscaler: " + r.address + " answers 404: there is no RayCluster ml/other among those that Heliostat looks after\n"},
		{[]string{"request", "ml/llm", "--id", "train-7"}, cli.ExitFailed, " answers 404: RayCluster ml/llm has no request train-7\n"},
		{[]string{"request", "ml/llm", "--id", "train-7", "--delete"}, cli.ExitFailed, " answers 404: RayCluster ml/llm has no request train-7\n"},
		{[]string{"status", "ml/llm", "more"}, cli.ExitBadInput, `unexpected argument "more": want one RayCluster at most, NAME or NAMESPACE/NAME`},
		{[]string{"status", "a/b/c"}, cli.ExitBadInput, "want NAME or NAMESPACE/NAME"},
		{[]string{"status", "ml/llm", "-n", "dev"}, cli.ExitBadInput, "is not in --namespace dev"},
		{[]string{"status", "Bad_Name", "-n", "ml"}, cli.ExitBadInput, "want a DNS name"},
		{[]string{"freeze", ".."}, cli.ExitBadInput, `RayCluster "..": want a DNS name`},
		{[]string{"unmanage", "../.."}, cli.ExitBadInput, `RayCluster "../..": want a DNS name`},
		{[]string{"status", "-n", "..", "x"}, cli.ExitBadInput, "want a DNS name: at most 63"},
		{[]string{"freeze"}, cli.ExitBadInput, "the RayCluster is missing: want one RayCluster, NAME or NAMESPACE/NAME"},
		{[]string{"request", "ml/llm", "--bundle", "GPU"}, cli.ExitBadInput, "--bundle GPU: want a JSON object"},
		{[]string{"request", "ml/llm", "--bundle", `{"GPU": -1}`}, cli.ExitBadInput, "bundles[0].resources.GPU: want 0, or a number from 0.0001 to 109951162777600"},
		{[]string{"request", "ml/llm", "--delete", "--bundle", "{}"}, cli.ExitBadInput, "[delete bundle]"},
		{[]string{"explain", "ml/llm"}, cli.ExitBadInput, "[demand group pod gang request] is required"},
		{[]string{"explain", "--group", "gpu"}, cli.ExitBadInput, "want a RayCluster, or --snapshot"},
		{[]string{"explain", "ml/llm", "--group", "gpu", "--snapshot", "s.json"}, cli.ExitBadInput, "cannot be combined with a RayCluster"},
		{[]string{"status", "--server", "http://heliostat.example", "--token-file", token}, cli.ExitBadInput, "has no TLS"},
		{[]string{"status", "--server", "heliostat.example"}, cli.ExitBadInput, "write https://host:port"},
		{[]string{"status", "--context", "c"}, cli.ExitBadInput, "not for --server"},
		{[]string{"plan", "ml/llm", "--snapshot", "s.json"}, cli.ExitBadInput, "cannot be combined with a RayCluster"},
		{[]string{"give-back", "ml/llm", "--gpus", "8", "--group", "h100", "--within", "0s"}, cli.ExitBadInput, "from 1m0s to 24h0m0s"},
		{[]string{"give-back", "ml/llm", "--gpus", "8", "--group", "h100", "--for", "-1h"}, cli.ExitBadInput, "from 0s to 8760h0m0s"},
		{[]string{"plan", "--what-if", "w.json"}, cli.ExitBadInput, "--what-if is for a RayCluster"},
	} {
		code, out, errOut := command(t, "", append([]string{"autoscaler"}, c.argv...)...)
		if code != c.code || out != "" || !strings.Contains(errOut, c.want) {
			t.Errorf("%v: exit %d %q %q, want exit %d and %q", c.argv, code, out, errOut, c.code, c.want)
		}
	}
	t.Setenv(cli.ServerVariable, "")
	if code, _, errOut := command(t, "", "autoscaler", "status"); code != cli.ExitBadInput || !strings.Contains(errOut, "give --kubeconfig, or --server") {
		t.Errorf("without any way to a server: exit %d %s", code, errOut)
	}
}

func TestKubectlFindsTheProgramAsAPlugin(t *testing.T) {
	newRemote(t)
	code, out, errOut := command(t, "", "/usr/local/bin/kubectl-heliostat", "status", "--help")
	if code != cli.ExitOK || !strings.Contains(out, "kubectl heliostat status [RAYCLUSTER]") || !strings.Contains(out, "  kubectl heliostat status ml/llm -o yaml\n") ||
		strings.Contains(out, "autoscaler status") {
		t.Errorf("exit %d %s: %s", code, errOut, out)
	}
	if code, out, errOut := command(t, "", "kubectl-heliostat", "status"); code != cli.ExitOK || !strings.Contains(out, "llm") {
		t.Errorf("exit %d %s: %s", code, errOut, out)
	}
}

func TestCommandsPrintWhatTheServerAnswers(t *testing.T) {
	newRemote(t)
	for _, c := range []struct{ line, want string }{
		{"give-back ml/llm --gpus 8 --group h100 --dry-run", "only shown: nothing is given back"},
		{"give-back ml/llm --gpus 8 --group h100 --within 10m --for 2h", "llm-h100-1 h100 8 gone idle"},
		{"give-back ml/llm", "8 of 8 GPUs are given back"},
		{"give-back ml/llm --end", "ml/llm: the reservation is ended"},
		{"freeze ml/llm", "ml/llm is frozen"},
		{"unfreeze ml/llm", "ml/llm is not frozen"},
		{"plan ml/llm --what-if - -o table", "gpu: 1 → 5 pods (min 0, max 8)"},
		{"costs --by cause", "idle minimum"},
	} {
		code, out, errOut := command(t, `{"groups": [{"name": "gpu", "maxReplicas": 8}]}`, strings.Fields("autoscaler "+c.line)...)
		if code != cli.ExitOK || !strings.Contains(strings.Join(strings.Fields(out), " "), c.want) {
			t.Errorf("%s: exit %d, want %q, got\n%s%s", c.line, code, c.want, out, errOut)
		}
	}
}
