package sharing_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// held returns what pods hold of two cards, and whether one of the pods has no record.
type held struct {
	First, Second sharing.Share
	Unrecorded    bool
}

func TestARecordPlacesAPodOnItsCards(t *testing.T) {
	const hami, volcano, extender = "hami.io/vgpu-devices-allocated", "volcano.sh/vgpu-ids-new", "ALIYUN_COM_GPU_MEM_IDX"
	const ack, cores, koordinator = "scheduler.framework.gpushare.allocation", "gpushare.alibabacloud.com/core-percentage", "scheduling.koordinator.sh/device-allocated"
	vgpu := func(scheduler sharing.VGPUScheduler) func(p sharing.Pod) held {
		return func(p sharing.Pod) held {
			all := scheduler.Held([]sharing.Pod{p}, []string{"GPU-a", "GPU-b"})
			return held{all.Of("GPU-a"), all.Of("GPU-b"), all.Unrecorded(2) != ""}
		}
	}
	byIndex := func(read func([]sharing.Pod, int) *sharing.ByCard[int]) func(p sharing.Pod) held {
		return func(p sharing.Pod) held {
			all := read([]sharing.Pod{p}, 2)
			return held{all.Of(0), all.Of(1), all.Unrecorded(2) != ""}
		}
	}
	part := map[string]int64{"nvidia.com/gpu": 1, "nvidia.com/gpumem": 800, "nvidia.com/gpucores": 30}
	memory := map[string]int64{"aliyun.com/gpu-mem": 8, "aliyun.com/gpu-core.percentage": 30}
	percent := map[string]int64{"koordinator.sh/gpu-core": 60, "koordinator.sh/gpu-memory-ratio": 50}
	all := sharing.Share{Shares: 1, Memory: 800, Cores: 30}
	for name, test := range map[string]struct {
		read func(sharing.Pod) held
		pod  sharing.Pod
		want held
	}{
		"HAMi":                     {vgpu(sharing.HAMi), pod(part, hami, "GPU-b,NVIDIA,700,20:;"), held{Second: sharing.Share{Shares: 1, Memory: 700, Cores: 20}}},
		"HAMi's instance of MIG":   {vgpu(sharing.HAMi), pod(part, hami, "GPU-b[1-0],NVIDIA,700,20:;"), held{Second: sharing.Share{Shares: 1, Memory: 700, Cores: 20}}},
		"HAMi without a record":    {vgpu(sharing.HAMi), pod(part), held{all, all, true}},
		"a card of another node":   {vgpu(sharing.HAMi), pod(part, hami, "GPU-b,NVIDIA,1,1:GPU-z,NVIDIA,1,1:;"), held{all, all, true}},
		"a negative amount":        {vgpu(sharing.HAMi), pod(part, hami, "GPU-b,NVIDIA,-700,20:;"), held{all, all, true}},
		"an impossible amount":     {vgpu(sharing.HAMi), pod(part, hami, "GPU-b,NVIDIA,9000000000000000000,20:;"), held{all, all, true}},
		"a pod without vGPUs":      {vgpu(sharing.HAMi), pod(nil, hami, "GPU-b,NVIDIA,700,20:;"), held{}},
		"Volcano":                  {vgpu(sharing.Volcano), pod(map[string]int64{"volcano.sh/vgpu-number": 1}, volcano, "GPU-a,NVIDIA,700,20:"), held{First: sharing.Share{Shares: 1, Memory: 700, Cores: 20}}},
		"ACK":                      {byIndex(sharing.GPUMemory), pod(memory, ack, `{"0":{"1":5},"1":{"1":3}}`, cores, `{"0":{"1":30}}`), held{Second: sharing.Share{Memory: 8, Cores: 30}}},
		"ACK without cores":        {byIndex(sharing.GPUMemory), pod(memory, ack, `{"0":{"1":8}}`), held{sharing.Share{Cores: 30}, sharing.Share{Memory: 8, Cores: 30}, true}},
		"ACK's card is not there":  {byIndex(sharing.GPUMemory), pod(memory, ack, `{"0":{"2":8}}`), held{sharing.Share{Memory: 8, Cores: 30}, sharing.Share{Memory: 8, Cores: 30}, true}},
		"the extender":             {byIndex(sharing.GPUMemory), pod(map[string]int64{"aliyun.com/gpu-mem": 8}, extender, "0", "ALIYUN_COM_GPU_MEM_POD", "7"), held{First: sharing.Share{Memory: 7}}},
		"the extender's odd units": {byIndex(sharing.GPUMemory), pod(map[string]int64{"aliyun.com/gpu-mem": 8}, extender, "0", "ALIYUN_COM_GPU_MEM_POD", "-7"), held{First: sharing.Share{Memory: 8}}},
		"Koordinator": {byIndex(sharing.Koordinator), pod(percent, koordinator, `{"gpu":[{"minor":1,"resources":{"koordinator.sh/gpu-core":"60","koordinator.sh/gpu-memory-ratio":"50"}}]}`),
			held{Second: sharing.Share{Percent: 50, Cores: 60}}},
		"Koordinator without a record": {byIndex(sharing.Koordinator), pod(percent), held{sharing.Share{Percent: 50, Cores: 60}, sharing.Share{Percent: 50, Cores: 60}, true}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.read(test.pod)); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
		})
	}
}
