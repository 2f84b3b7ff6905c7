package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/planner"
)

// TestNothingIsFoundInTheExamplesOnTheNodesOfTheDevCluster checks the first experience of new users: doctor must report
// no findings for the examples on the nodes of the dev cluster.
func TestNothingIsFoundInTheExamplesOnTheNodesOfTheDevCluster(t *testing.T) {
	nodes := fileOf(t, devClusterNodes(t))
	examples, err := filepath.Glob("../../deploy/examples/*.yaml")
	if err != nil || len(examples) == 0 {
		t.Fatalf("%d examples, %v", len(examples), err)
	}
	for _, example := range append(examples, "../../test/demo/raycluster.yaml") {
		code, out, errOut := command(t, "", "autoscaler", "doctor", "-f", example, "-f", nodes)
		if want := "Nothing found. Looked at 6 Nodes, 1 RayCluster.\n"; code != cli.ExitOK || out != want {
			t.Errorf("%s: exit %d\n%s%s", example, code, out, errOut)
		}
		text, err := os.ReadFile(example)
		must(t, err)
		manifest, err := yaml.YAMLToJSON(text)
		must(t, err)
		// status also shows the findings that need only the manifest.
		_, out, _ = command(t, `{"rayCluster": `+string(manifest)+`}`, "autoscaler", "plan", "--snapshot", "-")
		var plan planner.Plan
		if err := json.Unmarshal([]byte(out), &plan); err != nil || len(plan.Findings) > 0 {
			t.Errorf("%s: %v, findings %+v", example, err, plan.Findings)
		}
	}
}

// devClusterNodes returns the nodes of a dev cluster as kubectl prints them.
func devClusterNodes(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../test/devcluster/nodes.yaml")
	must(t, err)
	var specs []struct {
		Name     string            `json:"name"`
		Labels   map[string]string `json:"labels"`
		Taints   []any             `json:"taints"`
		Capacity map[string]string `json:"capacity"`
	}
	must(t, yaml.Unmarshal(text, &specs))
	var items []any
	for _, s := range specs {
		capacity := map[string]string{"pods": "110"}
		for name, amount := range s.Capacity {
			capacity[name] = amount
		}
		items = append(items, map[string]any{
			"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": s.Name, "labels": s.Labels},
			"spec": map[string]any{"taints": s.Taints},
			"status": map[string]any{"capacity": capacity, "allocatable": capacity,
				"conditions": []any{map[string]string{"type": "Ready", "status": "True"}}},
		})
	}
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	must(t, err)
	return string(list)
}
