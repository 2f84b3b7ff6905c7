package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	"heliostat.dev/heliostat/internal/doctor"
	"heliostat.dev/heliostat/pkg/nodepool/kube/attached"
	"heliostat.dev/heliostat/pkg/nodepool/kube/dra"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// doctorScope says which RayClusters to read.
type doctorScope struct {
	// Namespace is empty for all namespaces.
	Namespace string
	// Cluster is the name of one RayCluster, or empty for all. It does not limit what else is read.
	Cluster string
}

// resourceOf returns the resource that has the objects of a kind.
func resourceOf(kind doctor.Kind) schema.GroupVersionResource {
	of := schema.GroupVersionKind{Group: kind.Group, Version: kind.Versions[0], Kind: kind.Name}
	resource, _ := meta.UnsafeGuessKindToResource(of)
	return resource
}

// listObjects lists the objects of an API server, and gets the status of the Cluster Autoscaler. The input names the
// kinds that it may not list. Kinds that the API server does not have are left out.
func listObjects(
	ctx context.Context, client dynamic.Interface, scope doctorScope, reader sharing.Reader,
) (doctor.Input, error) {
	var objects []map[string]any
	var forbidden []doctor.Forbidden
	for _, kind := range doctor.Kinds {
		required := kind.Name == "RayCluster" // without them there is nothing to look at
		resource := resourceOf(kind)
		found, err := list(ctx, client, kind, resource, scope)
		switch {
		case apierrors.IsForbidden(err) && !required:
			refused := doctor.Forbidden{Group: kind.Group, Resource: resource.Resource, Message: err.Error()}
			if kind.Namespaced {
				refused.Namespace = scope.Namespace
			}
			forbidden = append(forbidden, refused)
		case apierrors.IsNotFound(err) && !required: // the kind is not installed
		case err != nil:
			return doctor.Input{}, fmt.Errorf("listing %s: %w", resource.Resource, err)
		}
		objects = append(objects, found...)
	}
	configMaps := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("kube-system")
	status, err := configMaps.Get(ctx, "cluster-autoscaler-status", metav1.GetOptions{})
	if err == nil { // most clusters have none, and many readers may not get it: its ceilings are then unknown
		objects = append(objects, status.Object)
	}
	reader.At = time.Now()
	var devices dra.Objects
	unknown := func(resource string) bool {
		return slices.ContainsFunc(forbidden, func(f doctor.Forbidden) bool { return f.Resource == resource })
	}
	for _, resource := range []string{dra.ResourceSlices, dra.ResourceClaims, dra.DeviceClasses} {
		if !unknown(resource) && (resource != dra.ResourceClaims || scope.Namespace == "") {
			devices.Know(resource)
		}
	}
	input, err := doctor.Read(objects, reader, &devices)
	input.Forbidden, input.Stored = forbidden, true
	return input, err
}

// list lists the objects of a kind that the scope has, and of pods and CapacityBuffers those of RayClusters.
func list(
	ctx context.Context, client dynamic.Interface, kind doctor.Kind, of schema.GroupVersionResource, scope doctorScope,
) (objects []map[string]any, err error) {
	namespace := ""
	if kind.Namespaced {
		namespace = scope.Namespace
	}
	options := metav1.ListOptions{}
	switch {
	case kind.Name == "CapacityBuffer":
		options.LabelSelector = attached.Made
	case kind.Name == "Pod" && scope.Cluster != "":
		options.LabelSelector = "ray.io/cluster=" + scope.Cluster
	case kind.Name == "Pod":
		options.LabelSelector = "ray.io/cluster"
	}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.Resource(of).Namespace(namespace).List(ctx, options)
	})
	err = pages.EachListItem(ctx, options, func(item runtime.Object) error {
		object := item.(*unstructured.Unstructured)
		object.Object["kind"] = kind.Name // the items of a list do not have it
		if object.GetAPIVersion() == "" {
			object.SetAPIVersion(of.GroupVersion().String())
		}
		if scope.takes(kind.Name, object) {
			objects = append(objects, object.Object)
		}
		return nil
	})
	return objects, err
}

// takes reports whether the scope has the object.
func (s doctorScope) takes(kind string, object *unstructured.Unstructured) bool {
	switch kind {
	case "RayCluster":
		return s.Cluster == "" || object.GetName() == s.Cluster
	case "CapacityPolicy", "ResourceRequest":
		of, _, _ := unstructured.NestedString(object.Object, "spec", "rayCluster")
		return s.Cluster == "" || of == s.Cluster
	case "RayService", "RayJob", "RayCronJob":
		return s.Cluster == ""
	}
	return true
}
