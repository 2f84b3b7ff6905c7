package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
)

// ListNodes reads all nodes from the API server, and what describes their GPUs besides: pods, ResourceSlices and
// ResourceClaims, the Cluster Autoscaler's status, and Karpenter's NodePools. Only nodes are required. Other objects
// that are forbidden are a note, and what they would say is unknown.
func ListNodes(ctx context.Context, config *rest.Config) (*decode.NodeSet, error) {
	client, err := dynamic.NewForConfig(limited(config))
	if err != nil {
		return nil, fmt.Errorf("preparing to list nodes: %w", err)
	}
	set := &decode.NodeSet{}
	all := func(kinds ...schema.GroupVersionResource) func() error {
		return func() error {
			for _, kind := range kinds {
				if err := eachObject(ctx, client.Resource(kind), set.Add); err != nil {
					return err
				}
			}
			return nil
		}
	}
	devices := resourcev1.SchemeGroupVersion
	if err := all(corev1.SchemeGroupVersion.WithResource("nodes"))(); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	for _, source := range []struct {
		what, unknown string
		list          func() error
		// know notes that they are known, even if there are none, and drop forgets a part of them.
		know, drop func()
	}{
		{"pods", "what of the GPUs is free", all(corev1.SchemeGroupVersion.WithResource("pods")),
			set.KnowPods, set.DropPods},
		{"ResourceSlices and ResourceClaims", "GPUs of Dynamic Resource Allocation",
			all(devices.WithResource("resourceslices"), devices.WithResource("resourceclaims")),
			set.KnowDevices, set.DropDevices},
		{"the Cluster Autoscaler's status", "how far its node groups may grow", func() error {
			config, err := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).
				Namespace(metav1.NamespaceSystem).Get(ctx, decode.StatusConfigMap, metav1.GetOptions{})
			if err != nil {
				return err
			}
			return set.Add(config.Object)
		}, func() {}, func() {}},
		{"Karpenter's NodePools", "how far they may grow", all(decode.NodePoolResource), func() {}, func() {}},
	} {
		source.know()
		err := source.list()
		if err != nil {
			source.drop()
		}
		switch {
		case err == nil || apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
			set.Notes = append(set.Notes,
				fmt.Sprintf("%s may not be read, so %s is unknown: %v", source.what, source.unknown, err))
		default:
			return nil, fmt.Errorf("reading %s: %w", source.what, err)
		}
	}
	return set, nil
}

// eachObject lists objects page by page, and ends with the first error.
func eachObject(ctx context.Context, client dynamic.ResourceInterface, do func(object map[string]any) error) error {
	list := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.List(ctx, options)
	})
	return list.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		return do(object.(*unstructured.Unstructured).Object)
	})
}
