package doctor_test

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestABudgetBlocksIfItNeedsTheScaleOfARayCluster(t *testing.T) {
	selecting := func(labels map[string]any) func(*testing.T, []map[string]any) {
		return func(t *testing.T, all []map[string]any) {
			field(t, all[1], "/spec/selector", map[string]any{"matchLabels": labels})
		}
	}
	limit := func(name string, value any) func(*testing.T, []map[string]any) {
		return func(t *testing.T, all []map[string]any) {
			field(t, all[1], "/spec/maxUnavailable", nil)
			field(t, all[1], "/spec/"+name, value)
		}
	}
	status := func(reason string, pods int) func(*testing.T, []map[string]any) {
		return func(t *testing.T, all []map[string]any) {
			field(t, all[1], "/status", map[string]any{"expectedPods": pods, "conditions": []any{
				map[string]any{"type": "DisruptionAllowed", "status": "False", "reason": reason}}})
		}
	}
	const workers = "edit poddisruptionbudget ray -n ml"
	for name, c := range map[string]struct {
		change func(*testing.T, []map[string]any)
		want   raydemand.Severity
		fix    string
	}{
		"a number of heads":            {limit("maxUnavailable", 1), raydemand.Warning, `{"op":"remove","path":"/spec/maxUnavailable"},{"op":"add","path":"/spec/minAvailable","value":1}`},
		"a percentage":                 {limit("maxUnavailable", "50%"), raydemand.Warning, `"value":1}`},
		"a least percentage":           {limit("minAvailable", "50%"), raydemand.Warning, `{"op":"replace","path":"/spec/minAvailable","value":1}`},
		"a least number":               {limit("minAvailable", 1), "", ""},
		"nothing may be unavailable":   {limit("maxUnavailable", 0), raydemand.Info, ""},
		"everything must be available": {limit("minAvailable", "100%"), raydemand.Info, ""},
		"all pods of the namespace":    {selecting(map[string]any{}), raydemand.Warning, workers},
		"no selector":                  {func(t *testing.T, all []map[string]any) { field(t, all[1], "/spec/selector", nil) }, "", ""},
		"a label of no pod":            {selecting(map[string]any{"team": "a"}), "", ""},
		"the label is in the template": {func(t *testing.T, all []map[string]any) {
			selecting(map[string]any{"team": "a"})(t, all)
			field(t, all[0], "/spec/workerGroupSpecs/0/template/metadata", map[string]any{"labels": map[string]any{"team": "a"}})
		}, raydemand.Warning, workers},
		"KubeRay's label":    {selecting(map[string]any{"app.kubernetes.io/name": "kuberay"}), raydemand.Warning, workers},
		"a worker group":     {selecting(map[string]any{"ray.io/group": "a100"}), raydemand.Warning, workers},
		"the heads' group":   {selecting(map[string]any{"ray.io/group": "headgroup"}), raydemand.Warning, `"value":1}`},
		"another RayCluster": {selecting(map[string]any{"ray.io/cluster": "other"}), "", ""},
		"an expression": {func(t *testing.T, all []map[string]any) {
			field(t, all[1], "/spec/selector", map[string]any{"matchExpressions": []any{
				map[string]any{"key": "ray.io/node-type", "operator": "In", "values": []any{"worker"}}}})
		}, raydemand.Warning, workers},
		"an expression that excludes": {func(t *testing.T, all []map[string]any) {
			field(t, all[1], "/spec/selector", map[string]any{"matchExpressions": []any{
				map[string]any{"key": "ray.io/cluster", "operator": "DoesNotExist"}}})
		}, "", ""},
		"another namespace":               {func(t *testing.T, all []map[string]any) { field(t, all[1], "/metadata/namespace", "web") }, "", ""},
		"Kubernetes could not read scale": {status("SyncFailed", 0), raydemand.Warning, ""},
		"Kubernetes knows the scale":      {status("SufficientPods", 3), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			all := objects(t, "testdata/shows/disruption-budget-blocks.yaml")
			c.change(t, all)
			f, _ := findingOf(examine(t, all), "disruption-budget-blocks")
			if f.Severity != c.want || !strings.Contains(f.Fix, c.fix) {
				t.Errorf("got %+v, want %q with fix %s", f, c.want, c.fix)
			}
		})
	}
}

// The pods of a RayJob have the name of a RayCluster that it has not made yet.
func TestABudgetOverPodsOfARayJobIsFoundByTheirOtherLabels(t *testing.T) {
	all := objects(t, "testdata/shows/disruption-budget-blocks.yaml")
	all[0] = map[string]any{"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": all[0]["metadata"],
		"spec": map[string]any{"rayClusterSpec": all[0]["spec"]}}
	if f, found := findingOf(examine(t, all), "disruption-budget-blocks"); found {
		t.Errorf("got %+v for the name of the RayJob", f)
	}
	field(t, all[1], "/spec/selector/matchLabels", map[string]any{"ray.io/node-type": "head"})
	if _, found := findingOf(examine(t, all), "disruption-budget-blocks"); !found {
		t.Error("not found by the type of Ray node")
	}
}
