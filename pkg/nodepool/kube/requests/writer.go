package requests

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/retry"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/rayobject"
	"heliostat.dev/heliostat/pkg/nodepool/kube/timing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Bounds on what is written to ResourceRequests beside what owners write: many requests of many clusters may change at one moment, and the API
// server has other things to do. What waits is replaced by newer news of the same request.
const (
	requestWrites      = 50 // a second
	requestWriteBurst  = 100
	requestWriters     = 4
	requestWritesPause = 5 * time.Second // after one that failed
	// While callers write more than fewCalls a second, what is told without being pressing is told unpressing times a second: each status costs the
	// API server as much as what a caller waits for.
	fewCalls, ordinaryWrites = 20, 10
	// overWrites is how many statuses of requests without room are written a second, overWriters at a time: there may be
	// thousands, large ones at that, and the API server validates all of an object with each status. A busy one takes
	// seconds for it, so these writes have overTimeout: one that is given up costs the API server as much, for nothing.
	overWrites  = 10
	overWriters = 2
	overTimeout = 20 * time.Second
	// lookAgain is the pause before another look for one that may be taken, where none may be.
	lookAgain = 20 * time.Millisecond
)

// Writer writes what becomes of requests, in the background and only while this process leads.
type Writer struct {
	requests *Store
	// client has a limit of its own: what nobody waits for must not delay what callers wait for.
	client  dynamic.NamespaceableResourceInterface
	leading func() bool
	log     *slog.Logger
	// limit is for all that is written, besideCalls for what is not pressing while callers write much.
	limit, ordinaryLimit flowcontrol.RateLimiter
	// overMemory is for what is told of requests without room.
	overMemory flowcontrol.RateLimiter
	wake       chan struct{}

	mu sync.Mutex // guards the rest
	// waiting is by object, queue lists them in the order in which they came.
	waiting map[requestKey]waitingUpdate
	queue   []requestKey
	// served says of each namespace at which turn something of it was written last. writesOver is how much of
	// what is unadmitted is being written.
	served     map[string]int64
	turn       int64
	writesOver int
	// backOffUntil holds those whose last write failed in the last requestWritesPause.
	backOffUntil map[requestKey]time.Time
}

// urgency orders what waits to be written.
type urgency int

// What is pressing changes what users wait for: the state of a request, or whether it is there. What is unadmitted is said of a request that the memory has
// no room for, and comes last.
const (
	urgent urgency = iota
	ordinary
	unadmitted
)

// waitingUpdate is the newest of those that came since one was to be written.
type waitingUpdate struct {
	nodepool.OwnedUpdate
	urgency urgency
}

// urgencyOf says how soon an update is to be written.
func urgencyOf(u *nodepool.OwnedUpdate, changes bool) urgency {
	switch {
	case u.Status != nil && u.Status.Code == raydemand.CodeOverMemory:
		return unadmitted
	case changes || u.Adopt != nil:
		return urgent
	}
	return ordinary
}

func NewWriter(requests *Store, client dynamic.NamespaceableResourceInterface, leading func() bool, log *slog.Logger) *Writer {
	return &Writer{
		requests: requests, client: client, leading: leading, log: log, limit: flowcontrol.NewTokenBucketRateLimiter(requestWrites, requestWriteBurst),
		ordinaryLimit: flowcontrol.NewTokenBucketRateLimiter(ordinaryWrites, 1), overMemory: flowcontrol.NewTokenBucketRateLimiter(overWrites, 1), wake: make(chan struct{}, 1), waiting: map[requestKey]waitingUpdate{}, served: map[string]int64{},
		backOffUntil: map[requestKey]time.Time{},
	}
}

// Tell writes the updates soon. One that cannot be written is dropped: whoever decided it finds it missing and tells it again.
func (w *Writer) Tell(updates []nodepool.OwnedUpdate) {
	w.mu.Lock()
	now := time.Now()
	for _, u := range updates {
		key := requestKey{u.Namespace, u.Name}
		if now.Before(w.backOffUntil[key]) {
			continue
		}
		delete(w.backOffUntil, key)
		news, changes := w.requests.decide(key, u.UID, u.Status)
		if !news && u.Adopt == nil {
			continue // it waits, or is being written
		}
		if _, there := w.waiting[key]; !there {
			w.queue = append(w.queue, key)
		}
		w.waiting[key] = waitingUpdate{u, urgencyOf(&u, changes)}
	}
	w.mu.Unlock()
	w.look()
}

// look lets the queue be looked at.
func (w *Writer) look() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Start writes until ctx ends.
func (w *Writer) Start(ctx context.Context) error {
	var writes sync.WaitGroup
	defer writes.Wait()
	places := make(chan struct{}, requestWriters)
	for {
		places <- struct{}{} // a write has a bound of its own, so one is free soon
		update, leave := w.next(ctx)
		if leave == nil {
			return nil
		}
		writes.Go(func() {
			w.carryOut(ctx, update)
			leave()
			w.look()
			<-places
		})
	}
}

