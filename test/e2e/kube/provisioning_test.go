package kube

import (
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/test/rig"
)

var (
	definitions   = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	provisionings = schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1", Resource: "provisioningrequests"}
)

// serveProvisioningRequests installs the real CustomResourceDefinition.
func (s *scene) serveProvisioningRequests() {
	s.Helper()
	text, err := os.ReadFile("testdata/provisioningrequests.yaml")
	must(s, err)
	definition := &unstructured.Unstructured{}
	must(s, yaml.Unmarshal(text, &definition.Object))
	_, err = lab.Dynamic().Resource(definitions).Create(s.Context(), definition, metav1.CreateOptions{})
	must(s, err)
	s.until("ProvisioningRequests to be served", func() bool {
		_, err := lab.Dynamic().Resource(provisionings).List(s.Context(), metav1.ListOptions{})
		return err == nil
	})
}

// answer sets a condition of a request, as the Cluster Autoscaler does, and waits until the manager sees the state.
func (s *scene) answer(m *kube.Manager, name, condition, message string, want nodepool.ProvisioningState) nodepool.ProvisioningRequest {
	s.Helper()
	client := lab.Dynamic().Resource(provisionings).Namespace(s.namespace)
	object, err := client.Get(s.Context(), name, metav1.GetOptions{})
	must(s, err)
	old, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	added := map[string]any{"type": condition, "status": "True", "reason": "Played", "message": message,
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}
	must(s, unstructured.SetNestedSlice(object.Object, append(old, added), "status", "conditions"))
	_, err = client.UpdateStatus(s.Context(), object, metav1.UpdateOptions{})
	must(s, err)
	var seen nodepool.ProvisioningRequest
	s.until("the condition "+condition, func() bool {
		for _, seen = range s.read(m, "llm").Provisioning.Requests {
			if seen.State == want && seen.Message == message {
				return true
			}
		}
		return false
	})
	return seen
}

func TestAProvisioningRequestIsMadeConsumedAndReleased(t *testing.T) {
	s := stage(t, "provisioning") // not parallel: until it serves them, the API server has no ProvisioningRequests
	manifest := rig.Cluster{Namespace: s.namespace, Name: "llm", Groups: []rig.Group{{Name: "gpu", Max: 9}}}
	manifest.Annotations = map[string]string{nodepool.ProvisioningAnnotation: "true"}
	s.createAs(manifest.Manifest())
	early := s.manager(kube.Options{Provisioning: true})
	s.until("the missing kind to be known", func() bool {
		known := s.read(early, "llm").Provisioning
		return known != nil && known.Unread == "the API server does not serve provisioningrequests.autoscaling.x-k8s.io"
	})
	s.serveProvisioningRequests()
	m := s.manager(kube.Options{Provisioning: true})
	s.until("the first reading", func() bool { return s.read(m, "llm").Provisioning.Unread == "" })
	cluster := s.read(m, "llm")
	if !cluster.Groups[0].Provisions {
		t.Error("the annotation has no effect")
	}
	change := nodepool.ProvisioningChange{
		Kind: nodepool.AskCapacity, Cluster: cluster.Key, UID: cluster.UID,
		Request: nodepool.ProvisioningRequest{Name: "heliostat-1", Group: "gpu", Pods: 2},
	}
	for range 2 { // a process that does not see its own write tries again
		must(s, m.Provision(t.Context(), change))
	}
	s.asked(cluster)
	s.answer(m, "heliostat-1", "Accepted", "tried", nodepool.CapacityAsked)
	change.Request = s.answer(m, "heliostat-1", "Provisioned", "found", nodepool.CapacityProvisioned)
	_, err := m.Apply(t.Context(), s.targets(s.read(m, "llm"), map[string]int{"gpu": 2}))
	must(s, err)
	s.until("two pods", func() bool { return len(s.read(m, "llm").Workers) == 2 })
	for _, kind := range []string{nodepool.ConsumeCapacity, nodepool.ForgetCapacity} {
		s.mark(m, change, kind)
	}
	s.answer(m, "heliostat-1", "BookingExpired", "over", nodepool.CapacityLost)
	change.Kind = nodepool.ReleaseCapacity
	for range 2 {
		must(s, m.Provision(t.Context(), change))
	}
	s.until("the request to be gone", func() bool { return len(s.read(m, "llm").Provisioning.Requests) == 0 })
	_, err = lab.Client().CoreV1().PodTemplates(s.namespace).Get(t.Context(), change.Request.Template, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the PodTemplate is left: %v", err)
	}
}

// asked checks the objects that the Cluster Autoscaler reads.
func (s *scene) asked(cluster nodepool.Cluster) {
	s.Helper()
	object, err := lab.Dynamic().Resource(provisionings).Namespace(s.namespace).Get(s.Context(), "heliostat-1", metav1.GetOptions{})
	must(s, err)
	class, _, _ := unstructured.NestedString(object.Object, "spec", "provisioningClassName")
	if owner := object.GetOwnerReferences(); class != nodepool.AtomicScaleUp || len(owner) != 1 || string(owner[0].UID) != cluster.UID {
		s.Errorf("class %s, owners %v", class, owner)
	}
	sets, _, _ := unstructured.NestedSlice(object.Object, "spec", "podSets")
	if len(sets) != 1 || sets[0].(map[string]any)["count"] != int64(2) {
		s.Errorf("pod sets %v", sets)
	}
	name, _, _ := unstructured.NestedString(sets[0].(map[string]any), "podTemplateRef", "name")
	template, err := lab.Client().CoreV1().PodTemplates(s.namespace).Get(s.Context(), name, metav1.GetOptions{})
	must(s, err)
	if len(template.Template.Spec.Containers) == 0 || len(template.OwnerReferences) != 1 {
		s.Errorf("PodTemplate %v", template)
	}
	if template.Template.Labels["ray.io/group"] != "gpu" {
		s.Errorf("the PodTemplate lacks the labels of KubeRay's pods: %v", template.Template.Labels)
	}
}

// mark annotates a pod, or removes its annotations, and waits until the manager sees it.
func (s *scene) mark(m *kube.Manager, change nodepool.ProvisioningChange, kind string) {
	s.Helper()
	want := map[string]string{nodepool.ConsumeCapacity: "heliostat-1"}[kind]
	s.until(kind, func() bool {
		w := s.read(m, "llm").Workers[0]
		if w.Consumes == want {
			return s.pod(w.Pod).Annotations[nodepool.ConsumeAnnotation] == want
		}
		change.Kind, change.Pod = kind, w
		_ = m.Provision(s.Context(), change) // a conflict with the scheduler is tried again
		return false
	})
}

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
	must(s, err)
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
