package sharing_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

func TestCardsOfKoordinatorAreFreeInPercent(t *testing.T) {
	const allocated = "scheduling.koordinator.sh/device-allocated"
	two := quantities("koordinator.sh/gpu-core", 200, "koordinator.sh/gpu-memory-ratio", 200)
	part := func(n int, annotations ...string) sharing.Pod {
		return pod(quantities("koordinator.sh/gpu-core", n, "koordinator.sh/gpu-memory-ratio", n), annotations...)
	}
	for name, test := range map[string]struct {
		pods []sharing.Pod
		want string
	}{
		"no pods": {[]sharing.Pod{}, "0 100/?/100, 1 100/?/100"},
		"the scheduler's record": {[]sharing.Pod{part(60, allocated,
			`{"gpu":[{"minor":1,"resources":{"koordinator.sh/gpu-core":"60","koordinator.sh/gpu-memory":"9Gi","koordinator.sh/gpu-memory-ratio":"60"}}]}`)}, "0 100/?/100, 1 40/?/40"},
		"both cards":                            {[]sharing.Pod{part(200, allocated, `{"gpu":[{"minor":0},{"minor":1}]}`)}, "0 0/?/0, 1 0/?/0"},
		"a pod without a record is on any card": {[]sharing.Pod{part(60)}, "0 40/?/40, 1 40/?/40"},
		"200 percent are two cards":             {[]sharing.Pod{part(200)}, "0 0/?/0, 1 0/?/0"},
		"one amount for both":                   {[]sharing.Pod{pod(quantities("koordinator.sh/gpu", 30))}, "0 70/?/70, 1 70/?/70"},
		"a card that is not there is no record": {[]sharing.Pod{part(60, allocated, `{"gpu":[{"minor":7}]}`)}, "0 40/?/40, 1 40/?/40"},
		"nor is an amount below 0": {[]sharing.Pod{part(60, allocated,
			`{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"-900","koordinator.sh/gpu-memory-ratio":"10"}}]}`)}, "0 40/?/40, 1 40/?/40"},
		"a pod of something else":             {[]sharing.Pod{pod(quantities("example.com/x", 1))}, "0 100/?/100, 1 100/?/100"},
		"nothing is known while pods are not": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := sharing.Reader{}.Read(sharing.NodeObject{Allocatable: two, Pods: test.pods})
			if diff := cmp.Diff(test.want, cardText(got.PerCard)); diff != "" {
				t.Errorf("cards (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCardsWithoutARegisterAreEqual checks nodes of HAMi and Volcano in an excerpt without the annotation that lists
// their cards.
func TestCardsWithoutARegisterAreEqual(t *testing.T) {
	const given, ids = "hami.io/vgpu-devices-allocated", "volcano.sh/vgpu-ids-new"
	hami, volcano := quantities("nvidia.com/gpu", 20), quantities("volcano.sh/vgpu-number", 20, "volcano.sh/vgpu-memory", 20000, "volcano.sh/vgpu-cores", 200)
	const marks = "gpu=on nvidia.com/gpu.count=2 nvidia.com/gpu.memory=10000"
	for name, test := range map[string]struct {
		units map[string]int64
		marks string
		pods  []sharing.Pod
		want  string
	}{
		"HAMi, no pods": {hami, marks, []sharing.Pod{}, "- 10/10000/100, - 10/10000/100"},
		"HAMi's records name the cards": {hami, marks, []sharing.Pod{
			pod(quantities("nvidia.com/gpu", 1), given, "GPU-b,NVIDIA,3000,30:;"), pod(quantities("nvidia.com/gpu", 1), given, "GPU-b,NVIDIA,2000,0:;"),
		}, "- 8/5000/70, - 10/10000/100"},
		"half a card in percent": {hami, marks, []sharing.Pod{pod(quantities("nvidia.com/gpu", 1, "nvidia.com/gpumem-percentage", 50))}, "- 9/5000/100, - 9/5000/100"},
		"more cards than the node has": {hami, marks, []sharing.Pod{
			pod(quantities("nvidia.com/gpu", 3, "nvidia.com/gpumem", 1000), given, "GPU-a,NVIDIA,1000,0:GPU-b,NVIDIA,1000,0:GPU-c,NVIDIA,1000,0:;")}, "- 9/9000/100, - 9/9000/100"},
		"Volcano": {volcano, "", []sharing.Pod{
			pod(quantities("volcano.sh/vgpu-number", 1), ids, "GPU-a,NVIDIA,8000,0:"), pod(quantities("volcano.sh/vgpu-number", 1, "volcano.sh/vgpu-memory", 1000))}, "- 8/1000/100, - 9/9000/100"},
		"the memory of a card is unknown":     {hami, "gpu=on nvidia.com/gpu.count=2", []sharing.Pod{}, ""},
		"nothing is known while pods are not": {hami, marks, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := sharing.Reader{}.Read(sharing.NodeObject{Labels: labels(test.marks), Allocatable: test.units, Pods: test.pods})
			if diff := cmp.Diff(test.want, cardText(got.PerCard)); diff != "" {
				t.Errorf("cards (-want +got):\n%s", diff)
			}
		})
	}
}
