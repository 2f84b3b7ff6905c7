package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/nodes"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestASidecarKnowsSlicesByTheTemplateAloneAndSaysSoOnce(t *testing.T) {
	groups := func(resources ...string) []nodepool.WorkerGroup {
		var list []nodepool.WorkerGroup
		for _, resource := range resources {
			list = append(list, nodepool.WorkerGroup{Name: resource, Pod: landing.PodShape{Requests: landing.Quantities{resource: raydemand.One}}})
		}
		return list
	}
	shares := sharing.Reader{Names: gpuinfo.Names{Configured: []gpuinfo.Resource{{Name: "example.com/share", Kind: gpuinfo.TimeSliced, Role: gpuinfo.Devices}}}}
	m := &Manager{options: Options{Single: &llm, GPUs: shares}}
	cluster := nodepool.Cluster{Key: llm, Groups: groups("nvidia.com/mig-1g.10gb", "example.com/share", "cpu")}
	m.withoutNodes(&cluster)
	var kinds []gpuinfo.Kind
	for _, group := range cluster.Groups {
		for _, slice := range group.Slices {
			kinds = append(kinds, slice.Kind)
		}
		if group.PoolPods != nil {
			t.Errorf("group %s is bounded by pools %+v", group.Name, group.PoolPods)
		}
	}
	if diff := cmp.Diff([]gpuinfo.Kind{gpuinfo.MIG, gpuinfo.TimeSliced}, kinds); diff != "" {
		t.Errorf("slices (-want +got):\n%s", diff)
	}
	if len(cluster.Findings) != 1 || cluster.Findings[0].Code != nodes.NodesForbidden {
		t.Errorf("findings %+v, want one %s", cluster.Findings, nodes.NodesForbidden)
	}
	cpus := nodepool.Cluster{Key: llm, Groups: groups("cpu")}
	if m.withoutNodes(&cpus); len(cpus.Findings) != 0 {
		t.Errorf("findings %+v for a cluster without GPUs", cpus.Findings)
	}
}

func TestConfiguredNamesAreReadInSpecs(t *testing.T) {
	reader := sharing.Reader{PoolLabel: "example.com/pool",
		Names: gpuinfo.Names{Configured: []gpuinfo.Resource{{Name: "example.com/vgpu", Kind: gpuinfo.MPS, Role: gpuinfo.Devices}}}}
	const group = `
metadata: {name: llm, namespace: ml, uid: u, resourceVersion: "1"}
spec: {workerGroupSpecs: [{groupName: g, template: {spec: {containers: [{name: ray, resources: {limits: {example.com/vgpu: 1}}}]}}}]}`
	manifest := &unstructured.Unstructured{Object: objectOf(t, group)}
	for _, known := range []bool{false, true} {
		cache := newDecodeCache(sharing.Reader{})
		if known {
			cache = newDecodeCache(reader)
		}
		unknown := false
		for _, f := range cache.decode(manifest).Findings {
			unknown = unknown || f.Code == landing.GPUResourceUnknown
		}
		if unknown == known {
			t.Errorf("a resource is unknown %t where it is configured %t", unknown, known)
		}
	}
}
