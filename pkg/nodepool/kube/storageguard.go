package kube

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// storageCheckPause is the pause between two checks of the API server's storage.
const storageCheckPause = 5 * time.Second

// storageGuard ends the process when the API server's storage has gone back, because it was lost or restored from a
// backup. Watches continue from their known version and receive nothing until the storage reaches it again, so caches
// would stay out of date unnoticed (docs/reference/facts.md#watches-after-a-restore). After a restart, the process
// reads everything again.
//
// The storage may reach that version again between two checks, for example if it lost only seconds. So each fresh read
// of a RayCluster and of its pods is compared with what was known of them before.
type storageGuard struct {
	// version returns the current version of the storage.
	version func(context.Context) (string, error)
	newest  string
	// proof receives the error of the first proof that is not from a check.
	proof chan error
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
	return &storageGuard{proof: make(chan error, 1), version: func(ctx context.Context) (string, error) {
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
		select {
		case <-ctx.Done():
			return nil
		case err := <-r.proof:
			return err
		case <-time.After(reflector.Jittered(storageCheckPause)):
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
	return wentBack(r.newest, now)
}

// compare compares the version of an object that was read from the storage with the one that was known before the read
// began. Versions of a kind grow, also if an object was recreated, and a read without a version is never out of date.
func (r *storageGuard) compare(known, read string) {
	if !reflector.Older(read, known) {
		return
	}
	select {
	case r.proof <- wentBack(known, read):
	default: // the process ends already
	}
}

// comparePods compares pods that were read with those that were known before.
func (r *storageGuard) comparePods(known, read []*decode.Pod) {
	versions := make(map[string]string, len(known))
	for _, pod := range known {
		versions[pod.Name] = pod.Version
	}
	for _, pod := range read {
		if version := versions[pod.Name]; version != "" {
			r.compare(version, pod.Version)
		}
	}
}

func wentBack(from, to string) error {
	return fmt.Errorf(
		"the API server's storage went back from version %s to %s: it was lost or restored, and everything read from "+
			"it is invalid",
		from,
		to,
	)
}
