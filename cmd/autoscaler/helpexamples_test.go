package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/internal/cli"
)

// noDriver is the error of commands that read a machine's GPUs in a build without support for it.
const noDriver = "autoscaler: this build cannot ask NVIDIA's driver"

// TestTheExamplesOfTheHelpRun runs the examples exactly as the help prints them, in an empty directory. kubectl, the
// API server and Heliostat have the objects that the examples name.
func TestTheExamplesOfTheHelpRun(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	newRemote(t).holding()
	t.Setenv("KUBECONFIG", exampleAPIServer(t))
	t.Setenv(cli.EnvPrefix+"LISTEN", "127.0.0.1:0") // the default port may be in use
	t.Setenv(cli.EnvPrefix+"KUBECONFIG", kubeconfigOf(t, "http://"+silentServer(t)))
	nodes, clusters := exampleObjects(t)
	said := filepath.Join(t.TempDir(), "said")
	t.Setenv(kubectlSays, said)
	writeObjects(t, said, append(clusters, nodes...)...)
	writeObjects(t, said+"-gpu-1", nodes[2])
	wanted := map[string][]string{
		"plan": {"launch 1 × gpu price of what is launched: 4.473 an hour", `"infeasibleRequests": [`,
			"Difference to the present plan group gpu: 5 pods instead of 2 launch +3 × gpu"},
		"explain":  {"demand {GPU 1}: capped: 4 asked", "where zone=in(a,b): capped: no task in the snapshot", "group gpu: launch: launching 1 pod", `"about": "pod gpu-7"`},
		"status":   {"NAMESPACE NAME MODE", "ml/llm: managed", "name: llm"},
		"request":  {"4 × {CPU 1} 2 × {GPU 1}", "3 × {CPU 2, GPU 1}", "There is no request without an id; `autoscaler requests` lists those with one.", "train-7 anonymous 4 × {GPU 1} Waiting", "request train-7 of ml/llm deleted"},
		"requests": {"RAYCLUSTER ID OWNER", "ml/llm serve ann", `"id": "serve"`},
		"freeze":   {"ml/llm is frozen", "ml/llm is not frozen"},
		"unfreeze": {"ml/llm is not frozen"},
		"give-back": {"only shown: nothing is given back", "llm-h100-1 h100 8 gone idle", "8 of 8 GPUs are given back",
			"ml/llm: the reservation is ended"},
		"manage":   {"ml/llm is annotated heliostat.dev/mode: managed", "ml/llm is annotated heliostat.dev/mode: shadow"},
		"unmanage": {"ml/llm is annotated heliostat.dev/mode: shadow"},
		"shadow":   {"Heliostat scales this RayCluster itself"},
		"costs": {"RAYCLUSTER GPU-HOURS COST USD USED IDLE ml/llm ", " USD in 6", "NAMESPACE OWNER", "ml RayJob/nightly",
			"namespace,cluster,group,owner,job,cause,why,", ",,,,,idle,minimum,", "ml/llm: 1 of 2 GPUs are idle; idle GPUs have cost ", "; minReplicas keeps them kubectl edit raycluster llm -n ml"},
		"version":   {"client: heliostat", "server: heliostat", "client: "},
		"doctor":    {"Nothing found. Looked at 6 Nodes, 1 RayCluster."},
		"nodepools": {"NODE POOL KIND", "mig-0"},
		"gpus":      {noDriver},
		"agent":     {noDriver},
		"serve":     {`"msg":"API server found"`, "msg=\"API server found\""},
	}
	for _, sub := range commands() {
		name := sub.Name()
		if sub.Example == "" || len(wanted[name]) == 0 {
			t.Errorf("%s has no example that is run", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			out := runExample(t, self, sub.Example)
			for _, want := range wanted[name] {
				if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
					t.Errorf("want in it %q, got\n%s", want, out)
				}
			}
		})
	}
}

// kubectlSays is the environment variable with the path of the file that kubectl prints.
const kubectlSays = "KUBECTL_SAYS"

// programs are scripts in the PATH of the examples. For serve, the script stops the server after it has started, and
// prints its log.
var programs = map[string]string{
	"autoscaler": `#!/bin/sh
export ` + asAutoscaler + `=1
[ "$1" = serve ] || exec "$SELF" "$@"
rm -f log
"$SELF" "$@" 2> log & pid=$!
until grep -qs "API server found" log || ! kill -0 $pid; do sleep 0.1; done
kill $pid || true; wait $pid; code=$?
cat log; exit $code`,
	"kubectl": `#!/bin/sh
[ "$2" = node ] && exec cat "$` + kubectlSays + `-$3" # of one name
exec cat "$` + kubectlSays + `"`,
}

// runExample runs the example lines of a help text. It omits lines that watch, because they would not end. Lines that
// need a driver fail.
func runExample(t *testing.T, self, example string) string {
	t.Helper()
	path := t.TempDir()
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o700); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
	}
	shell := exec.CommandContext(t.Context(), "sh", "-e")
	shell.Dir, shell.Stdin = t.TempDir(), strings.NewReader(example+"\n")
	shell.Env = append(os.Environ(), "SELF="+self, "PATH="+path+":"+os.Getenv("PATH"))
	out, err := shell.CombinedOutput()
	if err != nil && !strings.Contains(string(out), noDriver) {
		t.Errorf("%v\n%s", err, out)
	}
	return string(out)
}

// exampleAPIServer starts an API server with the nodes of a dev cluster and one RayCluster, ml/llm. It returns a
// kubeconfig.
func exampleAPIServer(t *testing.T) string {
	t.Helper()
	nodes, clusters := exampleObjects(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		items, known := map[string][]any{"/api/v1/nodes": nodes, "/apis/ray.io/v1/namespaces/ml/rayclusters": clusters}[r.URL.Path]
		if !known {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return kubeconfigOf(t, server.URL)
}

// exampleObjects returns the nodes of a dev cluster, and the example RayCluster as ml/llm.
func exampleObjects(t *testing.T) (nodes, clusters []any) {
	t.Helper()
	var list struct{ Items []any }
	if err := json.Unmarshal([]byte(devClusterNodes(t)), &list); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../deploy/examples/fleet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cluster map[string]any
	if err := yaml.Unmarshal(text, &cluster); err != nil {
		t.Fatal(err)
	}
	cluster["metadata"].(map[string]any)["namespace"] = "ml"
	return list.Items, []any{cluster}
}

func writeObjects(t *testing.T, name string, objects ...any) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheExampleOfAPlanFromARayClusterIsWhatIsPrinted(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/plan.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, found := strings.Cut(string(page), "```json\n")
	snapshot, rest, closed := strings.Cut(example, "```\n```text\n")
	want, _, ended := strings.Cut(rest, "```\n")
	if !found || !closed || !ended {
		t.Fatal("the page has no example")
	}
	code, out, errOut := command(t, snapshot, "autoscaler", "plan", "--snapshot", "-", "-o", "text")
	if diff := cmp.Diff(want, out); code != cli.ExitOK || diff != "" {
		t.Errorf("exit %d %s (-page +printed):\n%s", code, errOut, diff)
	}
}
