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
