package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// nodesDir holds nodes as people posted them; what is true of each is tested beside the code that reads them.
const nodesDir = "../../pkg/nodepool/kube/testdata/nodes"

func nodeFile(name string) string { return filepath.Join(nodesDir, name+".yaml") }

// Programs read the JSON: every key is always there, and null stands for what cannot be known.
func TestNodepoolsWritesEveryRecordedNodeWithAllKeys(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(nodesDir, "*.yaml"))
	if err != nil || len(files) != 49 {
		t.Fatalf("found %d nodes, %v; want 49", len(files), err)
	}
	code, out, errOut := command(t, "", append([]string{"autoscaler", "nodepools", "-o", "json", "-f"}, files...)...)
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	var report struct{ Nodes, Pools []map[string]any }
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Nodes) != 49 || len(report.Pools) != 6 {
		t.Errorf("%d nodes and %d pools, want 49 and 6", len(report.Nodes), len(report.Pools))
	}
	kinds := []string{"whole", "mig", "time-sliced", "mps", "gpu-mem", "vgpu", "unknown"}
	for _, node := range report.Nodes {
		for _, key := range []string{"name", "pool", "product", "cards", "kind", "units", "memoryMiB", "isolation", "problems"} {
			if _, set := node[key]; !set {
				t.Errorf("%s has no %s", node["name"], key)
			}
		}
		if kind, _ := node["kind"].(string); !slices.Contains(kinds, kind) {
			t.Errorf("%s is of kind %v", node["name"], node["kind"])
		}
		if _, isList := node["problems"].([]any); !isList {
			t.Errorf("%s: problems are %v", node["name"], node["problems"])
		}
	}
}

func TestNodepoolsShowsNodesPoolsAndProblemsAsTables(t *testing.T) {
	code, out, errOut := command(t, "", "autoscaler", "nodepools", "-f", nodeFile("eks-karpenter-p4d"), nodeFile("mps-eight-cards"), "-f", nodeFile("ack-p4-cordoned"))
	want := `NODE                                           POOL                               KIND   PRODUCT   CARDS  UNITS              MIB PER UNIT         ISOLATION
alihn1-qas-k8s-w31212                          np496f712af36a449db6e3e148a9308190  whole  Tesla-P4  1      nvidia.com/gpu=1   nvidia.com/gpu=7611  hardware
ip-10-0-5-152.ap-northeast-2.compute.internal  gpu                                whole  a100      8      nvidia.com/gpu=8   -                    hardware
miaohua-a-79                                   -                                  mps    -         8      nvidia.com/gpu=32  -                    limit

POOL                               PROVIDER   NODES  KIND   PRODUCT   CARDS  UNITS             ISOLATION  SPOT   TAINTS
gpu                                karpenter  1      whole  a100      8      nvidia.com/gpu=8  hardware   true   nvidia.com/gpu=present:NoSchedule
np496f712af36a449db6e3e148a9308190  ack        1      whole  Tesla-P4  1      nvidia.com/gpu=1  hardware   false  -

PROBLEMS
alihn1-qas-k8s-w31212: cordoned: spec.unschedulable is set
`
	if diff := cmp.Diff(squeezed(want), squeezed(out)); code != exitOK || diff != "" {
		t.Errorf("exit %d %s (-want +got):\n%s", code, errOut, diff)
	}
}

