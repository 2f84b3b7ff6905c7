package attached

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// Ask creates a request with its PodTemplate, whose pods also have these labels. A request that exists already is no
// error: the name says what it is for.
func (w *Provisioning) Ask(
	ctx context.Context, rayCluster *unstructured.Unstructured, labels map[string]string,
	r nodepool.ProvisioningRequest,
) error {
	version, err := w.kind.Served.Version()
	if err != nil {
		return fmt.Errorf("finding the version of ProvisioningRequests: %w", err)
	}
	pods, err := template(rayCluster, labels, r)
	if err != nil {
		return err
	}
	request, namespace := requestObject(rayCluster, version, r), rayCluster.GetNamespace()
	requests := w.config.Client.Resource(resource(version)).Namespace(namespace)
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
		err = errors.Join(err, w.deleteTemplate(ctx, namespace, r.Name))
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
	if err = w.deleteTemplate(ctx, pods.GetNamespace(), pods.GetName()); err != nil {
		return false, err
	}
	options.DryRun = nil
	_, err = client.Create(ctx, pods, options)
	return false, err
}

func (w *Provisioning) deleteTemplate(ctx context.Context, namespace, name string) error {
	err := w.podTemplates(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting PodTemplate %s/%s: %w", namespace, name, err)
	}
	return nil
}

// Release deletes a request and its PodTemplate. A request that was made again under the same name stays.
func (w *Provisioning) Release(ctx context.Context, namespace string, r nodepool.ProvisioningRequest) error {
	version, err := w.kind.Served.Version()
	if err != nil {
		return fmt.Errorf("finding the version of ProvisioningRequests: %w", err)
	}
	err = w.config.Client.Resource(resource(version)).Namespace(namespace).Delete(ctx, r.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: new(types.UID(r.UID))},
	})
	if apierrors.IsConflict(err) {
		return nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting ProvisioningRequest %s/%s: %w", namespace, r.Name, err)
	}
	return w.deleteTemplate(ctx, namespace, r.Name)
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
