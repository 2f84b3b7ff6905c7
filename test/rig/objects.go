package rig

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RayJobs and RayServices are KubeRay's resources that create RayClusters.
var (
	RayJobs     = schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayjobs"}
	RayServices = schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayservices"}
)

// CreateAny creates an object. It also creates the namespace if it does not exist.
func (r *Rig) CreateAny(
	ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured,
) error {
	if err := r.ensureNamespace(ctx, object.GetNamespace()); err != nil {
		return err
	}
	client := r.Dynamic.Resource(resource).Namespace(object.GetNamespace())
	if _, err := client.Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return nil
}
