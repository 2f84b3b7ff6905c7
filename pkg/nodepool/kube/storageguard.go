package kube

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/nodepool/kube/timing"
)

// storageCheckPause is between two looks at how far the API server's storage is.
const storageCheckPause = 5 * time.Second

// storageGuard ends the process when the API server's storage has gone back, because it was lost or restored from a backup. Watches go on
// from the version that they know and are told nothing until the storage is there again, so that what is cached stays as it was, and
// nobody notices (docs/reference/facts.md#watches-after-a-restore). A process that starts reads everything anew.
type storageGuard struct {
	// version reads how far the storage is, as of now.
	version func(context.Context) (string, error)
	newest  string
}

// newStorageGuard asks by pods, which every form may list, for one of a name in a namespace: however many there are, none is read.
func newStorageGuard(pods corev1client.PodsGetter, o Options) *storageGuard {
	namespace := metav1.NamespaceDefault
	switch {
	case o.Single != nil:
		namespace = o.Single.Namespace
	case len(o.Namespaces) > 0:
		namespace = o.Namespaces[0]
	}
	return &storageGuard{version: func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, timing.RequestTimeout)
		defer cancel()
		list, err := pods.Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=heliostat"})
		if err != nil {
			return "", fmt.Errorf("reading how far the API server's storage is: %w", err)
		}
		return list.ResourceVersion, nil
	}}
}

// Start looks again and again until ctx ends or the storage has gone back.
func (r *storageGuard) Start(ctx context.Context) error {
	for {
		if err := r.check(ctx); err != nil {
			return err
		}
		if !timing.Sleep(ctx, timing.Jittered(storageCheckPause)) {
			return nil
		}
	}
}

// NeedLeaderElection says that a candidate for leadership looks too: its caches would be as old.
func (r *storageGuard) NeedLeaderElection() bool { return false }

// check returns an error when two answers in a row are older than one before. What cannot be read tells nothing.
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
	return fmt.Errorf("the API server's storage went back from version %s to %s: it was lost or restored, and what was read of it is void", r.newest, now)
}
