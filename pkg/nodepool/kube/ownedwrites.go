package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/retry"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// Bounds on what is written to ResourceRequests beside what owners write: many requests of many clusters may change at one moment, and the API
// server has other things to do. What waits is replaced by newer news of the same request.
const (
	requestWrites      = 50 // a second
	requestWriteBurst  = 100
	requestWriters     = 4
	requestWritesPause = 5 * time.Second // after one that failed
	// yieldLongest is how long a write waits while more than one caller waits for a write of his own; the calls are looked at every yieldStep.
	yieldLongest = 250 * time.Millisecond
	yieldStep    = 10 * time.Millisecond
	// yieldWhile ends the yield once the oldest update has waited so long: what is planned depends on what was told of requests.
	yieldWhile = time.Second
)

// awaited counts a write that a caller waits for, until done.
func (s *ownedRequests) awaited() (done func()) {
	s.underway.Add(1)
	return func() { s.underway.Add(-1) }
}

// requestWriter writes what becomes of requests, in the background and only while this process leads.
type requestWriter struct {
	requests *ownedRequests
	// client has a limit of its own: what nobody waits for must not delay what callers wait for.
	client  dynamic.NamespaceableResourceInterface
	leading func() bool
	log     *slog.Logger
	limit   flowcontrol.RateLimiter
	wake    chan struct{}

	mu sync.Mutex // guards the rest
	// waiting is by object, queue lists those of them that may be taken, in the order in which they came.
	waiting map[requestKey]waitingUpdate
	queue   []requestKey
	// writing are objects that are written to: two writes of one could overtake each other.
	writing map[requestKey]bool
	// restsUntil holds those whose last write failed in the last requestWritesPause.
	restsUntil map[requestKey]time.Time
}

// waitingUpdate is the newest of those that came since one was to be written.
type waitingUpdate struct {
	nodepool.OwnedUpdate
	since time.Time
}

func newRequestWriter(requests *ownedRequests, client dynamic.NamespaceableResourceInterface, leading func() bool, log *slog.Logger) *requestWriter {
	return &requestWriter{
		requests: requests, client: client, leading: leading, log: log, limit: flowcontrol.NewTokenBucketRateLimiter(requestWrites, requestWriteBurst),
		wake: make(chan struct{}, 1), waiting: map[requestKey]waitingUpdate{}, writing: map[requestKey]bool{},
		restsUntil: map[requestKey]time.Time{},
	}
}

// Tell writes the updates soon. One that cannot be written is dropped: whoever decided it finds it missing and tells it again.
func (w *requestWriter) Tell(updates []nodepool.OwnedUpdate) {
	w.mu.Lock()
	now := time.Now()
	for _, u := range updates {
		key := requestKey{u.Namespace, u.Name}
		if now.Before(w.restsUntil[key]) {
			continue
		}
		delete(w.restsUntil, key)
		before, there := w.waiting[key]
		if !there {
			before.since = now
		}
		if !there && !w.writing[key] {
			w.queue = append(w.queue, key)
		}
		w.waiting[key] = waitingUpdate{u, before.since}
	}
	w.mu.Unlock()
	w.look()
}

// look lets the queue be looked at.
func (w *requestWriter) look() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Start writes until ctx ends.
func (w *requestWriter) Start(ctx context.Context) error {
	var writes sync.WaitGroup
	defer writes.Wait()
	places := make(chan struct{}, requestWriters)
	for {
		places <- struct{}{} // a write has a bound of its own, so one is free soon
		update, ok := w.next(ctx)
		if !ok {
			return nil
		}
		writes.Go(func() {
			w.carryOut(ctx, update)
			<-places
		})
	}
}

// next waits until an update may be written, and takes it as it is then: what is newer replaces it until the last moment. False says that ctx has
// ended.
func (w *requestWriter) next(ctx context.Context) (nodepool.OwnedUpdate, bool) {
	for !w.waits() {
		select {
		case <-ctx.Done():
			return nodepool.OwnedUpdate{}, false
		case <-w.wake:
		}
	}
	if w.limit.Wait(ctx) != nil || !w.yield(ctx) {
		return nodepool.OwnedUpdate{}, false
	}
	return w.take()
}

// waits reports whether there is an update to take.
func (w *requestWriter) waits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue) > 0
}

