package attached

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"heliostat.dev/heliostat/pkg/nodepool"
)

const (
	requestResource = "provisioningrequests"
	// validFor is how long the Cluster Autoscaler tries, in seconds; see internal/addon/provisioning.
	validFor = "900"
)

// requestVersions are those that can be read, the best first.
var requestVersions = []string{"v1", "v1beta1"}

func resource(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: autoscalingGroup, Version: version, Resource: requestResource}
}

// requestObject returns a request for pods of a group of the RayCluster.
func requestObject(rayCluster *unstructured.Unstructured, version string, r nodepool.ProvisioningRequest,
) *unstructured.Unstructured {
	return madeFor(rayCluster, r.Name, map[string]string{groupAnnotation: r.Group}, map[string]any{
		"apiVersion": autoscalingGroup + "/" + version, "kind": "ProvisioningRequest",
		"spec": map[string]any{
			"provisioningClassName": nodepool.AtomicScaleUp,
			"parameters":            map[string]any{"ValidUntilSeconds": validFor},
			"podSets": []any{map[string]any{
				"count": int64(r.Pods), "podTemplateRef": map[string]any{"name": r.Name},
			}},
		},
	})
}

// template returns the PodTemplate of a request, with the labels of the group's pods.
func template(rayCluster *unstructured.Unstructured, labels map[string]string, r nodepool.ProvisioningRequest,
) (*unstructured.Unstructured, error) {
	pods, err := wholeTemplate(rayCluster, r.Group, labels)
	switch {
	case err != nil:
		return nil, err
	case pods == nil:
		return nil, fmt.Errorf("RayCluster %s/%s has no worker group %s with a template: %w", rayCluster.GetNamespace(),
			rayCluster.GetName(), r.Group, nodepool.ErrConflict)
	}
	return madeFor(rayCluster, r.Name, map[string]string{groupAnnotation: r.Group}, map[string]any{
		"apiVersion": "v1", "kind": "PodTemplate", "template": pods,
	}), nil
}

// readRequest reads a request with the RayCluster that owns it; false for one that is not Heliostat's.
func readRequest(object *unstructured.Unstructured) (of Object[nodepool.ProvisioningRequest], ok bool) {
	group, ours := object.GetAnnotations()[groupAnnotation]
	var spec struct {
		Spec struct {
			PodSets []struct {
				Count int `json:"count"`
			} `json:"podSets"`
		} `json:"spec"`
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if !ours || runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &spec) != nil ||
		len(spec.Spec.PodSets) != 1 {
		return of, false
	}
	for _, reference := range object.GetOwnerReferences() {
		if reference.Kind != "RayCluster" {
			continue
		}
		request := nodepool.ProvisioningRequest{
			Name: object.GetName(), UID: string(object.GetUID()), Group: group, Pods: spec.Spec.PodSets[0].Count,
			CreatedAt: object.GetCreationTimestamp().Time, Deleting: object.GetDeletionTimestamp() != nil,
		}
		judgeRequest(&request, spec.Status.Conditions)
		of.Cluster = nodepool.ClusterKey{Namespace: object.GetNamespace(), Name: reference.Name}
		of.UID, of.Value = string(reference.UID), request
		return of, true
	}
	return of, false
}

// judgeRequest sets the state by the conditions: what ends a request counts before what it had reached.
func judgeRequest(r *nodepool.ProvisioningRequest, conditions []metav1.Condition) {
	r.State = nodepool.CapacityAsked
	for _, kind := range []struct {
		name  string
		state nodepool.ProvisioningState
	}{
		{"Failed", nodepool.CapacityFailed},
		{"CapacityRevoked", nodepool.CapacityLost},
		{"BookingExpired", nodepool.CapacityLost},
		{"Provisioned", nodepool.CapacityProvisioned},
		{"Accepted", nodepool.CapacityAsked},
	} {
		for _, c := range conditions {
			if c.Type != kind.name {
				continue
			}
			if r.Message == "" {
				r.Message = c.Message
			}
			if c.Status == metav1.ConditionTrue {
				r.State, r.Since = kind.state, c.LastTransitionTime.Time
				if kind.state != nodepool.CapacityAsked { // otherwise, why it is not provisioned says more
					r.Message = c.Message
				}
				return
			}
		}
	}
}
