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
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// Limits on statuses and other writes of this process to ResourceRequests: many requests of many clusters may change at
// once. A newer update of a request replaces the waiting one.
const (
	requestWrites      = 50 // a second
	requestWriteBurst  = 100
	requestWriters     = 4
	requestWritesPause = 5 * time.Second // after one that failed
	// While callers write more than fewCalls a second, updates that are not urgent are limited to ordinaryWrites a
	// second: each status costs the API server as much as a caller's write.
	ordinaryWrites = 10
	// lookAgain is the pause before the next look if no waiting update may be written yet.
	lookAgain = 20 * time.Millisecond
)

// Writer writes the status of requests, in the background and only while this process leads.
type Writer struct {
	requests *Store
	// client has its own rate limit, so that background writes do not delay callers.
	client dynamic.NamespaceableResourceInterface
	// mayWriteTo reports whether this process may write about a RayCluster now.
	mayWriteTo func(nodepool.ClusterKey) bool
	log        *slog.Logger
	// limit applies to all writes, ordinaryLimit to writes that are not urgent while callers write much.
	limit, ordinaryLimit flowcontrol.RateLimiter
	wake                 chan struct{}

	mu sync.Mutex // guards the rest
	// waiting is by object; queue lists them in the order in which they arrived.
	waiting map[requestKey]waitingUpdate
	queue   []requestKey
	// served has for each namespace the turn of its last write.
	served map[string]int64
	turn   int64
	// backOffUntil has the requests whose last write failed within requestWritesPause.
	backOffUntil map[requestKey]time.Time
}

// waitingUpdate is the newest update of a request. urgent: it changes what users wait for, the state of a request or
// whether it exists.
type waitingUpdate struct {
	nodepool.OwnedUpdate
	urgent bool
}

// NewWriter prepares a writer; Start begins to write. mayWriteTo reports whether this process may write about a
// RayCluster now.
func NewWriter(
	requests *Store, client dynamic.NamespaceableResourceInterface, mayWriteTo func(nodepool.ClusterKey) bool,
	log *slog.Logger,
) *Writer {
	return &Writer{
		requests:      requests,
		client:        client,
		mayWriteTo:    mayWriteTo,
		log:           log,
		limit:         flowcontrol.NewTokenBucketRateLimiter(requestWrites, requestWriteBurst),
		ordinaryLimit: flowcontrol.NewTokenBucketRateLimiter(ordinaryWrites, 1),
		wake:          make(chan struct{}, 1),
		waiting:       map[requestKey]waitingUpdate{},
		served:        map[string]int64{},
		backOffUntil:  map[requestKey]time.Time{},
	}
}

// Report writes the updates soon. An update that cannot be written is dropped: the next cycle finds it missing and
// sends it again.
func (w *Writer) Report(updates []nodepool.OwnedUpdate) {
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
		w.waiting[key] = waitingUpdate{u, changes || u.Adopt != nil}
	}
	w.mu.Unlock()
	w.look()
}

// look wakes the writer.
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
		places <- struct{}{} // each write has a timeout, so a slot is free soon
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

// next waits until an update may be written, and returns its newest version. The caller must call leave; a nil leave
// means that ctx has ended.
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

// take takes the most urgent update of a request that is not being written: namespaces in turn, and in one namespace
// the oldest. later reports that there are updates that may not be taken yet.
func (w *Writer) take() (update nodepool.OwnedUpdate, leave func(), later bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, urgent := range []bool{true, false} {
		for _, i := range w.order(urgent) {
			key := w.queue[i]
			if !urgent && w.requests.locks.busy() && !w.ordinaryLimit.TryAccept() {
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
			return update, leave, false
		}
	}
	if len(w.queue) == 0 {
		clear(w.served)
	}
	return update, nil, len(w.queue) > 0
}

// order lists the places in the queue of urgent updates, or of the others: first one of each namespace, the one that
// waited longest first, then all others. A namespace with many updates does not delay others.
func (w *Writer) order(urgent bool) (places []int) {
	var others []int
	seen := map[string]bool{}
	for i, key := range w.queue {
		switch {
		case w.waiting[key].urgent != urgent:
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

// carryOut writes an update, if this process may write about the RayCluster.
func (w *Writer) carryOut(ctx context.Context, update nodepool.OwnedUpdate) {
	key := requestKey{update.Namespace, update.Name}
	defer w.requests.settle(key, update.Status)
	if !w.mayWriteTo(w.requests.clusterOf(key)) {
		return
	}
	if err := w.write(ctx, update); err != nil && !apierrors.IsNotFound(err) {
		w.log.Warn("cannot write the status of a request", "namespace", update.Namespace, "request", update.Name,
			"err", err)
		w.backOff(key, time.Now())
	}
}

// backOff stops writes to an object for a while, and forgets those whose pause is over: they may be gone for good.
func (w *Writer) backOff(key requestKey, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.backOffUntil, func(_ requestKey, until time.Time) bool { return !now.Before(until) })
	w.backOffUntil[key] = now.Add(requestWritesPause)
}

func (w *Writer) write(ctx context.Context, u nodepool.OwnedUpdate) error {
	ctx, cancel := context.WithTimeout(ctx, reflector.RequestTimeout)
	defer cancel()
	client := w.client.Namespace(u.Namespace)
	if u.Delete {
		err := client.Delete(ctx, u.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: new(uid(u.UID)), ResourceVersion: &u.ResourceVersion}})
		if apierrors.IsConflict(err) {
			return nil // it was renewed, or another object has the name now
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
func (w *Writer) adopt(ctx context.Context, u nodepool.OwnedUpdate) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { return w.adoptOnce(ctx, u) })
}

func (w *Writer) adoptOnce(ctx context.Context, u nodepool.OwnedUpdate) error {
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
