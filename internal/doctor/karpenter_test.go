package doctor_test

import (
	"slices"
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// rayPod is a running pod of RayCluster ml/llm.
func rayPod(name, group, kind string, annotations map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": name, "namespace": "ml", "annotations": annotations,
			"labels": map[string]any{"ray.io/cluster": "llm", "ray.io/group": group, "ray.io/node-type": kind}},
		"spec":   map[string]any{"containers": []any{map[string]any{"name": "ray", "image": "rayproject/ray:2.52.0-py311"}}},
		"status": map[string]any{"phase": "Running"},
	}
}

func heliostatsGuard() map[string]any {
	return map[string]any{"karpenter.sh/do-not-disrupt": "true", "heliostat.dev/guard": "karpenter.sh/do-not-disrupt"}
}

// Each manifest has a RayCluster, its head pod without a guard, and a NodePool that serves the group. The case changes
// one thing of it.
func TestWhatKarpenterDoesToUnguardedPodsIsAWarningOnlyIfItIsProven(t *testing.T) {
	const consolidation, expiry = "consolidation-unguarded", "expiry-unguarded"
	const disruption = "/spec/disruption"
	template := worker[:len(worker)-len("/spec")] + "/metadata"
	remove := func(i int) func(*testing.T, []map[string]any) []map[string]any {
		return func(_ *testing.T, all []map[string]any) []map[string]any { return slices.Delete(all, i, i+1) }
	}
	set := func(i int, pointer string, to any) func(*testing.T, []map[string]any) []map[string]any {
		return func(t *testing.T, all []map[string]any) []map[string]any { field(t, all[i], pointer, to); return all }
	}
	with := func(pods ...map[string]any) func(*testing.T, []map[string]any) []map[string]any {
		return func(_ *testing.T, all []map[string]any) []map[string]any {
			return append(slices.Delete(all, 1, 2), pods...)
		}
	}
	for name, c := range map[string]struct {
		code   string
		change func(*testing.T, []map[string]any) []map[string]any
		want   raydemand.Severity
	}{
		"the policy is the default":          {consolidation, set(2, disruption+"/consolidationPolicy", nil), raydemand.Warning},
		"there is no disruption at all":      {consolidation, set(2, disruption, nil), raydemand.Warning},
		"the policy Balanced":                {consolidation, set(2, disruption+"/consolidationPolicy", "Balanced"), raydemand.Warning},
		"empty nodes alone":                  {consolidation, set(2, disruption+"/consolidationPolicy", "WhenEmpty"), ""},
		"it never consolidates":              {consolidation, set(2, disruption+"/consolidateAfter", "Never"), ""},
		"a static NodePool":                  {consolidation, set(2, "/spec/replicas", 2), ""},
		"a budget of no node":                {consolidation, set(2, disruption+"/budgets", []any{map[string]any{"nodes": "0"}}), ""},
		"a budget of no node at some times":  {consolidation, set(2, disruption+"/budgets", []any{map[string]any{"nodes": "0", "schedule": "@daily", "duration": "8h"}}), raydemand.Warning},
		"a budget of no empty node":          {consolidation, set(2, disruption+"/budgets", []any{map[string]any{"nodes": "0", "reasons": []any{"Empty"}}}), raydemand.Warning},
		"another API of that kind":           {consolidation, set(2, "/apiVersion", "example.com/v1"), ""},
		"no pod shows whether it has one":    {consolidation, remove(1), ""},
		"the group's own annotation":         {consolidation, set(0, template, map[string]any{"annotations": map[string]any{"karpenter.sh/do-not-disrupt": "true"}}), ""},
		"a duration guards for a while only": {consolidation, set(0, template, map[string]any{"annotations": map[string]any{"karpenter.sh/do-not-disrupt": "1h"}}), raydemand.Warning},
		"the head runs without a guard":      {consolidation, with(rayPod("h", "headgroup", "head", nil)), raydemand.Warning},
		"the head runs with a guard":         {consolidation, with(rayPod("h", "headgroup", "head", heliostatsGuard())), ""},
		"a user has guarded the head":        {consolidation, with(rayPod("h", "headgroup", "head", map[string]any{"karpenter.sh/do-not-disrupt": "true"})), raydemand.Warning},
		"a worker with a guard, no head":     {consolidation, with(rayPod("w", "a100", "worker", heliostatsGuard())), ""},
		"a NodePool of another group":        {consolidation, set(2, "/spec/template/spec/taints", []any{map[string]any{"key": "other", "effect": "NoSchedule"}}), ""},
		"nodes live for ever":                {expiry, set(2, "/spec/template/spec/expireAfter", "Never"), ""},
		"the age is the default":             {expiry, set(2, "/spec/template/spec/expireAfter", nil), raydemand.Warning},
		"an age without a grace period":      {expiry, set(2, "/spec/template/spec/terminationGracePeriod", nil), raydemand.Warning},
	} {
		t.Run(name, func(t *testing.T) {
			all := c.change(t, objects(t, "testdata/shows/"+c.code+".yaml"))
			if f, _ := findingOf(examine(t, all), c.code); f.Severity != c.want {
				t.Errorf("got %+v, want severity %q", f, c.want)
			}
		})
	}
}

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
	const budget = "edit poddisruptionbudget ray -n ml"
	for name, c := range map[string]struct {
		change func(*testing.T, []map[string]any)
		want   raydemand.Severity
		fix    string
	}{
		"a number of heads":            {limit("maxUnavailable", 1), raydemand.Warning, budget},
		"a percentage":                 {limit("maxUnavailable", "50%"), raydemand.Warning, budget},
		"a least percentage":           {limit("minAvailable", "50%"), raydemand.Warning, budget},
		"a least number":               {limit("minAvailable", 1), "", ""},
		"nothing may be unavailable":   {limit("maxUnavailable", 0), raydemand.Info, ""},
		"everything must be available": {limit("minAvailable", "100%"), raydemand.Info, ""},
		"all pods of the namespace":    {selecting(map[string]any{}), raydemand.Warning, budget},
		"no selector":                  {func(t *testing.T, all []map[string]any) { field(t, all[1], "/spec/selector", nil) }, "", ""},
		"a label of no pod":            {selecting(map[string]any{"team": "a"}), "", ""},
		"the label is in the template": {func(t *testing.T, all []map[string]any) {
			selecting(map[string]any{"team": "a"})(t, all)
			field(t, all[0], "/spec/workerGroupSpecs/0/template/metadata", map[string]any{"labels": map[string]any{"team": "a"}})
		}, raydemand.Warning, budget},
		"KubeRay's label":    {selecting(map[string]any{"app.kubernetes.io/name": "kuberay"}), raydemand.Warning, budget},
		"a worker group":     {selecting(map[string]any{"ray.io/group": "a100"}), raydemand.Warning, budget},
		"the heads' group":   {selecting(map[string]any{"ray.io/group": "headgroup"}), raydemand.Warning, budget},
		"another RayCluster": {selecting(map[string]any{"ray.io/cluster": "other"}), "", ""},
		"an expression": {func(t *testing.T, all []map[string]any) {
			field(t, all[1], "/spec/selector", map[string]any{"matchExpressions": []any{
				map[string]any{"key": "ray.io/node-type", "operator": "In", "values": []any{"worker"}}}})
		}, raydemand.Warning, budget},
		"an expression that excludes": {func(t *testing.T, all []map[string]any) {
			field(t, all[1], "/spec/selector", map[string]any{"matchExpressions": []any{
				map[string]any{"key": "ray.io/cluster", "operator": "DoesNotExist"}}})
		}, "", ""},
		"another namespace": {func(t *testing.T, all []map[string]any) { field(t, all[1], "/metadata/namespace", "web") }, "", ""},
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
