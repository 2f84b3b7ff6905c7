package kube

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// storageCheckPause is the pause between two checks of the API server's storage.
const storageCheckPause = 5 * time.Second

// storageGuard ends the process when the API server's storage has gone back, because it was lost or restored from a
// backup. Watches continue from their known version and receive nothing until the storage reaches it again, so caches
// would stay out of date unnoticed (docs/reference/facts.md#watches-after-a-restore). After a restart, the process
// reads everything again.
type storageGuard struct {
	// version returns the current version of the storage.
	version func(context.Context) (string, error)
	newest  string
}

// newStorageGuard lists pods of one name in a namespace, which every form may do: however many there are, the list is
// empty.
func newStorageGuard(pods corev1client.PodsGetter, o Options) *storageGuard {
	namespace := metav1.NamespaceDefault
	switch {
	case o.Single != nil:
		namespace = o.Single.Namespace
	case len(o.Namespaces) > 0:
		namespace = o.Namespaces[0]
	}
	return &storageGuard{version: func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, reflector.RequestTimeout)
		defer cancel()
		list, err := pods.Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=heliostat"})
		if err != nil {
			return "", fmt.Errorf("reading the version of the API server's storage: %w", err)
		}
		return list.ResourceVersion, nil
	}}
}

// Start checks until ctx ends or the storage has gone back.
func (r *storageGuard) Start(ctx context.Context) error {
	for {
		if err := r.check(ctx); err != nil {
			return err
		}
		if !reflector.Sleep(ctx, reflector.Jittered(storageCheckPause)) {
			return nil
		}
	}
}

// check returns an error if two responses in a row are older than an earlier one. A failed read proves nothing.
func (r *storageGuard) check(ctx context.Context) error {
	var now string
	for range 2 {
		var err error
		if now, err = r.version(ctx); err != nil {
			return nil
		}
		if !reflector.Older(now, cmp.Or(r.newest, now)) {
			r.newest = now
			return nil
		}
	}
	return fmt.Errorf("the API server's storage went back from version %s to %s: it was lost or restored, and "+
		"everything read from it is invalid", r.newest, now)
}
