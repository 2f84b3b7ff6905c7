package sharing_test

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// TestAPodWithoutARecordOfItsCardIsNamed checks that the problem says which pod counts on every card, and what it lacks.
func TestAPodWithoutARecordOfItsCardIsNamed(t *testing.T) {
	const oneCard, twoCards = `GPU-a,10,15360,100,T4,0,true:`, `GPU-a,10,15360,100,T4,0,true:GPU-b,10,15360,100,T4,0,true:`
	hami := func(register string) sharing.NodeObject {
		return sharing.NodeObject{Annotations: map[string]string{"hami.io/node-nvidia-register": register}, Allocatable: quantities("nvidia.com/gpu", 20)}
	}
	ack := sharing.NodeObject{Labels: map[string]string{"aliyun.accelerator/nvidia_count": "2"}, Allocatable: quantities("aliyun.com/gpu-mem", 30, "aliyun.com/gpu-core.percentage", 200)}
	koordinator := sharing.NodeObject{Allocatable: quantities("koordinator.sh/gpu-core", 200, "koordinator.sh/gpu-memory-ratio", 200)}
	pod := func(name, annotations string, requests map[string]int64) sharing.Pod {
		p := sharing.Pod{Namespace: "other", Name: name, Requests: requests, Annotations: map[string]string{}}
		if key, value, set := strings.Cut(annotations, "="); set {
			p.Annotations[key] = value
		}
		return p
	}
	part := quantities("nvidia.com/gpu", 1, "nvidia.com/gpumem", 8000)
	for name, test := range map[string]struct {
		node sharing.NodeObject
		pods []sharing.Pod
		want string
	}{
		"a record":                 {hami(twoCards), []sharing.Pod{pod("p", "hami.io/vgpu-devices-allocated=GPU-b,NVIDIA,8000,0:;", part)}, ""},
		"none":                     {hami(twoCards), []sharing.Pod{pod("p", "", part)}, "pod other/p has no annotation hami.io/vgpu-devices-allocated that names a card of this node, so its part counts on each of the 2 cards"},
		"of a card elsewhere":      {hami(twoCards), []sharing.Pod{pod("p", "hami.io/vgpu-devices-allocated=GPU-z,NVIDIA,8000,0:;", part)}, "pod other/p has"},
		"several, in any order":    {hami(twoCards), []sharing.Pod{pod("r", "", part), pod("p", "", part), pod("q", "", part)}, "pod other/p has no annotation hami.io/vgpu-devices-allocated that names a card of this node, so its part counts on each of the 2 cards, and 2 more pods like it"},
		"one card":                 {hami(oneCard), []sharing.Pod{pod("p", "", part)}, ""},
		"a pod without GPUs":       {hami(twoCards), []sharing.Pod{pod("p", "", nil)}, ""},
		"ACK's memory":             {ack, []sharing.Pod{pod("p", "", quantities("aliyun.com/gpu-mem", 8))}, "pod other/p has no annotation scheduler.framework.gpushare.allocation"},
		"ACK's cores":              {ack, []sharing.Pod{pod("p", `scheduler.framework.gpushare.allocation={"0":{"1":8}}`, quantities("aliyun.com/gpu-mem", 8, "aliyun.com/gpu-core.percentage", 30))}, "pod other/p has no annotation gpushare.alibabacloud.com/core-percentage"},
		"ACK's record":             {ack, []sharing.Pod{pod("p", `scheduler.framework.gpushare.allocation={"0":{"1":8}}`, quantities("aliyun.com/gpu-mem", 8))}, ""},
		"Koordinator":              {koordinator, []sharing.Pod{pod("p", "", quantities("koordinator.sh/gpu-core", 60, "koordinator.sh/gpu-memory-ratio", 60))}, "pod other/p has no annotation scheduling.koordinator.sh/device-allocated"},
		"Koordinator, another pod": {koordinator, []sharing.Pod{pod("p", "", quantities("example.com/fpga", 1))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.node.Pods = test.pods
			var got string
			for _, problem := range (sharing.Reader{}).Read(test.node).Problems {
				if problem.Code == sharing.CardUnrecorded {
					got += problem.Message
				}
			}
			if full := strings.Contains(test.want, "so its part"); full && got != test.want || !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
				t.Errorf("problem %q, want %q", got, test.want)
			}
		})
	}
}
