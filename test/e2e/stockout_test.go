package e2e

import (
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/test/rig"
)

// TestTheNextGroupServesWhenTheFirstIsOutOfStock has two groups that provide the same resources to Ray. The pods of the
// preferred group request a device that no node has. A node autoscaler that has reported on another pod reports nothing
// about them.
func TestTheNextGroupServesWhenTheFirstIsOutOfStock(t *testing.T) {
	t.Parallel()
	scarce := rig.Group{Name: "a-scarce", Max: 4, Devices: map[string]int64{"nvidia.com/gpu": 1, "example.com/scarce": 1}}
	plenty := rig.Group{Name: "b-plenty", Max: 4, Devices: map[string]int64{"nvidia.com/gpu": 1}}
	s := stage(t, rig.Cluster{Name: "stock", IdleSeconds: 60, Groups: []rig.Group{scarce, plenty}})
	s.spokenOf("another")
	s.rest(http.MethodPost, "/request_resources", `{"bundles": [{"GPU": 1}]}`)
	patched := func(group string) time.Time {
		var at time.Time
		s.eventually(group+" to be patched", func(facts []rig.Fact) bool {
			i := slices.IndexFunc(facts, func(f rig.Fact) bool { return f.Stage == rig.GroupPatched && f.Group == group })
			if i >= 0 {
				at = facts[i].At
			}
			return i >= 0
		})
		return at
	}
	first := patched("a-scarce")
	if took := patched("b-plenty").Sub(first); took < time.Minute || took > 90*time.Second {
		t.Errorf("the next group was launched %v after the first, want 60 s of silence, which is the proof, and at most 30 s more", took)
	}
	s.k8sEvent("GroupFailing")
	s.told("a group that cools down", func(st status) bool {
		return len(st.Groups) == 2 && slices.ContainsFunc(st.Groups[0].Reasons, func(r struct{ Code, Message string }) bool { return r.Code == "cooling_down" })
	})
	s.workers("b-plenty", 1)
	s.created("a-scarce", 1)
}

// spokenOf writes an Event about a pod as the Cluster Autoscaler does. The Cluster Autoscaler is not installed here.
func (s *scene) spokenOf(pod string) {
	s.Helper()
	now := metav1.NewTime(time.Now())
	_, err := lab.Kube.CoreV1().Events(s.namespace).Create(s.ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: pod + "-", Namespace: s.namespace},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: s.namespace, Name: pod},
		Source:         corev1.EventSource{Component: "cluster-autoscaler"}, Type: corev1.EventTypeNormal,
		Reason: "TriggeredScaleUp", Message: "pod triggered scale-up: [{gpu 0->1 (max: 1)}]",
		FirstTimestamp: now, LastTimestamp: now,
	}, metav1.CreateOptions{})
	s.must(err)
}
