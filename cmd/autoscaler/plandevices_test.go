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

func mixed1g(start int) string {
	return fmt.Sprintf(`{"name": "gpu-0-mig-1g5gb-19-%d", "attributes": {"type": {"string": "mig"}, "parentUUID": {"string": "GPU-a"}, "profile": {"string": "1g.5gb"}}}`, start)
}

// TestClaimedDevicesTakeTheirPartOfTheNodes checks devices that ResourceClaims have: the device plugin announces their
// units nonetheless.
func TestClaimedDevicesTakeTheirPartOfTheNodes(t *testing.T) {
	eight := jointNode("n1", "nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3 nvidia.com/gpu.count=8", "nvidia.com/gpu=8")
	slices := jointNode("n1", "nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB nvidia.com/mig.strategy=mixed nvidia.com/gpu.count=1", "nvidia.com/mig-1g.5gb=7")
	shared := jointNode("n1", ack, "aliyun.com/gpu-mem=60")
	replicas := jointNode("n1", "nvidia.com/gpu.product=Tesla-T4-SHARED nvidia.com/gpu.count=2 nvidia.com/gpu.replicas=5", "nvidia.com/gpu=10")
	onHAMi := jointNode("n1", hami, "nvidia.com/gpu=20")
	instances := []jointGroup{{name: "a", limits: "nvidia.com/mig-1g.5gb=1"}}
	halves := []jointGroup{{name: "a", limits: "nvidia.com/gpu=1 nvidia.com/gpumem-percentage=50"}}
	const foreign = `{"metadata": {"name": "p"}, "spec": {"nodeName": "n1", "containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}`
	for name, test := range map[string]struct {
		groups             []jointGroup
		node               string
		pods, slice, claim string
		want               int
	}{
		"no claims":                        {[]jointGroup{gpuGroup("a", 1)}, eight, "", sliceOf(8), "", 8},
		"three cards of eight":             {[]jointGroup{gpuGroup("a", 1)}, eight, "", sliceOf(8), claimOf("gpu-0", "gpu-1", "gpu-5"), 5},
		"beside a pod":                     {[]jointGroup{gpuGroup("a", 1)}, eight, foreign, sliceOf(8), claimOf("gpu-0", "gpu-1", "gpu-5"), 4},
		"pods of four cards":               {[]jointGroup{gpuGroup("a", 4)}, eight, "", sliceOf(8), claimOf("gpu-0"), 1},
		"devices of another node":          {[]jointGroup{gpuGroup("a", 1)}, eight, "", strings.Replace(sliceOf(8), `"nodeName": "n1"`, `"nodeName": "n2"`, 1), claimOf("gpu-0"), 8},
		"a claim that only monitors":       {[]jointGroup{gpuGroup("a", 1)}, eight, "", sliceOf(8), strings.Replace(claimOf("gpu-0"), `"request"`, `"adminAccess": true, "request"`, 1), 8},
		"a claim of another driver":        {[]jointGroup{gpuGroup("a", 1)}, eight, "", sliceOf(8), strings.Replace(claimOf("gpu-0"), "gpu.nvidia.com", "net.example", 1), 8},
		"MIG instances":                    {instances, slices, "", sliceOf(0, mixed1g(0), mixed1g(1), mixed1g(2)), claimOf("gpu-0-mig-1g5gb-19-0", "gpu-0-mig-1g5gb-19-2"), 5},
		"the card of MIG instances":        {instances, slices, "", sliceOf(1), claimOf("gpu-0"), 0},
		"an instance of a whole card":      {[]jointGroup{gpuGroup("a", 1)}, eight, "", sliceOf(8, mixed1g(0)), claimOf("gpu-0-mig-1g5gb-19-0"), 7},
		"a card of four with memory":       {[]jointGroup{memoryGroup("a", 8)}, shared, "", sliceOf(4), claimOf("gpu-2"), 3},
		"a card that is announced 5 times": {[]jointGroup{gpuGroup("a", 1)}, replicas, "", sliceOf(2), claimOf("gpu-1"), 5},
		"a card of HAMi":                   {halves, onHAMi, "", sliceOf(2), claimOf("gpu-1"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot := strings.Replace(jointSnapshot(test.groups, test.node, onlyP), `"kubeNodes":`, `"kubePods": [`+test.pods+`], "kubeResourceSlices": {"kind": "List", "items": [`+
				test.slice+`]}, "kubeResourceClaims": [`+test.claim+`], "kubeNodes":`, 1)
			plan, sum := planOf(t, snapshot), 0
			for _, n := range plan.Launch {
				sum += n
			}
			if sum != test.want {
				t.Errorf("launches %v, want %d\n%+v", plan.Launch, test.want, plan.InfeasibleRequests)
			}
		})
	}
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
