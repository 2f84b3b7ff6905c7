package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"heliostat.dev/heliostat/api/v1alpha1"
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

// source is one kind of objects to list.
type source struct {
	schema.GroupVersionResource
	kind string
	// namespaced kinds are listed in the namespace of the scope, others in the whole cluster.
	namespaced bool
	labels     string
	// required kinds fail the whole reading if they cannot be listed.
	required bool
}

// ours is the group of Heliostat's kinds.
var ours = v1alpha1.GroupVersion

var sources = []source{
	{resource("ray.io", "v1", "rayclusters"), "RayCluster", true, "", true},
	{resource("ray.io", "v1", "rayservices"), "RayService", true, "", false},
	{resource("ray.io", "v1", "rayjobs"), "RayJob", true, "", false},
	{resource("ray.io", "v1", "raycronjobs"), "RayCronJob", true, "", false},
	{resource("", "v1", "pods"), "Pod", true, "ray.io/cluster", false},
	{resource("", "v1", "nodes"), "Node", false, "", false},
	{resource("apps", "v1", "deployments"), "Deployment", false, "", false},
	{resource("autoscaling", "v2", "horizontalpodautoscalers"), "HorizontalPodAutoscaler", true, "", false},
	{resource("resource.k8s.io", "v1", "resourceclaims"), "ResourceClaim", true, "", false},
	{resource("resource.k8s.io", "v1", "resourceclaimtemplates"), "ResourceClaimTemplate", true, "", false},
	{resource("resource.k8s.io", "v1", "resourceslices"), "ResourceSlice", false, "", false},
	{resource("resource.k8s.io", "v1", "deviceclasses"), "DeviceClass", false, "", false},
	{resource("resource.k8s.io", "v1beta2", "devicetaintrules"), "DeviceTaintRule", false, "", false},
	{resource("karpenter.sh", "v1", "nodepools"), "NodePool", false, "", false},
	{resource("", "v1", "limitranges"), "LimitRange", true, "", false},
	{resource("", "v1", "resourcequotas"), "ResourceQuota", true, "", false},
	{resource("", "v1", "persistentvolumeclaims"), "PersistentVolumeClaim", true, "", false},
	{resource("policy", "v1", "poddisruptionbudgets"), "PodDisruptionBudget", true, "", false},
	{resource("kueue.x-k8s.io", "v1beta2", "localqueues"), "LocalQueue", true, "", false},
	{resource("kueue.x-k8s.io", "v1beta2", "clusterqueues"), "ClusterQueue", false, "", false},
	{resource("kueue.x-k8s.io", "v1beta2", "resourceflavors"), "ResourceFlavor", false, "", false},
	{resource(ours.Group, ours.Version, "capacitypolicies"), "CapacityPolicy", true, "", false},
	{resource(ours.Group, ours.Version, "resourcerequests"), "ResourceRequest", true, "", false},
	{resource("autoscaling.x-k8s.io", "v1beta1", "capacitybuffers"), "CapacityBuffer", true, attached.Made, false},
	{resource("autoscaling.x-k8s.io", "v1alpha1", "capacitybuffers"), "CapacityBuffer", true, attached.Made, false},
	{resource("keda.sh", "v1alpha1", "scaledobjects"), "ScaledObject", true, "", false},
}

func resource(group, version, name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: name}
}

// listObjects lists the objects of an API server, and gets the status of the Cluster Autoscaler. The input names the
// kinds that it may not list. Kinds that the API server does not have are left out.
func listObjects(
	ctx context.Context, client dynamic.Interface, scope doctorScope, reader sharing.Reader,
) (doctor.Input, error) {
	var objects []map[string]any
	var forbidden []doctor.Forbidden
	read := map[string]bool{}
	for _, s := range sources {
		if read[s.kind] {
			continue // in a newer version
		}
		found, err := s.list(ctx, client, scope)
		read[s.kind] = err == nil
		switch {
		case apierrors.IsForbidden(err) && !s.required:
			refused := doctor.Forbidden{Group: s.Group, Resource: s.Resource, Message: err.Error()}
			if s.namespaced {
				refused.Namespace = scope.Namespace
			}
			forbidden = append(forbidden, refused)
		case apierrors.IsNotFound(err) && !s.required: // the kind is not installed
		case err != nil:
			return doctor.Input{}, fmt.Errorf("listing %s: %w", s.Resource, err)
		}
		objects = append(objects, found...)
	}
	configMaps := client.Resource(resource("", "v1", "configmaps")).Namespace("kube-system")
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
	input.Forbidden, input.Partial, input.Stored = forbidden, scope != doctorScope{}, true
	return input, err
}

// page bounds the objects of one answer, for clusters with thousands of pods.
const page = 500

func (s source) list(ctx context.Context, client dynamic.Interface, scope doctorScope) ([]map[string]any, error) {
	namespace := ""
	if s.namespaced {
		namespace = scope.Namespace
	}
	var objects []map[string]any
	options := metav1.ListOptions{Limit: page, LabelSelector: s.labels}
	if scope.Cluster != "" && s.kind == "Pod" {
		options.LabelSelector = "ray.io/cluster=" + scope.Cluster
	}
	for {
		list, err := client.Resource(s.GroupVersionResource).Namespace(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			object := list.Items[i].Object
			object["kind"] = s.kind // the items of a list do not have it
			if object["apiVersion"] == nil {
				object["apiVersion"] = s.GroupVersion().String()
			}
			if scope.takes(s.kind, &list.Items[i]) {
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
