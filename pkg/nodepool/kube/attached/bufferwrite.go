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

// errForeign: somebody else made the object that has the name of one of Heliostat's.
var errForeign = errors.New("Heliostat did not make it for this RayCluster, so it is not changed")

// Keep creates the buffer with its PodTemplate, or changes both to be as they should be. labels are those of the
// group's pods. The PodTemplate comes first, because the node autoscaler refuses a buffer without one.
func (w *Buffers) Keep(
	ctx context.Context, rayCluster *unstructured.Unstructured, labels map[string]string, b nodepool.Buffer,
) error {
	namespace := rayCluster.GetNamespace()
	template, err := groupTemplate(rayCluster, b.Group, labels)
	switch {
	case err != nil:
		return err
	case template == nil:
		return fmt.Errorf("RayCluster %s/%s has no worker group %s with a template, so its pods cannot be described",
			namespace, rayCluster.GetName(), b.Group)
	}
	if b.Template, err = identity(template); err != nil {
		return fmt.Errorf("worker group %s: %w", b.Group, err)
	}
	if err := apply(ctx, w.podTemplates(namespace), podTemplate(rayCluster, b, template)); err != nil {
		return fmt.Errorf("writing PodTemplate %s/%s: %w", namespace, b.Name, err)
	}
	version, err := w.kind.Served.Version()
	if err != nil {
		return fmt.Errorf("finding the version of CapacityBuffers: %w", err)
	}
	buffers, err := w.kind.Served.In(bufferResource, namespace)
	if err != nil {
		return fmt.Errorf("finding the version of CapacityBuffers: %w", err)
	}
	if err := apply(ctx, buffers, buffer(rayCluster, version, b)); err != nil {
		return fmt.Errorf("writing CapacityBuffer %s/%s: %w", namespace, b.Name, err)
	}
	return nil
}

// apply writes an object by server-side apply, so that what others write to it stays. It takes over no object of
// somebody else: it reads first. One that appears in between has no fields of this manager, so it is a conflict.
func apply(ctx context.Context, client dynamic.ResourceInterface, object *unstructured.Unstructured) error {
	options := metav1.ApplyOptions{FieldManager: nodepool.FieldManager}
	switch found, err := client.Get(ctx, object.GetName(), metav1.GetOptions{}); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return err
	case !ours(found, string(object.GetOwnerReferences()[0].UID)):
		return errForeign
	default:
		object.SetUID(found.GetUID()) // not of one that was made again since
		options.Force = true
	}
	_, err := client.Apply(ctx, object.GetName(), object, options)
	return err
}

// Remove deletes a buffer of the RayCluster, and then its PodTemplate. Objects that others made again under the same
// name stay.
func (w *Buffers) Remove(ctx context.Context, rayCluster *unstructured.Unstructured, b nodepool.Buffer) error {
	namespace := rayCluster.GetNamespace()
	buffers, err := w.kind.Served.In(bufferResource, namespace)
	if err != nil {
		return fmt.Errorf("finding the version of CapacityBuffers: %w", err)
	}
	err = buffers.Delete(ctx, b.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: new(types.UID(b.UID))},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting CapacityBuffer %s/%s: %w", namespace, b.Name, err)
	}
	templates := w.podTemplates(namespace)
	switch found, err := templates.Get(ctx, b.Name, metav1.GetOptions{}); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading PodTemplate %s/%s: %w", namespace, b.Name, err)
	case !ours(found, string(rayCluster.GetUID())):
		return nil
	default:
		err = templates.Delete(ctx, b.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: new(found.GetUID())},
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting PodTemplate %s/%s: %w", namespace, b.Name, err)
		}
	}
	return nil
}
