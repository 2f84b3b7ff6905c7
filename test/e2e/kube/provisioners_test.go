package kube

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/test/rig"
)

// say writes an Event about a pod, as a component of the cluster does.
func (s *scene) say(component, reason, message string, pod nodepool.Worker) {
	s.Helper()
	now := metav1.NewTime(time.Now())
	_, err := lab.Client().CoreV1().Events(s.namespace).Create(s.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: pod.Pod + "-", Namespace: s.namespace},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: s.namespace, Name: pod.Pod},
		Source:         corev1.EventSource{Component: component}, Type: corev1.EventTypeNormal, Reason: reason, Message: message,
		FirstTimestamp: now, LastTimestamp: now,
	}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
}

// TestWhatNodeAutoscalersSayOfAPodIsHeardFromTheAPIServer checks that the API server selects Events by their source.
// The scheduler's own FailedScheduling must not count as Karpenter's.
func TestWhatNodeAutoscalersSayOfAPodIsHeardFromTheAPIServer(t *testing.T) {
	t.Parallel()
	s := stage(t, "provisioners")
	s.create("llm", rig.Group{Name: "gpu", Replicas: 1, Max: 2})
	m := s.manager(kube.Options{})
	worker := func() nodepool.Worker {
		for _, w := range s.read(m, "llm").Workers {
			return w
		}
		return nodepool.Worker{}
	}
	s.until("a pod that the scheduler finds no node for", func() bool { return worker().Unschedulable != "" })
	another := nodepool.Worker{Pod: "another"}
	s.say("cluster-autoscaler", "TriggeredScaleUp", "pod triggered scale-up: [{gpu 0->1 (max: 1)}]", another)
	s.until("a node autoscaler to be heard", func() bool { return s.read(m, "llm").ProvisionersSeen })
	if w := worker(); w.NodeRefused != "" || w.NodePromised {
		t.Errorf("refused %q, promised %v, before any node autoscaler said anything of it", w.NodeRefused, w.NodePromised)
	}
	s.say("cluster-autoscaler", "TriggeredScaleUp", "pod triggered scale-up: [{gpu 0->1 (max: 1)}]", worker())
	s.until("the promise", func() bool { return worker().NodePromised })
	time.Sleep(1100 * time.Millisecond) // Event times are in whole seconds
	const refusal = "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
	s.say("cluster-autoscaler", "NotTriggerScaleUp", refusal, worker())
	s.until("the refusal", func() bool { return worker().NodeRefused == refusal })
}

// TestManagedAndConfiguredProvisionersAreHeard checks that the API server accepts names with a slash or a comma in its
// field selector.
func TestManagedAndConfiguredProvisionersAreHeard(t *testing.T) {
	t.Parallel()
	for namespace, source := range map[string]string{"autoscaler-managed": "eks-auto-mode/compute", "autoscaler-configured": "in-house, of ours"} {
		s := stage(t, namespace)
		s.create("llm", rig.Group{Name: "gpu", Replicas: 1, Max: 2})
		m := s.manager(kube.Options{Namespaces: []string{s.namespace}, NodeAutoscalers: []string{"in-house, of ours"}})
		worker := func() nodepool.Worker {
			for _, w := range s.read(m, "llm").Workers {
				return w
			}
			return nodepool.Worker{}
		}
		s.until("a pod that the scheduler finds no node for", func() bool { return worker().Unschedulable != "" })
		if s.read(m, "llm").ProvisionersSeen {
			t.Error("silence counts before any node autoscaler has spoken")
		}
		s.say(source, "Nominated", "Pod should schedule on: nodeclaim/gpu-"+namespace, worker())
		s.until("the promise of "+source, func() bool { return worker().NodePromised && s.read(m, "llm").ProvisionersSeen })
		s.fail(source, "gpu-"+namespace, "out of p5.48xlarge")
		s.until("the failure of its NodeClaim", func() bool { return worker().NodeRefused == "out of p5.48xlarge" })
	}
}

// fail writes an Event about a NodeClaim, which is cluster-scoped.
func (s *scene) fail(component, claim, message string) {
	s.Helper()
	now := metav1.NewTime(time.Now())
	events := lab.Client().CoreV1().Events(metav1.NamespaceDefault)
	event, err := events.Create(s.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: claim + "-"},
		InvolvedObject: corev1.ObjectReference{Kind: "NodeClaim", Name: claim},
		Source:         corev1.EventSource{Component: component}, Type: corev1.EventTypeWarning, Reason: "InsufficientCapacityError", Message: message,
		FirstTimestamp: now, LastTimestamp: now,
	}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = events.Delete(context.Background(), event.Name, metav1.DeleteOptions{}) })
}
