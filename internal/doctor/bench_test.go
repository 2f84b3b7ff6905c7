package doctor_test

import (
	"fmt"
	"testing"

	"heliostat.dev/heliostat/internal/doctor"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// fleet returns RayClusters with two groups and ten pods each, and one node for each RayCluster.
func fleet(clusters int) []map[string]any {
	var objects []map[string]any
	limits := func(kv ...any) map[string]any {
		list := map[string]any{"cpu": "4", "memory": "16Gi"}
		for i := 0; i < len(kv); i += 2 {
			list[kv[i].(string)] = kv[i+1]
		}
		return map[string]any{"limits": list, "requests": list}
	}
	container := func(resources map[string]any) map[string]any {
		return map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "ray", "image": "ray", "resources": resources}}}}
	}
	for i := range clusters {
		name := fmt.Sprintf("c%d", i)
		group := func(group string, template map[string]any) map[string]any {
			return map[string]any{"groupName": group, "replicas": int64(4), "minReplicas": int64(0), "maxReplicas": int64(8), "rayStartParams": map[string]any{}, "template": template}
		}
		objects = append(objects, map[string]any{
			"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": map[string]any{"name": name, "namespace": "ml"},
			"spec": map[string]any{
				"headGroupSpec":    map[string]any{"rayStartParams": map[string]any{}, "template": container(limits())},
				"workerGroupSpecs": []any{group("gpu", container(limits("nvidia.com/gpu", "1"))), group("mig", container(limits("nvidia.com/mig-1g.5gb", "1")))},
			},
		}, map[string]any{
			"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "n" + name, "labels": map[string]any{
				"kubernetes.io/hostname": "n" + name, "agentpool": fmt.Sprintf("p%d", i%20), "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}},
			"status": map[string]any{"allocatable": map[string]any{"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "8"},
				"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
		})
		for p := range 10 {
			objects = append(objects, map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{
				"name": fmt.Sprintf("%s-%d", name, p), "namespace": "ml", "labels": map[string]any{"ray.io/cluster": name, "ray.io/group": "gpu", "ray.io/node-type": "worker"}},
				"spec": map[string]any{"containers": []any{map[string]any{"name": "ray"}}}})
		}
	}
	return objects
}

func BenchmarkDoctorOverAFleet(b *testing.B) {
	for _, clusters := range []int{100, 1000} {
		objects := fleet(clusters)
		b.Run(fmt.Sprint(clusters, " RayClusters"), func(b *testing.B) {
			for b.Loop() {
				input, err := doctor.Read(objects, sharing.Reader{}, nil)
				if err != nil {
					b.Fatal(err)
				}
				doctor.Examine(input)
			}
		})
	}
}