// squeezed leaves one space where columns are aligned by many.
func squeezed(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

func TestNodepoolsTakesListsFromStandardInputAndWhatIsConfigured(t *testing.T) {
	list := `{"apiVersion": "v1", "kind": "List", "items": [
		{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "not-a-node"}},
		{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"corp.example/pool": "blue"}}, "status": {"allocatable": {"cpu": "8", "corp.example/half-gpu": "4"}}}]}`
	code, out, errOut := command(t, list, "autoscaler", "nodepools", "-o", "json", "-f", "-", "--pool-label", "corp.example/pool", "--resource", "corp.example/half-gpu=time-sliced")
	var report struct {
		Nodes []struct {
			Name, Pool, Kind, Isolation string
			Units                       map[string]int
			Problems                    []string
		}
		Pools []struct{ Name, Provider string }
	}
	if err := json.Unmarshal([]byte(out), &report); code != exitOK || err != nil {
		t.Fatalf("exit %d %s: %v", code, errOut, err)
	}
	got := fmt.Sprint(report)
	if want := "{[{n1 blue time-sliced none map[corp.example/half-gpu:4] []}] [{blue configured}]}"; got != want {
		t.Errorf("read %s, want %s", got, want)
	}
}

func TestNodepoolsAsksTheAPIServerPageByPage(t *testing.T) {
	const node = `{"metadata": {"name": %q}, "status": {"allocatable": {"nvidia.com/gpu": "1"}}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		name, next := "first", "more"
		if r.URL.Query().Get("continue") == next {
			name, next = "second", ""
		}
		if r.URL.Path != "/api/v1/nodes" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, `{"kind": "NodeList", "apiVersion": "v1", "metadata": {"continue": %q}, "items": [`+node+`]}`, next, name)
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: s, cluster: {server: %s}}]\ncontexts: [{name: c, context: {cluster: s}}]\n", server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := command(t, "", "autoscaler", "nodepools", "--kubeconfig", kubeconfig)
	want := "NODE POOL KIND PRODUCT CARDS UNITS MIB PER UNIT ISOLATION\nfirst - whole - 1 nvidia.com/gpu=1 - hardware\nsecond - whole - 1 nvidia.com/gpu=1 - hardware"
	if diff := cmp.Diff(want, squeezed(out)); code != exitOK || diff != "" {
		t.Errorf("exit %d %s (-want +got):\n%s", code, errOut, diff)
	}
	server.Close()
	if code, _, errOut := command(t, "", "autoscaler", "nodepools", "--kubeconfig", kubeconfig); code != exitFailed || !strings.Contains(errOut, "listing nodes: ") {
		t.Errorf("without a server: exit %d, %s", code, errOut)
	}
}

func TestNodepoolsNamesTheFileAndTheNodeThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		stdin string
		argv  []string
		want  string
	}{
		"output":       {"", []string{"-o", "yaml"}, `autoscaler: --output "yaml": want table or json`},
		"file":         {"", []string{"-f", "no/such.yaml"}, "autoscaler: opening nodes: open no/such.yaml: no such file or directory"},
		"argument":     {"", []string{"nodes.yaml"}, `autoscaler: unexpected argument "nodes.yaml"; files follow -f`},
		"both sources": {"", []string{"-f", "-", "--kubeconfig", "x"}, "autoscaler: want one of -f and --kubeconfig"},
		"resource": {"", []string{"-f", "-", "--resource", "gpu=whole"},
			`autoscaler: --resource "gpu=whole": want a name such as example.com/gpu, =, and one of whole, mig, time-sliced, mps, vgpu`},
		"no object": {"- 1\n", []string{"-f", "-"}, "autoscaler: reading nodes from -: reading document 1: want a Kubernetes object: "},
		"no kind":   {"kind: Node\n---\n{}\n", []string{"-f", "-"}, "autoscaler: reading nodes from -: reading document 2: kind is missing: want a Kubernetes object"},
		"quantity": {"kind: NodeList\nitems:\n- kind: Node\n- {kind: Node, metadata: {name: n7}, status: {allocatable: {nvidia.com/gpu: eight}}}\n", []string{"-f", "-"},
			"autoscaler: reading nodes from -: reading document 1: items[1]: node n7: quantities must match the regular expression"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := command(t, c.stdin, append([]string{"autoscaler", "nodepools"}, c.argv...)...)
			if code != exitBadInput || out != "" || !strings.HasPrefix(errOut, c.want) {
				t.Errorf("exit %d with output %q: %s\nwant %s", code, out, errOut, c.want)
			}
		})
	}
}
