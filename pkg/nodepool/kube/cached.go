package kube

import (
	"context"
	"fmt"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/rayobject"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// clusterIndex finds the pods of one RayCluster in the cache without visiting all pods.
const clusterIndex = "ray-cluster"

// cached reads from watches of all RayClusters and all Ray pods.
type cached struct {
	cache cache.Cache
}

func newRayCluster() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(rayv1.SchemeGroupVersion.WithKind("RayCluster"))
	return object
}

// cacheOptions keeps Ray pods only, stripped. The cache returns objects without copying them: this package does not
// change them.
func cacheOptions(o Options) cache.Options {
	selector := labels.NewSelector()
	if o.Single != nil {
		selector = selector.Add(*requirement(selection.Equals, o.Single.Name))
	} else {
		selector = selector.Add(*requirement(selection.Exists))
	}
	options := cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.Pod{}: {Label: selector, Transform: rayobject.StripPod, UnsafeDisableDeepCopy: new(true)},
	}}
	namespaces := o.Namespaces
	if o.Single != nil {
		namespaces = []string{o.Single.Namespace}
	} else {
		options.ByObject[newRayCluster()] = cache.ByObject{
			Transform:             rayobject.StripRayCluster,
			UnsafeDisableDeepCopy: new(true),
		}
	}
	if len(namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return options
}

// requirement on the label ray.io/cluster. A RayCluster's name is always a valid label value, so there is no error.
func requirement(operator selection.Operator, values ...string) *labels.Requirement {
	r, err := labels.NewRequirement(rayobject.ClusterLabel, operator, values)
	if err != nil {
		r, _ = labels.NewRequirement(rayobject.ClusterLabel, selection.DoesNotExist, nil) // matches no Ray pod
	}
	return r
}

func newCached(m *Manager) (*cached, error) {
	c := &cached{cache: m.manager.GetCache()}
	if err := watchPods(m); err != nil {
		return nil, err
	}
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

// clusterUpdated requests a cycle of a RayCluster that has changed, unless the writer has requested one. Changes of its
// annotation resource-requests are planned in steps, whoever wrote them.
func (m *Manager) clusterUpdated(before, now any) {
	old, isObject := before.(*unstructured.Unstructured)
	written, areObjects := now.(*unstructured.Unstructured)
	switch {
	case areObjects && m.newestSeen.cycleRequested(written):
	case isObject && areObjects &&
		old.GetAnnotations()[rayobject.ResourceRequestsAnnotation] !=
			written.GetAnnotations()[rayobject.ResourceRequestsAnnotation]:
		m.pool.enqueueForRequest(keyOf(written))
	default:
		m.Enqueue(keyOfAny(now))
	}
}

// watchPods requests a cycle of the RayCluster of every pod that changes.
func watchPods(m *Manager) error {
	ctx := context.Background()
	pods := m.manager.GetCache()
	err := pods.IndexField(ctx, &corev1.Pod{}, clusterIndex, func(object client.Object) []string {
		return []string{object.GetLabels()[rayobject.ClusterLabel]}
	})
	if err != nil {
		return fmt.Errorf("indexing pods: %w", err)
	}
	informer, err := pods.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	enqueue := func(object any) {
		if pod, ok := reflector.Deleted(object).(*corev1.Pod); ok {
			m.Enqueue(nodepool.ClusterKey{Namespace: pod.Namespace, Name: pod.Labels[rayobject.ClusterLabel]})
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) }, DeleteFunc: enqueue,
	})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	return nil
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

func (c *cached) pods(ctx context.Context, key nodepool.ClusterKey) ([]*corev1.Pod, error) {
	return podsInCache(ctx, c.cache, key)
}

func podsInCache(ctx context.Context, reader client.Reader, key nodepool.ClusterKey) ([]*corev1.Pod, error) {
	var list corev1.PodList
	err := reader.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingFields{clusterIndex: key.Name})
	if err != nil {
		return nil, fmt.Errorf("reading pods of %s from the cache: %w", key, err)
	}
	return pointers(list.Items), nil
}

func pointers(pods []corev1.Pod) []*corev1.Pod {
	list := make([]*corev1.Pod, len(pods))
	for i := range pods {
		list[i] = &pods[i]
	}
	return list
}

func (c *cached) keys() ([]nodepool.ClusterKey, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(rayv1.SchemeGroupVersion.WithKind("RayClusterList"))
	if err := c.cache.List(context.Background(), list); err != nil {
		return nil, fmt.Errorf("listing RayClusters in the cache: %w", err)
	}
	keys := make([]nodepool.ClusterKey, len(list.Items))
	for i := range list.Items {
		keys[i] = keyOf(&list.Items[i])
	}
	return keys, nil
}
