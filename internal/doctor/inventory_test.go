package doctor_test

import (
	"slices"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/doctor"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// status returns the ConfigMap of a Cluster Autoscaler, in the format since release 1.30.
func status(groups string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "cluster-autoscaler-status", "namespace": "kube-system"},
		"data": map[string]any{"status": groups},
	}
}

func karpenterPool(limits map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": "gpu"},
		"spec": map[string]any{"limits": limits},
	}
}

func findingOf(findings []doctor.Finding, code string) (doctor.Finding, bool) {
	at := slices.IndexFunc(findings, func(f doctor.Finding) bool { return f.Code == code })
	if at < 0 {
		return doctor.Finding{}, false
	}
	return findings[at], true
}

// The manifest has one node with 8 GPUs in a pool, and a group of up to 64 workers with one GPU.
func TestCeilingsOfPoolsAreThoseOfThePlanner(t *testing.T) {
	for name, c := range map[string]struct {
		label string
		says  map[string]any
		reads sharing.Reader
		want  string
	}{
		"Karpenter's limit of GPUs": {"karpenter.sh/nodepool=gpu", karpenterPool(map[string]any{"nvidia.com/gpu": "24"}), sharing.Reader{},
			"maxReplicas 64, but the node pools have room for at most 24 pods: gpu"},
		"Karpenter's limit of nodes bounds no GPUs": {"karpenter.sh/nodepool=gpu", karpenterPool(map[string]any{"nodes": 3}), sharing.Reader{}, ""},
		"no limit":                       {"karpenter.sh/nodepool=gpu", karpenterPool(nil), sharing.Reader{}, ""},
		"a NodePool that cannot be read": {"karpenter.sh/nodepool=gpu", karpenterPool(map[string]any{"nvidia.com/gpu": "many"}), sharing.Reader{}, ""},
		"the status of an AKS pool": {"kubernetes.azure.com/agentpool=gpua100",
			status("nodeGroups: [{name: aks-gpua100-31245678-vmss, health: {minSize: 0, maxSize: 4}}]"), sharing.Reader{},
			"maxReplicas 64, but the node pools have room for at most 32 pods: gpua100"},
		"a node group of another pool": {"kubernetes.azure.com/agentpool=gpua100",
			status("nodeGroups: [{name: aks-gpu-31245678-vmss, health: {minSize: 0, maxSize: 4}}]"), sharing.Reader{}, ""},
		"a pool with a custom label": {"example.com/pool=gold",
			status("nodeGroups: [{name: gold, health: {minSize: 0, maxSize: 2}}]"), sharing.Reader{PoolLabel: "example.com/pool"},
			"maxReplicas 64, but the node pools have room for at most 16 pods: gold"},
		"the same label, not configured": {"example.com/pool=gold", status("nodeGroups: [{name: gold, health: {minSize: 0, maxSize: 2}}]"), sharing.Reader{}, ""},
		"room enough":                    {"kubernetes.azure.com/agentpool=gpua100", status("nodeGroups: [{name: gpua100, health: {maxSize: 8}}]"), sharing.Reader{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			all := objects(t, "testdata/shows/node-maximum-below-ours.yaml")[:2]
			key, value, _ := strings.Cut(c.label, "=")
			field(t, all[1], "/metadata/labels/eks.amazonaws.com~1nodegroup", nil)
			field(t, all[1], "/metadata/labels/"+strings.ReplaceAll(key, "/", "~1"), value)
			input, err := doctor.Read(append(all, c.says), c.reads, nil)
			must(t, err)
			if got, _ := findingOf(doctor.Examine(input), "node-maximum-below-ours"); got.Seen != c.want {
				t.Errorf("seen %q, want %q", got.Seen, c.want)
			}
		})
	}
}

func TestAConfiguredResourceIsKnown(t *testing.T) {
	all := objects(t, "testdata/shows/gpu-resource-unknown.yaml")
	before, _ := findingOf(examine(t, all), "gpu-resource-unknown")
	if want := "--resource tencent.com/qgpu-memory=KIND"; !strings.HasSuffix(before.Fix, want) || strings.Contains(before.Fix, "whole") {
		t.Errorf("the fix is %s, want %s and no kind that is guessed", before.Fix, want)
	}
	reader := sharing.Reader{Names: gpuinfo.Names{Configured: []gpuinfo.Resource{{Name: "tencent.com/qgpu-memory", Kind: gpuinfo.Whole, Role: gpuinfo.Devices}}}}
	input, err := doctor.Read(all, reader, nil)
	must(t, err)
	if got, found := findingOf(doctor.Examine(input), "gpu-resource-unknown"); found {
		t.Errorf("found %+v", got)
	}
}
