package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// poolExamples returns the examples of the file of --pools in the documentation, by page.
func poolExamples(t *testing.T) map[string][]string {
	t.Helper()
	found, block := map[string][]string{}, regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	err := filepath.WalkDir("../../docs", func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range block.FindAllStringSubmatch(string(text), -1) {
			if regexp.MustCompile(`(?m)^pools:$`).MatchString(match[1]) {
				found[path] = append(found[path], match[1])
			}
		}
		return err
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%d pages with pools, %v", len(found), err)
	}
	return found
}

// A group that selects a pool of an example by the pool's own label, and requests a device of each kind, is planned up to
// the bound of that pool.
func TestExamplesOfPoolsBoundTheGroupsThatSelectThem(t *testing.T) {
	tried := 0
	for page, examples := range poolExamples(t) {
		for _, text := range examples {
			config, err := decode.ReadPools(strings.NewReader(text))
			if err != nil {
				t.Fatalf("%s: %v\n%s", page, err, text)
			}
			for _, spec := range config.Pools {
				if spec.Shape == nil {
					continue
				}
				tried++
				desired, want := desiredOfPool(t, text, spec)
				if desired != want {
					t.Errorf("%s: pool %s gets %d pods, want %d", page, spec.Name, desired, want)
				}
			}
		}
	}
	if tried < 2 {
		t.Errorf("only %d shapes", tried)
	}
}

// demandedGPUs is more than any pool of an example holds.
const demandedGPUs = 5000

// desiredOfPool plans a group for the pool, and returns how many pods it gets, and how many it should get: as many as the
// pool may hold, or all that are demanded if it has no maximum.
func desiredOfPool(t *testing.T, text string, spec landing.Spec) (desired, want int64) {
	t.Helper()
	selector := object{"kubernetes.azure.com/agentpool": spec.Name}
	for key, value := range spec.Shape.Labels {
		selector[key] = value
	}
	limits, each := object{"cpu": "1", "memory": "1Gi"}, int64(1<<40)
	for name, amount := range spec.Allocatable {
		if strings.Contains(name, "/") {
			limits[name] = "1"
			each = min(each, int64(amount/raydemand.One))
		}
	}
	for name, most := range map[string]raydemand.Amount{"cpu": raydemand.One, "memory": raydemand.Whole(1 << 30), "pods": raydemand.One} {
		if have, known := spec.Allocatable[name]; known {
			each = min(each, int64(have/most))
		}
	}
	var example object
	must(t, yaml.Unmarshal([]byte(text), &example))
	worker := object{"name": "ray", "image": "rayproject/ray:2.60.0", "resources": object{"limits": limits}}
	cluster := object{"kind": "RayCluster", "metadata": object{"name": "c", "namespace": "n"}, "spec": object{
		"headGroupSpec": object{"template": object{"spec": object{"containers": []any{object{"name": "ray"}}}}},
		"workerGroupSpecs": []any{object{"groupName": "g", "maxReplicas": demandedGPUs,
			"rayStartParams": object{"num-gpus": "1"}, "template": object{"spec": object{
				"nodeSelector": selector, "tolerations": []any{object{"operator": "Exists"}}, "containers": []any{worker}}}}},
	}}
	snapshot, err := json.Marshal(object{"rayCluster": cluster, "kubeNodes": []any{}, "pools": example["pools"],
		"pendingRequests": []any{object{"resources": object{"GPU": 1}, "count": demandedGPUs}}})
	must(t, err)
	plan := struct{ Groups []struct{ Desired int64 } }{}
	_, out, errOut := command(t, string(snapshot), "autoscaler", "plan", "--snapshot", "-")
	if err := json.Unmarshal([]byte(out), &plan); err != nil || len(plan.Groups) != 1 {
		t.Fatalf("%v: %s%s", err, out, errOut)
	}
	if spec.MaxNodes == nil {
		return plan.Groups[0].Desired, demandedGPUs
	}
	return plan.Groups[0].Desired, *spec.MaxNodes * each
}
