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
	}{
		{"it starts", []*corev1.Pod{pod("a")}, nil, 0},
		{"its Ray node lives", []*corev1.Pod{pod("a")}, map[string]verdict.Worker{"a": {}}, 0},
		{"it drains", []*corev1.Pod{pod("a")}, map[string]verdict.Worker{"a": {Draining: true}}, 1},
		{"its Ray node has ended", []*corev1.Pod{pod("a")}, nil, 1},
		{"for a while", []*corev1.Pod{pod("a"), pod("b")}, nil, 1},
		{"its container started again", []*corev1.Pod{pod("a"), pod("b")}, map[string]verdict.Worker{"a": {}}, 0},
		{"another one ends before it has joined", []*corev1.Pod{pod("a"), ending}, map[string]verdict.Worker{"a": {}}, 1},
		{"both are gone", nil, nil, 0},
	} {
		if got := spentOf(step.pods, step.living, joined); got != step.want {
			t.Errorf("%s: %d, want %d", step.name, got, step.want)
		}
	}
	if len(joined) > 0 {
		t.Errorf("%v are kept, and are gone", joined)
	}
}
