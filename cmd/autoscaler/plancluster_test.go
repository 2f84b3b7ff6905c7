package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestABadNodeOrPoolInASnapshotIsNamed(t *testing.T) {
	const cluster = `"rayCluster": {"kind": "RayCluster", "spec": {"workerGroupSpecs": []}}`
	for text, want := range map[string]string{
		cluster + `, "kubeNodes": 7`:                                                                  `standard input: kubeNodes: `,
		cluster + `, "kubeNodes": [{"kind": "Pod"}]`:                                                  `standard input: kubeNodes[0]: kind is Pod: want Node objects`,
		cluster + `, "kubeNodes": [null]`:                                                             `standard input: kubeNodes[0]: kind is <nil>: want Node objects`,
		cluster + `, "kubeNodes": [{"status": {"allocatable": "nvidia.com/gpu"}}]`:                    `standard input: kubeNodes[0]: reading node: `,
		cluster + `, "pools": [{"name": "a", "maxNodes": -1}]`:                                        `standard input: pools[0] "a": maxNodes -1: want 0 or more`,
		cluster + `, "pools": [{"name": "a", "shape": {"allocatable": {"cpu": "4 cores"}}}]`:          `standard input: pools[0] "a": shape: allocatable: `,
		cluster + `, "pools": {}`:                                                                     `standard input: pools: {}: want a list`,
		`"groups": [], "kubeNodes": []`:                                                               `standard input: rayCluster: missing: want a RayCluster manifest beside kubeNodes or pools`,
		`"groups": [], "pools": [{"name": "a"}]`:                                                      `standard input: rayCluster: missing: want a RayCluster manifest beside kubeNodes or pools`,
		cluster + `, "pendingRequests": [{"resources": {}, "count": 1, "slice": {"memory": "10GB"}}]`: `standard input: pendingRequests[0].slice.memory: "10GB": want a Kubernetes quantity`,
	} {
		var out, errOut bytes.Buffer
		code := run(t.Context(), []string{"autoscaler", "plan", "--snapshot", "-"}, strings.NewReader("{"+text+"}"), &out, &errOut)
		if code != exitBadInput || !strings.Contains(errOut.String(), want) {
			t.Errorf("{%s}\nexit %d: %s\nwant … %s", text, code, errOut.String(), want)
		}
	}
}

func TestNodesAreReadAsKubectlPrintsThem(t *testing.T) {
	const node = `{"kind": "Node", "metadata": {"name": "n"}}`
	for _, text := range []string{`[` + node + `]`, `{"kind": "List", "items": [` + node + `]}`, `{"kind": "NodeList", "items": [{"metadata": {"name": "n"}}]}`, node} {
		items, err := itemsOf([]byte(text))
		if err != nil || len(items) != 1 {
			t.Errorf("%s: %v, %v", text, items, err)
		}
	}
}

// One bad amount would otherwise refuse everything, and name neither field nor value.
func TestAnAmountOfANodeThatIsNoneIsToldByPlanAndTheRestIsPlanned(t *testing.T) {
	const text = `{"rayCluster": {"kind": "RayCluster", "metadata": {"name": "c", "namespace": "n"}, "spec": {"workerGroupSpecs": []}},
		"kubeNodes": [{"metadata": {"name": "bad"}, "status": {"allocatable": {"nvidia.com/gpu": "eight"}}}]}`
	code, out, errOut := command(t, text, "autoscaler", "plan", "--snapshot", "-")
	if want := `status.allocatable[nvidia.com/gpu] is \"eight\": want a Kubernetes quantity`; code != exitOK || !strings.Contains(out, want) {
		t.Errorf("exit %d: %s\n%s\nwant %s", code, errOut, out, want)
	}
}

func TestAPoolThatIsOfNoNodeIsFound(t *testing.T) {
	const file = `{"rayCluster": {"kind": "RayCluster", "spec": {"workerGroupSpecs": []}}, "pools": [{"name": "npp", "maxNodes": 1}],
		"kubeNodes": [{"metadata": {"name": "n", "labels": {"cloud.google.com/gke-nodepool": "POOL"}}}]}`
	for pool, want := range map[string]bool{"np": true, "npp": false} {
		var out, errOut bytes.Buffer
		run(t.Context(), []string{"autoscaler", "plan", "--snapshot", "-"}, strings.NewReader(strings.Replace(file, "POOL", pool, 1)), &out, &errOut)
		if got := strings.Contains(out.String(), "pool-without-nodes"); got != want {
			t.Errorf("nodes of pool %s: found %t, want %t\n%s%s", pool, got, want, out.String(), errOut.String())
		}
	}
}
