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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

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

// resourcesOf returns the resources that have the objects of a kind, the first of which that the API server serves has
// all of them. CapacityBuffers are new, and so is the version that checks prefer.
func resourcesOf(kind doctor.Kind) (all []schema.GroupVersionResource) {
	for i, version := range kind.Versions {
		of := schema.GroupVersionKind{Group: kind.Group, Version: version, Kind: kind.Name}
		if resource, _ := meta.UnsafeGuessKindToResource(of); i == 0 || kind.Name == "CapacityBuffer" {
			all = append(all, resource)
		}
	}
	return all
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
		for _, resource := range resourcesOf(kind) {
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
			if objects = append(objects, found...); err == nil {
				break
			}
		}
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
	if !unknown("resourceslices") {
		devices.KnowSlices()
	}
	if !unknown("resourceclaims") && scope.Namespace == "" {
		devices.KnowClaims()
	}
	if !unknown("deviceclasses") {
		devices.KnowClasses()
	}
	input, err := doctor.Read(objects, reader, &devices)
	input.Forbidden, input.Stored = forbidden, true
	return input, err
}

// page bounds the objects of one answer, for clusters with thousands of pods.
const page = 500

// list lists the objects of a kind that the scope has, and of pods and CapacityBuffers those of RayClusters.
func list(
	ctx context.Context, client dynamic.Interface, kind doctor.Kind, of schema.GroupVersionResource, scope doctorScope,
) ([]map[string]any, error) {
	namespace := ""
	if kind.Namespaced {
		namespace = scope.Namespace
	}
	var objects []map[string]any
	options := metav1.ListOptions{Limit: page}
	switch {
	case kind.Name == "CapacityBuffer":
		options.LabelSelector = attached.Made
	case kind.Name == "Pod" && scope.Cluster != "":
		options.LabelSelector = "ray.io/cluster=" + scope.Cluster
	case kind.Name == "Pod":
		options.LabelSelector = "ray.io/cluster"
	}
	for {
		list, err := client.Resource(of).Namespace(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			object := list.Items[i].Object
			object["kind"] = kind.Name // the items of a list do not have it
			if object["apiVersion"] == nil {
				object["apiVersion"] = of.GroupVersion().String()
			}
			if scope.takes(kind.Name, &list.Items[i]) {
				objects = append(objects, object)
			}
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return objects, nil
		}
	}
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
