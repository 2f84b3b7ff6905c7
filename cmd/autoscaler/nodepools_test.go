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

	"heliostat.dev/heliostat/internal/cli"
)

// nodesDir is the directory of nodes that users have posted. The tests of decode check the values of each node.
const nodesDir = "../../pkg/nodepool/kube/decode/testdata/nodes"

func nodeFile(name string) string { return filepath.Join(nodesDir, name+".yaml") }

// TestNodepoolsWritesEveryRecordedNodeWithAllKeys checks that every key is always present, because programs read the
// JSON. An unknown value is null.
func TestNodepoolsWritesEveryRecordedNodeWithAllKeys(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(nodesDir, "*.yaml"))
	if err != nil || len(files) != 49 {
		t.Fatalf("found %d nodes, %v; want 49", len(files), err)
	}
	type pools struct{ Nodes, Pools []map[string]any }
	var report pools
	for _, file := range files { // one by one, because some nodes have the same name
		code, out, errOut := command(t, "", "autoscaler", "nodepools", "-o", "json", "-f", file)
		if code != cli.ExitOK {
			t.Fatalf("exit %d: %s", code, errOut)
		}
		var of pools
		must(t, json.Unmarshal([]byte(out), &of))
		report.Nodes, report.Pools = append(report.Nodes, of.Nodes...), append(report.Pools, of.Pools...)
	}
	if len(report.Nodes) != 49 || len(report.Pools) != 6 {
		t.Errorf("%d nodes and %d pools, want 49 and 6", len(report.Nodes), len(report.Pools))
	}
	kinds := []string{"whole", "whole (unproven)", "mig", "time-sliced", "mps", "gpu-mem", "vgpu", "unknown"}
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
	want := `NODE POOL KIND PRODUCT CARDS ISOLATION FREE/UNITS
alihn1-qas-k8s-w31212 np496f712af36a449db6e3e148a9308190 whole Tesla-P4 1 hardware nvidia.com/gpu -/1
ip-10-0-5-152.ap-northeast-2.compute.internal gpu whole a100 8 hardware nvidia.com/gpu -/8
miaohua-a-79 - mps - 8 limit nvidia.com/gpu -/32

POOL NODES MIN MAX KIND PRODUCT CARDS PRICE SPOT FREE/UNITS
gpu 1 - - whole a100 8 - yes nvidia.com/gpu -/8
np496f712af36a449db6e3e148a9308190 1 - - whole Tesla-P4 1 - no nvidia.com/gpu -/1

PROBLEMS
alihn1-qas-k8s-w31212: cordoned: spec.unschedulable is set
`
	if diff := cmp.Diff(squeezed(want), squeezed(out)); code != cli.ExitOK || diff != "" {
		t.Errorf("exit %d %s (-want +got):\n%s", code, errOut, diff)
	}
	_, wide, _ := command(t, "", "autoscaler", "nodepools", "-o", "wide", "-f", nodeFile("eks-karpenter-p4d"), nodeFile("ack-p4-cordoned"))
	for _, want := range []string{
		"NODE POOL KIND PRODUCT CARDS ISOLATION FREE/UNITS MIB PER UNIT FREE PER CARD\nalihn1-qas-k8s-w31212 np496f712af36a449db6e3e148a9308190 whole",
		"1 hardware nvidia.com/gpu -/1 nvidia.com/gpu=7611 -\n",
		"PRICE SPOT FREE/UNITS PROVIDER ISOLATION TAINTS\ngpu 1 - - whole a100 8 - yes nvidia.com/gpu -/8 karpenter hardware nvidia.com/gpu=present:NoSchedule\n",
	} {
		if !strings.Contains(squeezed(wide)+"\n", want) {
			t.Errorf("-o wide: want in it %q, got\n%s", want, wide)
		}
	}
}

// squeezed replaces the spaces that align columns with a single space.
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
	if err := json.Unmarshal([]byte(out), &report); code != cli.ExitOK || err != nil {
		t.Fatalf("exit %d %s: %v", code, errOut, err)
	}
	got := fmt.Sprint(report)
	if want := "{[{n1 blue time-sliced none map[corp.example/half-gpu:4] []}] [{blue configured}]}"; got != want {
		t.Errorf("read %s, want %s", got, want)
	}
}

