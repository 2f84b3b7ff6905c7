package main

import (
	"encoding/json"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// podOn returns a pod that requests GPUs of a node, with more metadata.
func podOn(node, metadata, gpus string) string {
	return `{"metadata": {"name": "p"` + metadata + `}, "spec": {"nodeName": "` + node + `", "containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": "` + gpus + `"}}}]}}`
}

// TestAPlanSaysOnceThatItCountsNodesAsEmpty checks the finding: only for nodes without pods on which a group fits.
func TestAPlanSaysOnceThatItCountsNodesAsEmpty(t *testing.T) {
	file := func(limits, more string) string {
		return oneGroup(limits, `{}`, `{"nvidia.com/gpu": "8", "pods": "110"}`, more)
	}
	const fits, fitsNot = `{"nvidia.com/gpu": "2"}`, `{"nvidia.com/gpu": "9"}`
	for name, test := range map[string]struct {
		file string
		want int
	}{
		"nodes without pods":         {file(fits, ""), 1},
		"nodes with pods":            {file(fits, `, "kubePods": []`), 0},
		"no node for the group":      {file(fitsNot, ""), 0},
		"a group that may not grow":  {strings.Replace(file(fits, ""), `"maxReplicas": 9`, `"maxReplicas": 0`, 1), 0},
		"a RayCluster without nodes": {strings.Replace(file(fits, ""), `"kubeNodes"`, `"note"`, 1), 0},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := command(t, test.file, "autoscaler", "plan", "--snapshot", "-")
			var plan struct{ Findings []raydemand.Finding }
			if err := json.Unmarshal([]byte(out), &plan); err != nil || code != cli.ExitOK {
				t.Fatalf("exit %d, %v: %s%s", code, err, errOut, out)
			}
			count := 0
			for _, f := range plan.Findings {
				if f.Code == "pods-unknown" {
					count++
				}
			}
			if count != test.want {
				t.Errorf("%d findings pods-unknown, want %d: %s", count, test.want, out)
			}
		})
	}
}

func TestANodeThatSaysNothingOfPodsTakesTheKubeletsDefault(t *testing.T) {
	for allocatable, want := range map[string]int{ // one pod is the head
		`{"cpu": "64", "memory": "64Gi", "pods": "200"}`: 199,
		`{"cpu": "64", "memory": "64Gi"}`:                109,
	} {
		file := oneGroup(`{"cpu": "10m", "memory": "1Mi"}`, `{}`, allocatable, `, "kubePods": [], "complete": true,
			"pendingRequests": [{"resources": {"CPU": 1}, "count": 300}]`)
		plan := planOf(t, strings.Replace(file, `"maxReplicas": 9`, `"maxReplicas": 900`, 1))
		if plan.Launch["g"] != want {
			t.Errorf("%s: launches %v, want %d", allocatable, plan.Launch, want)
		}
	}
}

func TestKeysOfTopologyLabelsAreNamesOfLabels(t *testing.T) {
	for labels, want := range map[string]string{
		`{"nvidia.com/gpu.clique": "ray.io/gpu-domain"}`: "",
		`{"a b": "ray.io/gpu-domain"}`:                   `"a b" is not a label's name`,
		`{"nvidia.com/gpu.clique": "a/b/c"}`:             `"a/b/c" is not a label's name`,
	} {
		file := oneGroup(`{"cpu": "1"}`, `{}`, `{"cpu": "4", "pods": "110"}`, `, "kubePods": [], "topologyLabels": `+labels)
		code, out, errOut := command(t, file, "autoscaler", "plan", "--snapshot", "-")
		if (code == cli.ExitOK) != (want == "") || want != "" && !strings.Contains(errOut, "topologyLabels: "+want) {
			t.Errorf("%s: exit %d, %s%s", labels, code, errOut, out)
		}
	}
}
