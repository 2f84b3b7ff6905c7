package intake

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"heliostat.dev/heliostat/internal/doctor/inventory"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
)

// Scope says which RayClusters are looked at.
type Scope struct {
	// Namespace is empty for all.
	Namespace string
	// Cluster is the name of one RayCluster, empty for all. The rest of the cluster is looked at all the same.
	Cluster string
}

// source is one kind that is listed.
type source struct {
	schema.GroupVersionResource
	kind string
	// scoped kinds are listed in the namespace of the scope, others everywhere.
	scoped bool
	labels string
	// mustBe: without it there is nothing to look at.
	mustBe bool
}

var sources = []source{
	{schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"}, "RayCluster", true, "", true},
	{schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayservices"}, "RayService", true, "", false},
	{schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayjobs"}, "RayJob", true, "", false},
	{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "Pod", true, "ray.io/cluster", false},
	{schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, "Node", false, "", false},
	{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "Deployment", false, "", false},
	{schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}, "HorizontalPodAutoscaler", true, "", false},
	{schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"}, "ResourceClaim", true, "", false},
	{schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaimtemplates"}, "ResourceClaimTemplate", true, "", false},
	{schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}, "NodePool", false, "", false},
	{schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}, "ScaledObject", true, "", false},
}

// Live lists the objects of an API server, and gets the status of the Cluster Autoscaler. What it may not list is told in the input; a kind
// that the API server does not know is left out.
func Live(ctx context.Context, client dynamic.Interface, scope Scope, reader nodegpu.Reader) (inventory.Input, error) {
	var objects []map[string]any
	var forbidden []inventory.Forbidden
	for _, s := range sources {
		found, err := s.list(ctx, client, scope)
		switch {
		case apierrors.IsForbidden(err) && !s.mustBe:
			refused := inventory.Forbidden{Group: s.Group, Resource: s.Resource, Message: err.Error()}
			if s.scoped {
				refused.Namespace = scope.Namespace
			}
			forbidden = append(forbidden, refused)
		case apierrors.IsNotFound(err) && !s.mustBe: // the kind is not installed
		case err != nil:
			return inventory.Input{}, fmt.Errorf("listing %s: %w", s.Resource, err)
		}
		objects = append(objects, found...)
	}
	status, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("kube-system").
		Get(ctx, "cluster-autoscaler-status", metav1.GetOptions{})
	if err == nil {
		objects = append(objects, status.Object)
	} // most clusters have none, and to many it is not to be read: then its maximum is not known
	reader.At = time.Now()
	input, err := Input(objects, reader)
	input.Forbidden = forbidden
	return input, err
}

// page keeps answers small on clusters with thousands of pods.
const page = 500

func (s source) list(ctx context.Context, client dynamic.Interface, scope Scope) ([]map[string]any, error) {
	namespace := ""
	if s.scoped {
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
			object["kind"] = s.kind // lists of the API leave it out of their items
			if object["apiVersion"] == nil {
				object["apiVersion"] = s.GroupVersion().String()
			}
			if scope.takes(s.kind, list.Items[i].GetName()) {
				objects = append(objects, object)
			}
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return objects, nil
		}
	}
}

// takes leaves out the RayClusters that were not asked for.
func (s Scope) takes(kind, name string) bool {
	switch kind {
	case "RayCluster":
		return s.Cluster == "" || name == s.Cluster
	case "RayService", "RayJob":
		return s.Cluster == ""
	}
	return true
}