func TestNodepoolsSaysWhichFlagTellsOfAResourceThatIsNotKnown(t *testing.T) {
	const node = `{"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"corp.example/half-gpu": "4"}, "conditions": [{"type": "Ready", "status": "False"}]}}`
	code, out, errOut := command(t, node, "autoscaler", "nodepools", "-f", "-", "-o", "text")
	_, problems, _ := strings.Cut(out, "\nPROBLEMS\n")
	lines := strings.Split(problems, "\n")
	if code != cli.ExitOK || len(lines) != 6 || !strings.HasPrefix(lines[0], "n1: resource-not-known: ") || lines[2] != "n1: not-ready: Ready is False" ||
		!strings.HasPrefix(lines[3], "--resource NAME=KIND ") {
		t.Errorf("exit %d %s:\n%s", code, errOut, out)
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
	kubeconfig := kubeconfigOf(t, server.URL)
	code, out, errOut := command(t, "", "autoscaler", "nodepools", "--kubeconfig", kubeconfig)
	want := "NODE POOL KIND PRODUCT CARDS ISOLATION FREE/UNITS\nfirst - whole (unproven) - - unknown nvidia.com/gpu -/1\nsecond - whole (unproven) - - unknown nvidia.com/gpu -/1"
	if diff := cmp.Diff(want, squeezed(out)); code != cli.ExitOK || diff != "" {
		t.Errorf("exit %d %s (-want +got):\n%s", code, errOut, diff)
	}
	server.Close()
	if code, _, errOut := command(t, "", "autoscaler", "nodepools", "--kubeconfig", kubeconfig); code != cli.ExitFailed || !strings.Contains(errOut, "listing nodes: ") {
		t.Errorf("without a server: exit %d, %s", code, errOut)
	}
}

func TestNodepoolsNamesTheFileAndTheNodeThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		stdin string
		argv  []string
		want  string
	}{
		"no node":      {"kind: ConfigMap\n", []string{"-f", "-"}, "autoscaler: no node in -: want what `kubectl get nodes -o yaml` prints"},
		"nothing":      {"", []string{"-f", "-"}, "autoscaler: no node in -: "},
		"output":       {"", []string{"-o", "xml"}, `autoscaler: invalid argument "xml" for "-o, --output" flag: want table, wide, json or yaml`},
		"file":         {"", []string{"-f", "no/such.yaml"}, "autoscaler: opening nodes: open no/such.yaml: no such file or directory"},
		"argument":     {"", []string{"nodes.yaml"}, `autoscaler: unexpected argument "nodes.yaml"; files follow -f`},
		"both sources": {"", []string{"-f", "-", "--kubeconfig", "x"}, "autoscaler: if any flags in the group [filename kubeconfig] are set none"},
		"resource": {"", []string{"-f", "-", "--resource", "gpu=whole"},
			`autoscaler: --resource "gpu=whole": want a name such as example.com/gpu, =, and one of whole, mig, time-sliced, mps, gpu-mem:MIB, vgpu`},
		"profile":   {"", []string{"-f", "-", "--resource", "nvidia.com/mig-small=mig:small"}, `autoscaler: --resource "nvidia.com/mig-small=mig:small": `},
		"no object": {"- 1\n", []string{"-f", "-"}, "autoscaler: reading nodes from standard input: reading document 1: want a Kubernetes object: "},
		"no kind":   {"kind: Node\n---\n{}\n", []string{"-f", "-"}, "autoscaler: reading nodes from standard input: reading document 2: kind is missing: want a Kubernetes object"},
		"taints": {"kind: NodeList\nitems:\n- kind: Node\n- {kind: Node, metadata: {name: n7}, spec: {taints: 3}}\n", []string{"-f", "-"},
			"autoscaler: reading nodes from standard input: reading document 1: items[1]: node n7: "},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := command(t, c.stdin, append([]string{"autoscaler", "nodepools"}, c.argv...)...)
			if code != cli.ExitBadInput || out != "" || !strings.HasPrefix(errOut, c.want) {
				t.Errorf("exit %d with output %q: %s\nwant %s", code, out, errOut, c.want)
			}
		})
	}
}

