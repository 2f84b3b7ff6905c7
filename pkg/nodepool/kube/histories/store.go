// Package histories stores what each RayCluster needed, for the next process: one ConfigMap per RayCluster, in
// Heliostat's own namespace. It must not know what a history says, and it reads and writes no other object.
package histories

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/pkg/nodepool"
)

const (
	// Label marks the ConfigMaps, whose names begin with namePrefix.
	Label      = "heliostat.dev/demand-history"
	namePrefix = "heliostat-demand-"
	// clusterAnnotation is the RayCluster, untilAnnotation until when its history counts if nobody adds to it.
	clusterAnnotation = "heliostat.dev/raycluster"
	untilAnnotation   = "heliostat.dev/until"
	// dataKey is where the history is in the ConfigMap.
	dataKey = "history"
)

// callTimeout bounds each call; nothing waits for one.
const callTimeout = 10 * time.Second

// qps bounds the calls to the API server per second, which have a limit of their own: histories never delay a patch.
const qps = 5

// configMaps is the part of the client that a Store uses.
type configMaps interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.ConfigMap, error)
	List(ctx context.Context, options metav1.ListOptions) (*corev1.ConfigMapList, error)
	Create(ctx context.Context, object *corev1.ConfigMap, options metav1.CreateOptions) (*corev1.ConfigMap, error)
	Update(ctx context.Context, object *corev1.ConfigMap, options metav1.UpdateOptions) (*corev1.ConfigMap, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// Store reads and writes histories.
type Store struct {
	maps      configMaps
	namespace string
}

// Connect returns a store in a namespace. It calls nothing.
func Connect(config *rest.Config, namespace string) (*Store, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = qps, 2*qps
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting for histories of demand: %w", err)
	}
	return &Store{client.ConfigMaps(namespace), namespace}, nil
}

// Read returns the stored history of a RayCluster; empty if there is none. nodepool.ErrDenied: this process may not
// read it.
func (s *Store) Read(ctx context.Context, key nodepool.ClusterKey) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	object, err := s.maps.Get(ctx, nameOf(key), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, s.failed("reading", key, err)
	}
	if object.Annotations[clusterAnnotation] != key.String() {
		return nil, nil // the next write replaces what another writer has made of it
	}
	return object.BinaryData[dataKey], nil
}

// Write stores the history of a RayCluster instead of the one before. It counts until a moment. nodepool.ErrDenied:
// this process may not write it.
func (s *Store) Write(ctx context.Context, key nodepool.ClusterKey, history []byte, until time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:   nameOf(key),
			Labels: map[string]string{Label: "true", "app.kubernetes.io/managed-by": "heliostat"},
			Annotations: map[string]string{
				clusterAnnotation: key.String(), untilAnnotation: until.UTC().Format(time.RFC3339),
			},
		},
		BinaryData: map[string][]byte{dataKey: history},
	}
	_, err := s.maps.Update(ctx, object, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = s.maps.Create(ctx, object, metav1.CreateOptions{})
	}
	if err != nil {
		return s.failed("storing", key, err)
	}
	return nil
}

// page is how many ConfigMaps are listed at once: each has a few kilobytes.
const page = 100

// Sweep removes the histories that no longer count, and returns how many.
func (s *Store) Sweep(ctx context.Context, now time.Time) (removed int, err error) {
	options := metav1.ListOptions{LabelSelector: Label + "=true", Limit: page}
	for {
		list, err := s.list(ctx, options)
		if err != nil {
			return removed, fmt.Errorf("listing histories of demand in namespace %s: %w", s.namespace, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			until, err := time.Parse(time.RFC3339, object.Annotations[untilAnnotation])
			if err != nil || !now.After(until) {
				continue // another writer has changed it, or it counts
			}
			if err := s.remove(ctx, object); err != nil {
				return removed, fmt.Errorf("removing an old history of demand, ConfigMap %s/%s: %w", s.namespace,
					object.Name, err)
			}
			removed++
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return removed, nil
		}
	}
}

func (s *Store) list(ctx context.Context, options metav1.ListOptions) (*corev1.ConfigMapList, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.maps.List(ctx, options)
}

// remove deletes a ConfigMap unless another process has written it meanwhile.
func (s *Store) remove(ctx context.Context, object *corev1.ConfigMap) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := s.maps.Delete(ctx, object.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func (s *Store) failed(doing string, key nodepool.ClusterKey, err error) error {
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w: %w", nodepool.ErrDenied, err)
	}
	return fmt.Errorf("%s the history of demand of %s in ConfigMap %s/%s: %w", doing, key, s.namespace, nameOf(key),
		err)
}

// nameOf returns the name of a RayCluster's ConfigMap. The two names together may be too long for one.
func nameOf(key nodepool.ClusterKey) string {
	sum := sha256.Sum256([]byte(key.String()))
	return namePrefix + hex.EncodeToString(sum[:10])
}
