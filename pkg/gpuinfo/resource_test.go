package gpuinfo

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestResourceNamesSayWhatIsHandedOut(t *testing.T) {
	names := Names{Configured: []Resource{{Name: "corp.example/half-gpu", Kind: TimeSliced, Role: Devices, Source: "configuration"}}}
	for _, want := range []Resource{
		{Name: "nvidia.com/gpu", Kind: UnknownKind, Role: Devices},
		{Name: "nvidia.com/gpu.shared", Kind: UnknownKind, Role: Devices, Shared: true},
		{Name: "nvidia.com/mig-1g.5gb", Kind: MIG, Role: Devices, Profile: "1g.5gb"},
		{Name: "nvidia.com/mig-1g.10gb.me", Kind: MIG, Role: Devices, Profile: "1g.10gb+me"},
		{Name: "nvidia.com/mig-1g.24gb.me.all", Kind: MIG, Role: Devices, Profile: "1g.24gb+me.all"},
		{Name: "nvidia.com/mig-1g.24gb-me", Kind: MIG, Role: Devices, Profile: "1g.24gb-me"},
		{Name: "nvidia.com/mig-1g.5gb.shared", Kind: TimeSliced, Role: Devices, Profile: "1g.5gb", Shared: true},
		{Name: "nvidia.com/mig-1g.24gb.gfx.shared", Kind: TimeSliced, Role: Devices, Profile: "1g.24gb+gfx", Shared: true},
		{Name: "mig.das.com/1g.5gb", Kind: MIG, Role: Devices, Profile: "1g.5gb"},
		{Name: "mig.das.com/1g.5gb.me", Kind: MIG, Role: Devices, Profile: "1g.5gb+me"},
		{Name: "amd.com/gpu", Kind: UnknownKind, Role: Devices},
		{Name: "amd.com/cpx_nps4", Kind: UnknownKind, Role: Devices},
		{Name: "amd.com/spx_nps1", Kind: Whole, Role: Devices},
		{Name: "metax-tech.com/gpu", Kind: Whole, Role: Devices},
		{Name: "gpu.intel.com/i915", Kind: UnknownKind, Role: Devices},
		{Name: "gpu.intel.com/i915_monitoring", Kind: UnknownKind, Role: Information},
		{Name: "gpu.intel.com/tiles", Kind: UnknownKind, Role: Information},
		{Name: "aliyun.com/gpu-mem", Kind: GPUMemory, Role: Memory},
		{Name: "aliyun.com/gpu-core.percentage", Kind: GPUMemory, Role: Cores},
		{Name: "aliyun.com/gpu-count", Kind: GPUMemory, Role: Information},
		{Name: "nvidia.com/gpumem", Kind: VGPU, Role: Memory, Unit: 1},
		{Name: "nvidia.com/gpucores", Kind: VGPU, Role: Cores},
		{Name: "volcano.sh/vgpu-number", Kind: VGPU, Role: Devices},
		{Name: "volcano.sh/vgpu-memory", Kind: VGPU, Role: Memory, Unit: 1},
		{Name: "koordinator.sh/gpu-memory-ratio", Kind: VGPU, Role: Memory},
		{Name: "corp.example/half-gpu", Kind: TimeSliced, Role: Devices},
	} {
		got, err := names.Resource(want.Name)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Resource{}, "Source")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want.Name, diff)
		}
		if got.Source == "" {
			t.Errorf("%s has no source", want.Name)
		}
	}
}