const freeManifest = `
kind: Node
metadata: {name: gpu-0, labels: {cloud.google.com/gke-nodepool: shared, ack.node.gpu.schedule: cgpu, aliyun.accelerator/nvidia_count: "4"}}
status: {allocatable: {aliyun.com/gpu-mem: "60"}}
---
kind: Pod
metadata: {name: one, namespace: a, annotations: {scheduler.framework.gpushare.allocation: '{"0":{"1":9}}'}}
spec: {nodeName: gpu-0, containers: [{resources: {limits: {aliyun.com/gpu-mem: 9}}}]}
---
kind: Pod
metadata: {name: ended, namespace: a}
spec: {nodeName: gpu-0, containers: [{resources: {limits: {aliyun.com/gpu-mem: 9}}}]}
status: {phase: Succeeded}
---
kind: ConfigMap
metadata: {name: cluster-autoscaler-status}
data:
  status: |
    time: 2026-01-01 00:00:00 UTC
    autoscalerStatus: Running
    nodeGroups:
    - name: https://www.googleapis.com/compute/v1/projects/p/zones/z/instanceGroups/gke-c-shared-0a1b2c3d-grp
      health: {status: Healthy, cloudProviderTarget: 1, minSize: 0, maxSize: 6}
`

const poolsManifest = `
pools:
- {name: shared, price: 1.2}
- name: a100
  minNodes: 0
  maxNodes: 2
  spot: true
  shape:
    allocatable: {cpu: 96, nvidia.com/mig-1g.5gb: 56}
    labels: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB, nvidia.com/gpu.count: "8"}
    taints: ["sku=gpu:NoSchedule"]
`

func TestNodepoolsShowsWhatIsFreeOnEachCardAndHowFarPoolsMayGrow(t *testing.T) {
	pools := filepath.Join(t.TempDir(), "pools.yaml")
	must(t, os.WriteFile(pools, []byte(poolsManifest), 0o600))
	code, out, errOut := command(t, freeManifest, "autoscaler", "nodepools", "-o", "wide", "-f", "-", "--pools", pools)
	want := `NODE POOL KIND PRODUCT CARDS ISOLATION FREE/UNITS MIB PER UNIT FREE PER CARD
gpu-0 shared gpu-mem - 4 limit aliyun.com/gpu-mem 51/60 aliyun.com/gpu-mem=1024 15360MiB,6144MiB,15360MiB,15360MiB

POOL NODES MIN MAX KIND PRODUCT CARDS PRICE SPOT FREE/UNITS PROVIDER ISOLATION TAINTS
a100 0 0 2 mig NVIDIA-A100-SXM4-40GB 0 - yes - configured hardware sku=gpu:NoSchedule
shared 1 0 6 gpu-mem - 4 1.2 no aliyun.com/gpu-mem 51/60 gke limit -`
	if diff := cmp.Diff(want, squeezed(out)); code != cli.ExitOK || diff != "" {
		t.Errorf("exit %d %s (-want +got):\n%s", code, errOut, diff)
	}
	code, out, _ = command(t, freeManifest, "autoscaler", "nodepools", "-f", "-", "--pools", pools, "-o", "json")
	var report struct {
		Nodes []struct {
			Free    map[string]int
			PerCard []struct{ Index, FreeUnits int }
		}
		Pools []struct {
			Name    string
			Ceiling *struct {
				MaxNodes int
				Source   string
			}
			Shape *struct{ Units map[string]int }
		}
		Notes []string
	}
	if err := json.Unmarshal([]byte(out), &report); code != cli.ExitOK || err != nil || report.Notes == nil {
		t.Fatalf("exit %d, notes %v: %v", code, report.Notes, err)
	}
	if got := report.Nodes[0].PerCard[1]; got.Index != 1 || got.FreeUnits != 6 {
		t.Errorf("the second card is %+v", got)
	}
	if a100, shared := report.Pools[0], report.Pools[1]; a100.Shape == nil || a100.Shape.Units["nvidia.com/mig-1g.5gb"] != 56 || a100.Ceiling.Source != "configuration" ||
		shared.Ceiling.MaxNodes != 6 || shared.Ceiling.Source != "cluster-autoscaler" {
		t.Errorf("pools %+v", report.Pools)
	}
}

