package sharing_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
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

func TestBytesOfKoordinatorArePercentOfACard(t *testing.T) {
	const gib = 1 << 30
	node := sharing.Reader{}.Read(sharing.NodeObject{Allocatable: quantities("koordinator.sh/gpu-memory", 32*gib, "koordinator.sh/gpu-memory-ratio", 200),
		Pods: []sharing.Pod{pod(quantities("koordinator.sh/gpu-core", 10, "koordinator.sh/gpu-memory", 8*gib))}})
	if got := cardText(node.PerCard); got != "0 50/?/90, 1 50/?/90" {
		t.Errorf("a pod without a record leaves %s", got)
	}
	for name, test := range map[string]struct {
		of   map[string]raydemand.Amount
		want int64
	}{
		"half a card":          {amounts("koordinator.sh/gpu-memory", 8*gib), 50},
		"more than half":       {amounts("koordinator.sh/gpu-memory", 9*gib), 57},
		"a third":              {amounts("koordinator.sh/gpu-memory", 16*gib/3), 33},
		"a card":               {amounts("koordinator.sh/gpu-memory", 16*gib), 100},
		"more than a card":     {amounts("koordinator.sh/gpu-memory", 17*gib), 101},
		"two cards":            {amounts("koordinator.sh/gpu-memory", 32*gib, "koordinator.sh/gpu-core", 200), 100},
		"two shares":           {amounts("koordinator.sh/gpu-memory", 16*gib, "koordinator.sh/gpu.shared", 2), 50},
		"percent and no bytes": {amounts("koordinator.sh/gpu-memory-ratio", 50), 0},
	} {
		if got := node.MemoryPercent(test.of); got != test.want {
			t.Errorf("%s: %d percent, want %d", name, got, test.want)
		}
	}
}

func amounts(list ...any) map[string]raydemand.Amount {
	of := map[string]raydemand.Amount{}
	for name, units := range quantities(list...) {
		of[name] = raydemand.Whole(units)
	}
	return of
}