func TestUnknownResourcesAreToldFromThoseThatAreNoGPU(t *testing.T) {
	for name, want := range map[string]string{
		"nvidia.com/mig1g.5gb":        "unknown GPU resource nvidia.com/mig1g.5gb: a hyphen is missing, want nvidia.com/mig-1g.5gb",
		"nvidia.com/mig-1c.2g.10gb":   "unknown GPU resource nvidia.com/mig-1c.2g.10gb: only instances with all their compute slices are announced, want nvidia.com/mig-2g.10gb",
		"nvidia.com/mig-2c.2g.10gb":   "unknown GPU resource nvidia.com/mig-2c.2g.10gb: want nvidia.com/mig-<profile>, for example nvidia.com/mig-1g.10gb or nvidia.com/mig-1g.10gb.me",
		"nvidia.com/mig-1g.5gb.count": "unknown GPU resource nvidia.com/mig-1g.5gb.count: want nvidia.com/mig-<profile>, for example nvidia.com/mig-1g.10gb or nvidia.com/mig-1g.10gb.me",
		"deepomatic.com/shared-gpu":   "unknown GPU resource deepomatic.com/shared-gpu: it is in no table; say what it is with --resource deepomatic.com/shared-gpu=KIND",
		"cerit.io/gpu-mem":            "unknown GPU resource cerit.io/gpu-mem: it is in no table; say what it is with --resource cerit.io/gpu-mem=KIND",
		"nvidia.com/GPU":              "unknown GPU resource nvidia.com/GPU: capitals make it another name, want nvidia.com/gpu",
		"nvidia.com/MIG-1g.5GB":       "unknown GPU resource nvidia.com/MIG-1g.5GB: capitals make it another name, want nvidia.com/mig-1g.5gb",
		"nvidia.com/GA102GL_A10":      "unknown GPU resource nvidia.com/GA102GL_A10: it is in no table; say what it is with --resource nvidia.com/GA102GL_A10=KIND",
	} {
		if _, err := (Names{}).Resource(name); !errors.Is(err, ErrUnknownResource) || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	for name, want := range map[string]error{
		"nvidia.com/A100": ErrUnknownResource, "nvidia.com/NVIDIA_A10-24Q": ErrUnknownResource,
		"nvidia.com/TU104GL_Tesla_T4": ErrUnknownResource, "amd.com/mi300x": ErrUnknownResource,
		"iluvatar.ai/BI-V150.vCore": ErrUnknownResource, "metax-tech.com/sgpu": ErrUnknownResource,
		"nvidia.com/resibs2f0": ErrForeign, "amd.com/npu": ErrForeign,
		"cpu": ErrNotGPU, "memory": ErrNotGPU, "hugepages-1Gi": ErrNotGPU, "attachable-volumes-aws-ebs": ErrNotGPU,
		"rdma/hca": ErrNotGPU, "vpc.amazonaws.com/efa": ErrNotGPU, "squat.ai/a100": ErrNotGPU,
		ClassPrefix + "gpu.nvidia.com": ErrNotGPU, ClaimPrefix + "ml.gpu": ErrNotGPU,
		"nvidia.com/hostdev": ErrNotGPU, "nvidia.com/mlnxnics": ErrNotGPU, "nvidia.com/pods_vf": ErrNotGPU,
		"nvidia.com/bf3_p0_vfs": ErrNotGPU, "nvidia.com/cx7-vf": ErrNotGPU, "nvidia.com/sriov_ib": ErrNotGPU,
		"nvidia.com/rdma_shared_device_a": ErrNotGPU, "amd.com/vnic": ErrNotGPU, "amd.com/xilinx_u30": ErrNotGPU,
	} {
		_, err := (Names{}).Resource(name)
		if !errors.Is(err, want) || want == ErrNotGPU && errors.Is(err, ErrForeign) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

// Every profile of every product converts to a resource name and back.
func TestEveryProfileHasAResourceNameAndBack(t *testing.T) {
	eachProduct(t, func(t *testing.T, p Product) {
		for _, profile := range p.Profiles {
			parsed, err := ParseProfile(profile.Name)
			if err != nil {
				t.Fatal(err)
			}
			for _, isShared := range []bool{false, true} {
				name := ResourceName(parsed, isShared)
				if got, err := (Names{}).Resource(name); err != nil || got.Profile != profile.Name || got.Shared != isShared {
					t.Errorf("%s comes back as %+v, %v", name, got, err)
				}
			}
		}
	})
}