func TestNodepoolsGoesOnWithoutTheRightToReadPods(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/api/v1/nodes" {
			fmt.Fprint(w, `{"kind": "NodeList", "apiVersion": "v1", "items": [{"metadata": {"name": "n"}, "status": {"allocatable": {"nvidia.com/gpu": "1"}}}]}`)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "message": "no", "code": 403}`)
	}))
	defer server.Close()
	kubeconfig := kubeconfigOf(t, server.URL)
	code, out, errOut := command(t, "", "autoscaler", "nodepools", "--kubeconfig", kubeconfig)
	if code != cli.ExitOK || !strings.Contains(out, "Note: pods may not be read, so what of the GPUs is free is unknown: no\n") {
		t.Errorf("exit %d, %s\n%s", code, errOut, out)
	}
}

func TestNodepoolsNamesWhatIsWrongInTheDescriptionOfPools(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown field": {"pools: [{name: a, maxnode: 3}]", `pools[0].maxnode: unknown key: want maxNodes`},
		"field of none": {"pools: [{name: a}, {name: b, size: 3}]", `pools[1].size: unknown key: want one of name, minNodes, maxNodes, price, spot, shape`},
		"field of all":  {"pool: []", `pool: unknown key: want pools`},
		"of a shape":    {"pools: [{name: a, shape: {label: {}}}]", `pools[0].shape.label: unknown key: want labels`},
		"of a taint":    {"pools: [{name: a, shape: {taints: [{key: sku, efect: NoSchedule}]}}]", `pools[0].shape.taints[0].effect: missing: want NoSchedule, NoExecute or PreferNoSchedule`},
		"price as text": {`pools: [{name: a, price: "27.2"}]`, `pools[0].price: "27.2": want a number from 0 to 1000000000 without quotes`},
		"half a node":   {"pools: [{maxNodes: 1.5, name: a}]", `pools[0].maxNodes: 1.5: want a whole number`},
		"wrapped":       {"pools: {pools: [{name: a}]}", `pools: {"pools":[{"name":"a"}]}: want a list`},
		"no object":     {"pools: [a100]", `pools[0]: "a100": want an object {…}`},
		"of prices":     {`instanceTypes: {p4d.24xlarge: "32"}`, `instanceTypes["p4d.24xlarge"]: "32": want a number`},
		"no name":       {"pools: [{maxNodes: 3}]", `pools[0].name: missing: want the name of a pool`},
		"twice":         {"pools: [{name: a}, {name: a}]", `pools[1].name: "a": want a name that no other pool has`},
		"sizes":         {"pools: [{name: a, minNodes: 4, maxNodes: 3}]", `pools[0].minNodes: 4: want at most maxNodes, which is 3`},
		"negative":      {"pools: [{name: a, maxNodes: -1}]", `pools[0].maxNodes: -1: want a whole number from 0`},
		"price":         {"instanceTypes: {p4d.24xlarge: -1}", `instanceTypes["p4d.24xlarge"]: -1: want a number from 0 to`},
		"quantity":      {"pools: [{name: a, shape: {allocatable: {nvidia.com/gpu: null}}}]", `pools[0].shape.allocatable["nvidia.com/gpu"]: null: want a Kubernetes quantity of 0 or more`},
		"fraction":      {"pools: [{name: a, shape: {allocatable: {nvidia.com/gpu: 0.5}}}]", `pools[0].shape.allocatable["nvidia.com/gpu"]: 0.5: want a whole number`},
		"taint":         {"pools: [{name: a, shape: {taints: [sku=gpu]}}]", `pools[0].shape.taints[0]: "sku=gpu": want key=value:effect`},
	} {
		t.Run(name, func(t *testing.T) {
			pools := filepath.Join(t.TempDir(), "pools.yaml")
			must(t, os.WriteFile(pools, []byte(c.text), 0o600))
			code, out, errOut := command(t, "", "autoscaler", "nodepools", "-f", "-", "--pools", pools)
			if code != cli.ExitBadInput || out != "" || !strings.Contains(errOut, c.want) {
				t.Errorf("exit %d with output %q: %s\nwant %s", code, out, errOut, c.want)
			}
		})
	}
}

func TestServeRefusesADescriptionOfPoolsThatIsNone(t *testing.T) {
	code, _, errOut := command(t, "", "autoscaler", "serve", "--pools", "no/such.yaml")
	if want := "autoscaler: opening pools: open no/such.yaml"; code != cli.ExitBadInput || !strings.HasPrefix(errOut, want) {
		t.Errorf("exit %d: %s, want %s", code, errOut, want)
	}
}
