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
				"count": int64(r.Pods), "podTemplateRef": map[string]any{"name": r.Template},
			}},
		},
	})
}

// readRequest reads a request with the RayCluster that owns it; false for one that is not Heliostat's.
func readRequest(object *unstructured.Unstructured) (of Object[nodepool.ProvisioningRequest], ours bool) {
	var read struct {
		Spec struct {
			PodSets []struct {
				Count          int `json:"count"`
				PodTemplateRef struct {
					Name string `json:"name"`
				} `json:"podTemplateRef"`
			} `json:"podSets"`
		} `json:"spec"`
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	of.Cluster, of.UID, ours = owner(object)
	if !ours || runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &read) != nil ||
		len(read.Spec.PodSets) != 1 {
		return of, false
	}
	set := read.Spec.PodSets[0]
	name := object.GetName()
	if !strings.HasPrefix(name, madeBy+"-") || !strings.HasPrefix(set.PodTemplateRef.Name, name) {
		return of, false // a copy that somebody made, for a PodTemplate of theirs
	}
	of.Value = nodepool.ProvisioningRequest{
		Name: name, UID: string(object.GetUID()), Group: object.GetAnnotations()[groupAnnotation],
		Pods: set.Count, Template: set.PodTemplateRef.Name, CreatedAt: object.GetCreationTimestamp().Time,
		Deleting: object.GetDeletionTimestamp() != nil,
	}
	judgeRequest(&of.Value, read.Status.Conditions)
	return of, true
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
// error: the name says what it is for. The name of the PodTemplate says what is in it, so one that a request has left
// behind is right as long as the group's template is the same.
func (w *Provisioning) Ask(
	ctx context.Context, rayCluster *unstructured.Unstructured, labels map[string]string,
	r nodepool.ProvisioningRequest,
) error {
	namespace, options := rayCluster.GetNamespace(), metav1.CreateOptions{FieldManager: nodepool.FieldManager}
	requests, version, err := w.client("ProvisioningRequests", namespace)
	if err != nil {
		return err
	}
	pods, content, err := podTemplate(rayCluster, r.Group, labels)
	if err != nil {
		return err
	}
	r.Template = r.Name + "-" + content[:8]
	pods.SetName(r.Template)
	templates := w.podTemplates(namespace)
	_, err = templates.Create(ctx, pods, options)
	existed := apierrors.IsAlreadyExists(err) // perhaps for a request that exists too
	if err != nil && !existed {
		return fmt.Errorf("creating PodTemplate %s/%s: %w", namespace, r.Template, err)
	}
	_, err = requests.Create(ctx, requestObject(rayCluster, version, r), options)
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	err = fmt.Errorf("creating ProvisioningRequest %s/%s: %w", namespace, r.Name, err)
	if !existed && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) {
		err = errors.Join(err, remove(ctx, templates, "PodTemplate", namespace, r.Template, ""))
	}
	return err
}

// Release deletes a request and its PodTemplate. A request that was made again under the same name stays.
func (w *Provisioning) Release(ctx context.Context, namespace string, r nodepool.ProvisioningRequest) error {
	requests, _, err := w.client("ProvisioningRequests", namespace)
	if err == nil {
		err = remove(ctx, requests, "ProvisioningRequest", namespace, r.Name, types.UID(r.UID))
	}
	switch {
	case apierrors.IsConflict(err):
		return nil
	case err != nil:
		return err
	}
	return remove(ctx, w.podTemplates(namespace), "PodTemplate", namespace, r.Template, "")
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
