package e2e

import (
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/test/rig"
)

// fallback is the longest time from a node autoscaler's refusal to the launch of the next group.
const fallback = 30 * time.Second

// statement is an Event of a node autoscaler about a pod. The node autoscalers are not installed here.
type statement struct{ source, reason, message string }

var (
	triggered = statement{"cluster-autoscaler", "TriggeredScaleUp", "pod triggered scale-up: [{gpu 0->1 (max: 1)}]"}
	refused   = statement{"cluster-autoscaler", "NotTriggerScaleUp",
		"pod didn't trigger scale-up: 1 in backoff after failed scale-up"}
)

// TestTheNextGroupServesWhenTheFirstIsOutOfStock has three groups that provide the same resources to Ray. The pods of
// the first two request a device of which the only node of a pool has none left. A node autoscaler promises another node
// for the first, and then cannot get it. About the second, it reports nothing.
func TestTheNextGroupServesWhenTheFirstIsOutOfStock(t *testing.T) {
	t.Parallel()
	scarce := map[string]int64{"nvidia.com/gpu": 1, "example.com/scarce": 1}
	cheapestFirst := map[string]string{"heliostat.dev/price": `{"a-refused": 1, "b-silent": 2, "c-plenty": 3}`}
	s := stage(t, rig.Cluster{Name: "stock", IdleSeconds: 60, Annotations: cheapestFirst, Groups: []rig.Group{
		{Name: "a-refused", Max: 4, Devices: scarce},
		{Name: "b-silent", Max: 4, Devices: scarce},
		{Name: "c-plenty", Max: 4, Devices: map[string]int64{"nvidia.com/gpu": 1}},
	}})
	s.fills("gpus-scarce", "example.com/scarce")
	s.rest(http.MethodPost, "/request_resources", `{"bundles": [{"GPU": 1}]}`)

	pod := s.firstPod("a-refused")
	s.say(triggered, pod)
	time.Sleep(1100 * time.Millisecond) // Event times are in whole seconds
	s.say(refused, pod)
	said := time.Now()
	silent := s.patched("b-silent")
	if took := rig.Unhindered(said, silent); took > fallback {
		t.Errorf("the next group was launched %v after the node autoscaler refused the first, want at most %v", took, fallback)
	}
	s.launchedAfterSilence("c-plenty", s.firstPod("b-silent"), silent)
	s.k8sEvent("GroupFailing")
	s.told("two groups that cool down", func(st status) bool {
		cooling := 0
		for _, g := range st.Groups {
			if slices.ContainsFunc(g.Reasons, func(r struct{ Code, Message string }) bool { return r.Code == "cooling_down" }) {
				cooling++
			}
		}
		return cooling == 2
	})
	s.workers("c-plenty", 1)
	s.created("a-refused", 1)
	s.created("b-silent", 1)
}

// launchedAfterSilence waits until a group is launched, and checks that nobody had said anything about a pod of the group
// before it for 60 s, which is the proof, and for at most 90 s. The API server says when the pod was created, in whole
// seconds; this test may learn of a patch late.
func (s *scene) launchedAfterSilence(group, pod string, patched time.Time) {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	object, err := lab.Kube.CoreV1().Pods(s.namespace).Get(ctx, pod, metav1.GetOptions{})
	s.must(err)
	next := s.patched(group)
	silence, took := next.Sub(object.CreationTimestamp.Time), rig.Unhindered(patched, next)
	if silence < time.Minute || took > 90*time.Second {
		s.Errorf("group %s was launched %v after the one before it, %v after its pod, want after 60 to 90 s", group, next.Sub(patched), silence)
	}
}

// fills runs a pod on the node that takes one unit of a resource.
func (s *scene) fills(node, device string) {
	s.Helper()
	takes := corev1.ResourceList{corev1.ResourceName(device): resource.MustParse("1")}
	_, err := lab.Kube.CoreV1().Pods(s.namespace).Create(s.ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "filler"},
		Spec: corev1.PodSpec{
			NodeSelector:                  map[string]string{corev1.LabelHostname: node},
			TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{
				Name: "main", Image: "machine", Command: []string{"/bin/bash", "-c", "sleep 3600; true"},
				Resources: corev1.ResourceRequirements{Requests: takes, Limits: takes},
			}},
		},
	}, metav1.CreateOptions{})
	s.must(err)
	ctx, cancel := s.patient()
	defer cancel()
	for {
		pod, err := lab.Kube.CoreV1().Pods(s.namespace).Get(ctx, "filler", metav1.GetOptions{})
		s.must(err)
		if pod.Spec.NodeName != "" {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// firstPod waits for a group's first pod.
func (s *scene) firstPod(group string) (pod string) {
	s.Helper()
	s.eventually("a pod of "+group, func(facts []rig.Fact) bool {
		pods := rig.Pods(facts, group)
		if len(pods) > 0 {
			pod = pods[0]
		}
		return pod != ""
	})
	return pod
}

// patched waits until the group's replicas are patched, and returns when they were patched first.
func (s *scene) patched(group string) time.Time {
	s.Helper()
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

// say writes an Event about a pod as a node autoscaler does.
func (s *scene) say(what statement, pod string) {
	s.Helper()
	now := metav1.NewTime(time.Now())
	_, err := lab.Kube.CoreV1().Events(s.namespace).Create(s.ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: pod + "-", Namespace: s.namespace},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: s.namespace, Name: pod},
		Source:         corev1.EventSource{Component: what.source}, Type: corev1.EventTypeNormal,
		Reason: what.reason, Message: what.message,
		FirstTimestamp: now, LastTimestamp: now,
	}, metav1.CreateOptions{})
	s.must(err)
}
