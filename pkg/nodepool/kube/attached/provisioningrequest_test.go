package attached

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// requestingCluster has one group with a template.
func requestingCluster() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ray.io/v1", "kind": "RayCluster",
		"metadata": map[string]any{"namespace": "ml", "name": "llm", "uid": "uid"},
		"spec": map[string]any{"workerGroupSpecs": []any{
			map[string]any{"groupName": "cpu"},
			map[string]any{"groupName": "gpu", "template": map[string]any{"spec": map[string]any{"schedulerName": "x"}}},
		}},
	}}
}

func TestARequestIsReadAsItWasMade(t *testing.T) {
	want := nodepool.ProvisioningRequest{Name: "heliostat-1", Template: "heliostat-1-t", Group: "gpu", Pods: 8, State: nodepool.CapacityAsked}
	request, ok := readRequest(requestObject(requestingCluster(), "v1", want))
	if !ok || request.Cluster.String() != "ml/llm" || request.UID != "uid" || request.Value != want {
		t.Errorf("%v %+v, want %+v", ok, request, want)
	}
	foreign := requestObject(requestingCluster(), "v1", want)
	foreign.SetAnnotations(nil)
	if _, ok := readRequest(foreign); ok {
		t.Error("somebody else's request counts as ours")
	}
}

// Whoever copies a request copies its labels too. A release of the copy would delete a PodTemplate of theirs.
func TestACopyOfARequestIsNotOurs(t *testing.T) {
	for name, template := range map[string]string{"heliostat-1": "theirs", "train": "train-pods"} {
		copied := nodepool.ProvisioningRequest{Name: name, Template: template, Group: "gpu", Pods: 8}
		if _, ok := readRequest(requestObject(requestingCluster(), "v1", copied)); ok {
			t.Errorf("request %s for PodTemplate %s counts as ours", name, template)
		}
	}
}

func TestWhatEndsARequestCountsBeforeWhatItHadReached(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	yes := func(kind string) metav1.Condition {
		return metav1.Condition{Status: "True", Type: kind, Message: kind, LastTransitionTime: at}
	}
	no := func(kind string) metav1.Condition {
		return metav1.Condition{Status: "False", Type: kind, Message: "not " + kind}
	}
	for _, c := range []struct {
		conditions []metav1.Condition
		state      nodepool.ProvisioningState
		message    string
	}{
		{nil, nodepool.CapacityAsked, ""},
		{[]metav1.Condition{yes("Accepted")}, nodepool.CapacityAsked, "Accepted"},
		{[]metav1.Condition{yes("Accepted"), no("Provisioned")}, nodepool.CapacityAsked, "not Provisioned"},
		{[]metav1.Condition{no("Provisioned")}, nodepool.CapacityAsked, "not Provisioned"},
		{[]metav1.Condition{yes("Accepted"), yes("Provisioned")}, nodepool.CapacityProvisioned, "Provisioned"},
		{[]metav1.Condition{yes("Accepted"), yes("Provisioned"), yes("BookingExpired")}, nodepool.CapacityLost, "BookingExpired"},
		{[]metav1.Condition{yes("Provisioned"), yes("CapacityRevoked")}, nodepool.CapacityLost, "CapacityRevoked"},
		{[]metav1.Condition{yes("Accepted"), no("Provisioned"), yes("Failed")}, nodepool.CapacityFailed, "Failed"},
	} {
		var got nodepool.ProvisioningRequest
		judgeRequest(&got, c.conditions)
		if got.State != c.state || got.Message != c.message {
			t.Errorf("%v: %s %q, want %s %q", c.conditions, got.State, got.Message, c.state, c.message)
		}
	}
}
