package attached

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// Provisioning knows the ProvisioningRequests of RayClusters, and writes them.
type Provisioning struct {
	*untyped[nodepool.ProvisioningRequest]
}

// NewProvisioning prepares the reads; Start begins them.
func NewProvisioning(c Config) *Provisioning {
	return &Provisioning{New(c, Kind[*unstructured.Unstructured, nodepool.ProvisioningRequest]{
		Served: c.Served(autoscalingGroup, requestVersions...), Resource: requestResource, Selector: Made,
		Read: readRequest,
	})}
}

// AddTo adds to a RayCluster what is known of its ProvisioningRequests.
func (w *Provisioning) AddTo(cluster *nodepool.Cluster) {
	if w == nil {
		return
	}
	requests, state := w.Of(cluster.Key, cluster.UID)
	slices.SortFunc(requests, func(a, b nodepool.ProvisioningRequest) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.Name, b.Name))
	})
	cluster.Provisioning = &nodepool.Provisioning{Unread: state.Unknown, Requests: requests}
}

const (
	requestResource = "provisioningrequests"
	// validFor is how long the Cluster Autoscaler tries, in seconds; see internal/addon/provisioning.
	validFor = "900"
)

// requestVersions are those that can be read, the best first.
var requestVersions = []string{"v1", "v1beta1"}

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
	return podTemplate(rayCluster, r.Name, r.Group, pods), nil
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

// Ask creates a request with its PodTemplate, whose pods also have these labels. A request that exists already is no
// error: the name says what it is for.
func (w *Provisioning) Ask(
	ctx context.Context, rayCluster *unstructured.Unstructured, labels map[string]string,
	r nodepool.ProvisioningRequest,
) error {
	namespace := rayCluster.GetNamespace()
	requests, version, err := w.client("ProvisioningRequests", namespace)
	if err != nil {
		return err
	}
	pods, err := template(rayCluster, labels, r)
	if err != nil {
		return err
	}
	request := requestObject(rayCluster, version, r)
	switch exists, err := w.askTemplate(ctx, pods, requests, request); {
	case err != nil:
		return fmt.Errorf("creating PodTemplate %s/%s: %w", namespace, r.Name, err)
	case exists:
		return nil
	}
	_, err = requests.Create(ctx, request, metav1.CreateOptions{FieldManager: nodepool.FieldManager})
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	err = fmt.Errorf("creating ProvisioningRequest %s/%s: %w", namespace, r.Name, err)
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		err = errors.Join(err, remove(ctx, w.podTemplates(namespace), "PodTemplate", namespace, r.Name, ""))
	}
	return err
}

// askTemplate creates the PodTemplate of a request, or reports that the request exists. The PodTemplate of a request
// that is gone is replaced: the group may have another template since. That of one that exists is never missing, also
// not for a moment, because the Cluster Autoscaler would fail the request.
func (w *Provisioning) askTemplate(
	ctx context.Context, pods *unstructured.Unstructured, requests dynamic.ResourceInterface,
	request *unstructured.Unstructured,
) (exists bool, err error) {
	client, options := w.podTemplates(pods.GetNamespace()), metav1.CreateOptions{FieldManager: nodepool.FieldManager}
	if _, err = client.Create(ctx, pods, options); !apierrors.IsAlreadyExists(err) {
		return false, err
	}
	options.DryRun = []string{metav1.DryRunAll} // it needs no further right
	if _, err = requests.Create(ctx, request, options); apierrors.IsAlreadyExists(err) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("trying its ProvisioningRequest: %w", err)
	}
	if err = remove(ctx, client, "PodTemplate", pods.GetNamespace(), pods.GetName(), ""); err != nil {
		return false, err
	}
	options.DryRun = nil
	_, err = client.Create(ctx, pods, options)
	return false, err
}

// Release deletes a request and its PodTemplate. A request that was made again under the same name stays.
func (w *Provisioning) Release(ctx context.Context, namespace string, r nodepool.ProvisioningRequest) error {
	requests, _, err := w.client("ProvisioningRequests", namespace)
	if err != nil {
		return err
	}
	err = requests.Delete(ctx, r.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: new(types.UID(r.UID))},
	})
	if apierrors.IsConflict(err) {
		return nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting ProvisioningRequest %s/%s: %w", namespace, r.Name, err)
	}
	return remove(ctx, w.podTemplates(namespace), "PodTemplate", namespace, r.Name, "")
}

// PodAnnotations returns the annotations that a change writes to its pod, with nil for those that it removes.
func PodAnnotations(change nodepool.ProvisioningChange) map[string]any {
	if change.Kind == nodepool.ForgetCapacity {
		return map[string]any{nodepool.ConsumeAnnotation: nil, nodepool.ProvisioningClassAnnotation: nil}
	}
	return map[string]any{
		nodepool.ConsumeAnnotation:           change.Request.Name,
		nodepool.ProvisioningClassAnnotation: nodepool.AtomicScaleUp,
	}
}
