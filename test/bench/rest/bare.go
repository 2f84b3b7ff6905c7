package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/api/v1alpha1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/test/rig"
)

// patchRequest writes a ResourceRequest as Heliostat does, and makes it where there is none.
func (f *fleet) patchRequest(ctx context.Context, key nodepool.ClusterKey, slot, amount int) error {
	bundles := []any{map[string]any{"resources": map[string]any{"CPU": amount}, "count": 1}}
	spec := map[string]any{"rayCluster": key.Name, "owner": "bare", "holdUntilDeleted": true, "bundles": bundles}
	client := f.objects.Resource(v1alpha1.Resource).Namespace(key.Namespace)
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, requestName(key, slot), types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: "bare"})
	if !apierrors.IsNotFound(err) {
		return served(err)
	}
	object := &unstructured.Unstructured{}
	text, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.Kind,
		"metadata": map[string]any{"namespace": key.Namespace, "name": requestName(key, slot)}, "spec": spec,
	})
	if err == nil {
		err = object.UnmarshalJSON(text)
	}
	if err == nil {
		_, err = client.Create(ctx, object, metav1.CreateOptions{FieldManager: "bare"})
	}
	return err
}

// patchAnnotation writes the plain request of a RayCluster as Heliostat does.
func (f *fleet) patchAnnotation(ctx context.Context, key nodepool.ClusterKey, _, amount int) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		decode.ResourceRequestsAnnotation: fmt.Sprintf(`[{"resources":{"CPU":%d},"count":1}]`, amount),
	}}})
	if err != nil {
		return err
	}
	clusters := f.objects.Resource(rig.RayClusters).Namespace(key.Namespace)
	_, err = clusters.Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "bare"})
	return served(err)
}

// served turns an error of an API server that does not keep up into errTooMuch.
func served(err error) error {
	if apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) ||
		errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", errTooMuch, err)
	}
	return err
}

// removeRequests takes away all that was asked for.
func (f *fleet) removeRequests(ctx context.Context) error {
	for _, key := range f.keys {
		if err := f.patchNothing(ctx, key); err != nil {
			return err
		}
	}
	for i := 0; i < len(f.keys); i += perNamespace {
		requests := f.objects.Resource(v1alpha1.Resource).Namespace(namespaceOf(i))
		if err := requests.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) patchNothing(ctx context.Context, key nodepool.ClusterKey) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, decode.ResourceRequestsAnnotation)
	clusters := f.objects.Resource(rig.RayClusters).Namespace(key.Namespace)
	_, err := clusters.Patch(ctx, key.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}
