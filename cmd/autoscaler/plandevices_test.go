package main

import (
	"fmt"
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/kube/nodes"
)

// sliceOf returns the ResourceSlice of node n1 with whole cards gpu-0, gpu-1 and so on.
func sliceOf(cards int, more ...string) string {
	devices := more
	for i := range cards {
		devices = append(devices, fmt.Sprintf(`{"name": "gpu-%d", "attributes": {"type": {"string": "gpu"}, "uuid": {"string": "GPU-%c"}}}`, i, 'a'+i))
	}
	return `{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "n1-gpu"}, "spec": {"driver": "gpu.nvidia.com",
		"nodeName": "n1", "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1}, "devices": [` + strings.Join(devices, ", ") + `]}}`
}

// claimOf returns a ResourceClaim that has these devices of node n1.
func claimOf(devices ...string) string {
	var results []string
	for _, device := range devices {
		results = append(results, `{"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n1", "device": "`+device+`"}`)
	}
	return `{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c", "namespace": "other"},
		"status": {"allocation": {"devices": {"results": [` + strings.Join(results, ", ") + `]}}}}`
}

func TestAPlanSaysThatClaimsAreUnknown(t *testing.T) {
	claiming := strings.Replace(podOn("n1", "", "0"), `"spec": {`, `"spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}], `, 1)
	for name, test := range map[string]struct{ more, limits, field string }{
		"neither, and no pod has claims": {`, "kubePods": [` + podOn("n1", "", "1") + `]`, `{"nvidia.com/gpu": "1"}`, ""},
		"a pod has claims":               {`, "kubePods": [` + claiming + `]`, `{"nvidia.com/gpu": "1"}`, "kubeResourceClaims"},
		"slices without claims":          {`, "kubePods": [], "kubeResourceSlices": [` + sliceOf(8) + `]`, `{"nvidia.com/gpu": "1"}`, "kubeResourceClaims"},
		"claims without slices":          {`, "kubePods": [], "kubeResourceClaims": [` + claimOf("gpu-0") + `]`, `{"nvidia.com/gpu": "1"}`, "kubeResourceSlices"},
		"both":                           {`, "kubePods": [` + claiming + `], "kubeResourceSlices": [` + sliceOf(8) + `], "kubeResourceClaims": [` + claimOf("gpu-0") + `]`, `{"nvidia.com/gpu": "1"}`, ""},
		"a group without GPUs":           {`, "kubePods": [` + claiming + `]`, `{"cpu": "1"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planOf(t, oneGroup(test.limits, `{}`, `{"cpu": "64", "nvidia.com/gpu": "8", "pods": "110"}`, test.more))
			field := ""
			for _, f := range plan.Findings {
				if f.Code == nodes.ClaimsUnknown {
					field += f.Field
				}
			}
			if field != test.field {
				t.Errorf("finding about %q, want %q", field, test.field)
			}
		})
	}
}