// carryOut writes an update that was taken, if this process leads.
func (w *requestWriter) carryOut(ctx context.Context, update nodepool.OwnedUpdate) {
	key := requestKey{update.Namespace, update.Name}
	defer w.done(key)
	if !w.leading() {
		return
	}
	if err := w.write(ctx, update); err != nil && !apierrors.IsNotFound(err) {
		w.log.Warn("cannot write what becomes of a request", "namespace", update.Namespace, "request", update.Name, "err", err)
		w.rest(key, time.Now())
	}
}

// done lets the next update of an object be taken, which may have come meanwhile.
func (w *requestWriter) done(key requestKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.writing, key)
	if _, there := w.waiting[key]; there {
		w.queue = append(w.queue, key)
		w.look()
	}
}

// rest lets nothing be written to an object for a while, and forgets those that have rested: they may be gone for good.
func (w *requestWriter) rest(key requestKey, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.restsUntil, func(_ requestKey, until time.Time) bool { return !now.Before(until) })
	w.restsUntil[key] = now.Add(requestWritesPause)
}

// yield lets writes go first that callers wait for, as long as the API server is behind with them and the oldest update is not old; false says that
// ctx has ended.
func (w *requestWriter) yield(ctx context.Context) bool {
	for range yieldLongest / yieldStep {
		if w.requests.underway.Load() <= 1 || w.oldest(time.Now()) >= yieldWhile {
			break
		}
		if !sleep(ctx, yieldStep) {
			return false
		}
	}
	return ctx.Err() == nil
}

// oldest is for how long the next update to be taken has waited.
func (w *requestWriter) oldest(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return 0
	}
	return now.Sub(w.waiting[w.queue[0]].since)
}

// take takes the oldest update of those whose objects nobody writes to; done must follow.
func (w *requestWriter) take() (nodepool.OwnedUpdate, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return nodepool.OwnedUpdate{}, false
	}
	key := w.queue[0]
	if w.queue = w.queue[1:]; len(w.queue) == 0 {
		w.queue = nil
	}
	update := w.waiting[key]
	delete(w.waiting, key)
	w.writing[key] = true
	return update.OwnedUpdate, true
}

func (w *requestWriter) write(ctx context.Context, u nodepool.OwnedUpdate) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client := w.client.Namespace(u.Namespace)
	if u.Delete {
		err := client.Delete(ctx, u.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(uid(u.UID)), ResourceVersion: &u.ResourceVersion}})
		if apierrors.IsConflict(err) {
			return nil // it was renewed, or another object has the name by now
		}
		return err
	}
	var problems []error
	if u.Adopt != nil {
		problems = append(problems, w.adopt(ctx, u))
	}
	if u.Status != nil {
		patch, err := statusPatch(u.UID, u.Status)
		if err != nil {
			return fmt.Errorf("writing the status of %s/%s: %w", u.Namespace, u.Name, err)
		}
		written, err := client.Patch(ctx, u.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}, "status")
		if err == nil {
			w.requests.set(decodeRequest(written))
		}
		if apierrors.IsConflict(err) {
			err = nil // it is gone
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// adopt makes the RayCluster own an object that somebody else made, beside those that own it already. Its owner may renew it, and its status be
// written, at the same time.
func (w *requestWriter) adopt(ctx context.Context, u nodepool.OwnedUpdate) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { return w.adoptOnce(ctx, u) })
}

func (w *requestWriter) adoptOnce(ctx context.Context, u nodepool.OwnedUpdate) error {
	client := w.client.Namespace(u.Namespace)
	object, err := client.Get(ctx, u.Name, metav1.GetOptions{})
	if err != nil || string(object.GetUID()) != u.UID {
		return err
	}
	if decodeRequest(object).ClusterUID != "" { // by an update before this one, which the cache did not tell of yet
		w.requests.set(decodeRequest(object))
		return nil
	}
	own(object, *u.Adopt)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": u.UID, "resourceVersion": object.GetResourceVersion(), "ownerReferences": object.GetOwnerReferences(),
	}})
	if err != nil {
		return fmt.Errorf("writing the owner of %s/%s: %w", u.Namespace, u.Name, err)
	}
	written, err := client.Patch(ctx, u.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if err == nil {
		w.requests.set(decodeRequest(written))
	}
	return err
}
