package decode

import (
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Keys that the operator takes for the same flag reach `ray start` in the order of a Go map.
func TestOfKeysForOneFlagTheSmallestIsPlanned(t *testing.T) {
	tests := []struct {
		name      string
		resources map[string]any
		want      raydemand.Bundle
		seen      string
	}{
		{"two for GPUs", map[string]any{"GPU": "1", "MyGPU": "4"}, raydemand.Bundle{raydemand.GPU: raydemand.One}, "GPU: 1, MyGPU: 4"},
		{"the last one is the smallest", map[string]any{"GPU": "4", "MyGPU": "1"}, raydemand.Bundle{raydemand.GPU: raydemand.One}, "GPU: 4, MyGPU: 1"},
		{"three, in any case", map[string]any{"gpu": "2", "nvidia.com/gpu": "8", "SharedGPU": "3"}, raydemand.Bundle{raydemand.GPU: raydemand.Whole(2)}, "SharedGPU: 3, gpu: 2, nvidia.com/gpu: 8"},
		{"a MIG profile", map[string]any{"GPU": "2", "nvidia.com/mig-1g.5gb": "7"}, raydemand.Bundle{raydemand.GPU: raydemand.Whole(2)}, "GPU: 2, nvidia.com/mig-1g.5gb: 7"},
		{"none of one", map[string]any{"GPU": "0", "MyGPU": "4"}, raydemand.Bundle{raydemand.GPU: 0}, "GPU: 0, MyGPU: 4"},
		{"for CPUs", map[string]any{"CPU": "8", "cpu": "4"}, raydemand.Bundle{raydemand.CPU: raydemand.Whole(4)}, "CPU: 8, cpu: 4"},
		{"for memory", map[string]any{"Memory": "8Gi", "memory": "4Gi"}, raydemand.Bundle{raydemand.Memory: raydemand.Whole(4 << 30)}, "Memory: 8Gi, memory: 4Gi"},
		{"of one number", map[string]any{"GPU": "1", "MyGPU": "1"}, raydemand.Bundle{raydemand.GPU: raydemand.One}, ""},
		{"one is no quantity", map[string]any{"GPU": "one", "MyGPU": "4"}, raydemand.Bundle{raydemand.GPU: raydemand.Whole(4)}, ""},
		{"another resource", map[string]any{"GPU": "1", "gpu_type_a": "4"}, raydemand.Bundle{raydemand.GPU: raydemand.One}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cluster := clusterOf(t, test.resources)
			group := cluster.Groups[0]
			for name, want := range test.want {
				if got := group.Resources[name]; got != want {
					t.Errorf("%s is %s, want %s", name, got, want)
				}
			}
			seen := ""
			for _, f := range cluster.Findings {
				if f.Code == ResourceKeysDiffer {
					seen = f.Seen
					if f.Field != "spec.workerGroupSpecs[0].resources" || f.Severity != raydemand.Warning || !strings.Contains(f.Fix, "keep one of them") {
						t.Errorf("%+v", f)
					}
				}
			}
			if seen != test.seen {
				t.Errorf("reported %q, want %q", seen, test.seen)
			}
			if _, gpus := test.want[raydemand.GPU]; !gpus || test.seen == "" {
				return
			}
			if group.GPUs.Declared == nil || *group.GPUs.Declared != test.want[raydemand.GPU] || *group.GPUs.Derived != test.want[raydemand.GPU] {
				t.Errorf("declared %v, derived %v", group.GPUs.Declared, group.GPUs.Derived)
			}
			if refusal := cluster.SyncRefusal(&group); refusal == nil || refusal.Code != nodepool.SyncFixed || !strings.Contains(refusal.Why, " and ") {
				t.Errorf("the number could be written: %v", refusal)
			}
		})
	}
}

// clusterOf returns a RayCluster whose one group has this field resources.
func clusterOf(t *testing.T, resources map[string]any) nodepool.Cluster {
	t.Helper()
	container := map[string]any{"name": "ray", "image": "rayproject/ray", "resources": map[string]any{"limits": map[string]any{"cpu": "4", "memory": "8Gi"}}}
	template := map[string]any{"spec": map[string]any{"containers": []any{container}}}
	group := map[string]any{"groupName": "w", "rayStartParams": map[string]any{}, "resources": maps.Clone(resources), "template": template}
	return Cluster(sharing.Reader{}, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": map[string]any{"name": "r", "namespace": "d"},
		"spec": map[string]any{"headGroupSpec": map[string]any{"rayStartParams": map[string]any{}, "template": template}, "workerGroupSpecs": []any{group}},
	}}, nil)
}