// next waits until an update may be written, and takes it as it is then: what is newer replaces it until the last moment. leave must follow; nil says
// that ctx has ended.
func (w *Writer) next(ctx context.Context) (update nodepool.OwnedUpdate, leave func()) {
	if w.limit.Wait(ctx) != nil {
		return update, nil
	}
	for {
		update, leave, later := w.take()
		if leave != nil {
			return update, leave
		}
		var again <-chan time.Time
		if later {
			again = time.After(lookAgain)
		}
		select {
		case <-ctx.Done():
			return update, nil
		case <-w.wake:
		case <-again:
		}
	}
}

// take takes the most urgent update of those whose requests nobody writes to, namespaces in turn, of one namespace the oldest. later says that there is one that may not
// be taken yet.
func (w *Writer) take() (update nodepool.OwnedUpdate, leave func(), later bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, now := range []urgency{urgent, ordinary, unadmitted} {
		for _, i := range w.order(now) {
			key := w.queue[i]
			if !w.mayWrite(now) {
				return update, nil, true
			}
			if leave, _ = w.requests.locks.begin(key); leave == nil {
				continue
			}
			update = w.waiting[key].OwnedUpdate
			delete(w.waiting, key)
			w.queue = slices.Delete(w.queue, i, i+1)
			w.turn++
			w.served[key.namespace] = w.turn
			return update, w.until(now, leave), false
		}
	}
	if len(w.queue) == 0 {
		clear(w.served)
	}
	return update, nil, len(w.queue) > 0
}

// order lists the places in the queue of what is so urgent: the first of each namespace, in the order in which namespaces had something written last, and
// then all others. One that has much to be written does not keep others waiting.
func (w *Writer) order(now urgency) (places []int) {
	var others []int
	seen := map[string]bool{}
	for i, key := range w.queue {
		switch {
		case w.waiting[key].urgency != now:
		case seen[key.namespace]:
			others = append(others, i)
		default:
			seen[key.namespace] = true
			places = append(places, i)
		}
	}
	slices.SortStableFunc(places, func(a, b int) int {
		return cmp.Compare(w.served[w.queue[a].namespace], w.served[w.queue[b].namespace])
	})
	return append(places, others...)
}

// mayWrite reports whether the bounds on what is so urgent let one more be written now.
func (w *Writer) mayWrite(now urgency) bool {
	if now != urgent && w.requests.locks.busy() && !w.ordinaryLimit.TryAccept() {
		return false
	}
	return now != unadmitted || w.writesOver < overWriters && w.overMemory.TryAccept()
}

// until lets leave end a write of what is unadmitted, too. The caller of until holds mu, that of what it returns does not.
func (w *Writer) until(now urgency, leave func()) func() {
	if now != unadmitted {
		return leave
	}
	w.writesOver++
	return func() {
		leave()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.writesOver--
	}
}

// carryOut writes an update that was taken, if this process leads.
func (w *Writer) carryOut(ctx context.Context, update nodepool.OwnedUpdate) {
	key := requestKey{update.Namespace, update.Name}
	defer w.requests.settle(key, update.Status)
	if !w.leading() {
		return
	}
	if err := w.write(ctx, update); err != nil && !apierrors.IsNotFound(err) {
		w.log.Warn("cannot write what becomes of a request", "namespace", update.Namespace, "request", update.Name, "err", err)
		w.backOff(key, time.Now())
	}
}

// backOff lets nothing be written to an object for a while, and forgets those that have rested: they may be gone for good.
func (w *Writer) backOff(key requestKey, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.backOffUntil, func(_ requestKey, until time.Time) bool { return !now.Before(until) })
	w.backOffUntil[key] = now.Add(requestWritesPause)
}

func (w *Writer) write(ctx context.Context, u nodepool.OwnedUpdate) error {
	timeout := timing.RequestTimeout
	if urgencyOf(&u, false) == unadmitted {
		timeout = overTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
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
		written, err := client.Patch(ctx, u.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: rayobject.FieldManager}, "status")
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

// adopt makes the RayCluster own an object that somebody else made, beside those that own it already. Its owner may renew it, and its status be
// written, at the same time.
func (w *Writer) adopt(ctx context.Context, u nodepool.OwnedUpdate) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { return w.adoptOnce(ctx, u) })
}

func (w *Writer) adoptOnce(ctx context.Context, u nodepool.OwnedUpdate) error {
	client := w.client.Namespace(u.Namespace)
	object, err := client.Get(ctx, u.Name, metav1.GetOptions{})
	if err != nil || string(object.GetUID()) != u.UID {
		return err
	}
	if Decode(object).ClusterUID != "" { // by an update before this one, which the cache did not tell of yet
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
	written, err := client.Patch(ctx, u.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: rayobject.FieldManager})
	if err == nil {
		w.requests.Set(Decode(written))
	}
	return err
}
