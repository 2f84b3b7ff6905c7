package kube

import (
	"context"
	"fmt"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// cached reads from a watch of all RayClusters.
type cached struct {
	cache cache.Cache
}

func newRayCluster() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(rayv1.SchemeGroupVersion.WithKind("RayCluster"))
	return object
}

// cacheOptions keeps RayClusters, stripped. The cache returns objects without copying them: this package does not
// change them.
func cacheOptions(o Options) cache.Options {
	if o.Single != nil {
		return cache.Options{}
	}
	options := cache.Options{ByObject: map[client.Object]cache.ByObject{
		newRayCluster(): {Transform: decode.StripRayCluster, UnsafeDisableDeepCopy: new(true)},
	}}
	if len(o.Namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range o.Namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return options
}

func newCached(m *Manager) (*cached, error) {
	c := &cached{cache: m.manager.GetCache()}
	ctx := context.Background()
	informer, err := c.cache.GetInformer(ctx, newRayCluster(), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching RayClusters: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { m.Enqueue(keyOfAny(object)) },
		UpdateFunc: m.clusterUpdated,
		DeleteFunc: func(object any) {
			key := keyOfAny(object)
			m.forget(key)
			m.Enqueue(key)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching RayClusters: %w", err)
	}
	return c, nil
}

// clusterUpdated requests a cycle of a RayCluster that has changed, whoever wrote it. Changes of its annotation
// resource-requests are planned in steps.
func (m *Manager) clusterUpdated(before, now any) {
	old, isObject := before.(*unstructured.Unstructured)
	written, areObjects := now.(*unstructured.Unstructured)
	if isObject && areObjects && old.GetAnnotations()[decode.ResourceRequestsAnnotation] !=
		written.GetAnnotations()[decode.ResourceRequestsAnnotation] {
		m.pool.EnqueueForRequest(keyOf(written))
		return
	}
	m.Enqueue(keyOfAny(now))
}

func keyOfAny(object any) nodepool.ClusterKey {
	if o, ok := reflector.Deleted(object).(metav1.Object); ok {
		return nodepool.ClusterKey{Namespace: o.GetNamespace(), Name: o.GetName()}
	}
	return nodepool.ClusterKey{}
}

func (c *cached) rayCluster(key nodepool.ClusterKey) (*unstructured.Unstructured, error) {
	object := newRayCluster()
	err := c.cache.Get(context.Background(), client.ObjectKey(key), object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading RayCluster %s from the cache: %w", key, err)
	}
	return object, nil
}

func (c *cached) list(namespace string) ([]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(rayv1.SchemeGroupVersion.WithKind("RayClusterList"))
	if err := c.cache.List(context.Background(), list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing RayClusters in the cache: %w", err)
	}
	all := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all, nil
}
