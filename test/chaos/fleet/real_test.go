package fleet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/test/chaos/verdict"
)

// TestADrainedPodOnARealRayIsSpentUntilItIsGone has the readings of a head after a drain: the pod exists for seconds
// after its Ray node has ended, and a launch beside it is for no less work.
func TestADrainedPodOnARealRayIsSpentUntilItIsGone(t *testing.T) {
	pod := func(name string) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	ending := pod("b")
	ending.DeletionTimestamp = &metav1.Time{}
	joined := map[string]bool{}
	for _, step := range []struct {
		name   string
		pods   []*corev1.Pod
		living map[string]verdict.Worker
		want   int64
		starts bool
	}{
		{"it starts", []*corev1.Pod{pod("a")}, nil, 0, true},
		{"its Ray node lives", []*corev1.Pod{pod("a")}, map[string]verdict.Worker{"a": {}}, 0, false},
		{"it drains", []*corev1.Pod{pod("a")}, map[string]verdict.Worker{"a": {Draining: true}}, 1, false},
		{"its Ray node has ended", []*corev1.Pod{pod("a")}, nil, 1, false},
		{"for a while", []*corev1.Pod{pod("a"), pod("b")}, nil, 1, true},
		{"its container started again", []*corev1.Pod{pod("a"), pod("b")}, map[string]verdict.Worker{"a": {}}, 0, true},
		{"another one ends before it has joined", []*corev1.Pod{pod("a"), ending}, map[string]verdict.Worker{"a": {}}, 1,
			false},
		{"both are gone", nil, nil, 0, false},
	} {
		if got := spentOf(step.pods, step.living, joined); got != step.want {
			t.Errorf("%s: %d, want %d", step.name, got, step.want)
		}
		if got := start(step.pods, joined); got != step.starts {
			t.Errorf("%s: a pod starts: %t, want %t", step.name, got, step.starts)
		}
	}
	if len(joined) > 0 {
		t.Errorf("%v are kept, and are gone", joined)
	}
}
