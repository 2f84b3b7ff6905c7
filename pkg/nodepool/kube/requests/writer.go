package requests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// Limits on statuses and other writes of this process to ResourceRequests: many requests of many clusters may change at
// once. A newer update of a request replaces the waiting one.
const (
	requestWrites     = 50 // a second
	requestWriteBurst = 100
	requestWriters    = 4
	// The pause after a write that failed doubles with each failure.
	leastPause = time.Second
	mostPause  = 30 * time.Second
)

// Writer writes the status of requests, in the background and only while this process leads.
type Writer struct {
	requests *Store
	// client has its own rate limit, so that background writes do not delay callers.
	client dynamic.NamespaceableResourceInterface
	// mayWriteTo reports whether this process may write about a RayCluster now.
	mayWriteTo func(nodepool.ClusterKey) bool
	log        *slog.Logger
	limit      flowcontrol.RateLimiter
	// queue has the objects with an update, and never gives out one that is being written.
	queue workqueue.TypedRateLimitingInterface[requestKey]

	mu      sync.Mutex
	waiting map[requestKey]*nodepool.OwnedUpdate // the newest updates until they are written; guarded by mu
}

// NewWriter prepares a writer; Start begins to write. mayWriteTo reports whether this process may write about a
// RayCluster now.
func NewWriter(
	requests *Store, client dynamic.NamespaceableResourceInterface, mayWriteTo func(nodepool.ClusterKey) bool,
	log *slog.Logger,
) *Writer {
	pauses := workqueue.NewTypedItemExponentialFailureRateLimiter[requestKey](leastPause, mostPause)
	return &Writer{
		requests:   requests,
		client:     client,
		mayWriteTo: mayWriteTo,
		log:        log,
		limit:      flowcontrol.NewTokenBucketRateLimiter(requestWrites, requestWriteBurst),
		queue:      workqueue.NewTypedRateLimitingQueue(pauses),
		waiting:    map[requestKey]*nodepool.OwnedUpdate{},
	}
}

// Report writes the updates soon. One that cannot be written is tried again until a newer one replaces it, or until the
// object is gone. A newer one does not end the pause after a failure.
func (w *Writer) Report(updates []nodepool.OwnedUpdate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, u := range updates {
		key := requestKey{u.Namespace, u.Name}
		before := w.waiting[key]
		if before != nil && before.UID == u.UID && before.Status != nil && u.Status != nil &&
			before.Status.Equal(*u.Status) && u.Adopt == nil {
			continue // it waits, or is being written
		}
		w.waiting[key] = &u
		if w.queue.NumRequeues(key) == 0 { // otherwise it waits for its pause
			w.queue.Add(key)
		}
	}
}

// Start writes until ctx ends.
func (w *Writer) Start(ctx context.Context) error {
	var writes sync.WaitGroup
	writes.Go(func() {
		<-ctx.Done()
		w.queue.ShutDown()
	})
	for range requestWriters {
		writes.Go(func() {
			for w.limit.Wait(ctx) == nil {
				key, stopped := w.queue.Get()
				if stopped {
					return
				}
				w.carryOut(ctx, key)
				w.queue.Done(key)
			}
		})
	}
	writes.Wait()
	return nil
}

// carryOut writes the update of an object, if this process may write about the RayCluster.
func (w *Writer) carryOut(ctx context.Context, key requestKey) {
	w.mu.Lock()
	update := w.waiting[key]
	w.mu.Unlock()
	if update == nil {
		return
	}
	var err error
	if w.mayWriteTo(w.requests.clusterOf(key)) {
		err = w.write(ctx, update)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		w.log.Warn("cannot write the status of a request", "namespace", update.Namespace, "request", update.Name,
			"err", err)
		w.queue.AddRateLimited(key)
		return
	}
	w.queue.Forget(key)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting[key] == update {
		delete(w.waiting, key)
	} else {
		w.queue.Add(key) // for the newer one
	}
}

func (w *Writer) write(ctx context.Context, u *nodepool.OwnedUpdate) error {
	ctx, cancel := context.WithTimeout(ctx, reflector.RequestTimeout)
	defer cancel()
	client := w.client.Namespace(u.Namespace)
	if u.Delete {
		err := client.Delete(ctx, u.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: new(types.UID(u.UID)), ResourceVersion: &u.ResourceVersion}})
		if apierrors.IsConflict(err) {
			return nil // it was renewed, or another object has the name now
		}
		return err
	}
	var problems []error
	if u.Adopt != nil {
		problems = append(problems, unlessOvertaken(ctx, func() error { return w.adopt(ctx, u) }))
	}
	if u.Status != nil {
		patch, err := statusPatch(u.UID, u.Status)
		if err != nil {
			return fmt.Errorf("writing the status of %s/%s: %w", u.Namespace, u.Name, err)
		}
		written, err := client.Patch(ctx, u.Name, types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: nodepool.FieldManager}, "status")
		if err == nil {
			w.requests.Set(Decode(written))
		}
		if apierrors.IsConflict(err) {
			err = nil // it is gone
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// adopt makes the RayCluster an owner of an object that somebody else created, in addition to its other owners. Its
// owner may renew it, and its status may be written, at the same time.
func (w *Writer) adopt(ctx context.Context, u *nodepool.OwnedUpdate) error {
	client := w.client.Namespace(u.Namespace)
	object, err := client.Get(ctx, u.Name, metav1.GetOptions{})
	if err != nil || string(object.GetUID()) != u.UID {
		return err
	}
	if Decode(object).ClusterUID != "" { // by an earlier update that the cache does not show yet
		w.requests.Set(Decode(object))
		return nil
	}
	own(object, *u.Adopt)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": u.UID, "resourceVersion": object.GetResourceVersion(), "ownerReferences": object.GetOwnerReferences(),
	}})
	if err != nil {
		return fmt.Errorf("writing the owner of %s/%s: %w", u.Namespace, u.Name, err)
	}
	written, err := client.Patch(ctx, u.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: nodepool.FieldManager})
	if err == nil {
		w.requests.Set(Decode(written))
	}
	return err
}
