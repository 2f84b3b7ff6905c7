package requests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/rayobject"
	"heliostat.dev/heliostat/pkg/nodepool/kube/timing"
)

// Calls keeps requests of owners as ResourceRequests. Any process may write them, leading or not: they are what users ask for.
//
// Errors: nodepool.ErrNoRequests where there are no ResourceRequests, nodepool.ErrGone without the RayCluster, nodepool.ErrNoRequest without the
// request, nodepool.ErrRequestElsewhere where its name is taken for another RayCluster, nodepool.ErrPrecondition where it is not as the caller
// knows it, nodepool.ErrRequestRefused where the API server does not accept it.
type Calls struct {
	// Store is nil where requests cannot be kept, and Writer with it.
	Store  *Store
	Writer *Writer
	// Cluster returns a RayCluster as it is known, or nodepool.ErrGone.
	Cluster func(key nodepool.ClusterKey) (*unstructured.Unstructured, error)
	// Writable returns nil, or why nothing may be written.
	Writable func() error
	// Trace returns what a request keeps of the call that asks for it, or nothing.
	Trace func(ctx context.Context, now time.Time) string
}

// Tell writes what becomes of requests, in the background and only while this process leads.
func (o Calls) Tell(updates []nodepool.OwnedUpdate) {
	if o.Writer != nil {
		o.Writer.Tell(updates)
	}
}

// Of lists the requests for a RayCluster as they are written, whether it is there or not. All other methods show what was decided of requests before it
// is written.
func (o Calls) Of(key nodepool.ClusterKey) []nodepool.OwnedRequest {
	if o.Store == nil {
		return nil
	}
	return o.Store.decidable(key)
}

// Available returns nil where requests of owners can be kept.
func (o Calls) Available(namespace string) error {
	if o.Store == nil {
		return fmt.Errorf("%w: the sidecar form has no right to keep them", nodepool.ErrNoRequests)
	}
	return o.Store.available(namespace)
}

// All lists every request.
func (o Calls) All() ([]nodepool.OwnedRequest, error) {
	if err := o.Available(metav1.NamespaceAll); err != nil {
		return nil, err
	}
	return o.Store.all(), nil
}

// List lists the requests for one RayCluster.
func (o Calls) List(key nodepool.ClusterKey) ([]nodepool.OwnedRequest, error) {
	if err := o.Available(key.Namespace); err != nil {
		return nil, err
	}
	if _, err := o.Cluster(key); err != nil {
		return nil, err
	}
	return o.Store.shownOf(key), nil
}

// Get returns one request.
func (o Calls) Get(key nodepool.ClusterKey, id string) (nodepool.OwnedRequest, error) {
	if err := o.Available(key.Namespace); err != nil {
		return nodepool.OwnedRequest{}, err
	}
	if _, err := o.Cluster(key); err != nil {
		return nodepool.OwnedRequest{}, err
	}
	found, there := o.Store.get(key.Namespace, id)
	if !there || found.Cluster != key {
		return nodepool.OwnedRequest{}, fmt.Errorf("%w: %s for %s", nodepool.ErrNoRequest, id, key)
	}
	return found, nil
}

// Changes is closed when a request changes or goes; nil where there is none.
func (o Calls) Changes(key nodepool.ClusterKey, id string) <-chan struct{} {
	if o.Store == nil {
		return nil
	}
	return o.Store.changes(key.Namespace, id)
}

// A write that met another write of the same request is tried again, each time after a pause twice as long, so that callers who meet at one
// request come apart.
const (
	writeAttempts = 6
	conflictPause = 20 * time.Millisecond
)

// Put makes a request, or replaces it. may is asked about the one that is there, nil where there is none, and may refuse; it is asked again where
// another write came in between, or where it refuses one that was known from a watch: watches lag. When nothing would change but a lease's renewal,
// it is renewed.
func (o Calls) Put(ctx context.Context, wanted nodepool.OwnedRequest, may func(known *nodepool.OwnedRequest) error) (made nodepool.OwnedRequest, created bool, err error) {
	defer func() { err = o.about("keeping", wanted.ID, wanted.Cluster, err) }()
	if err := o.Writable(); err != nil {
		return made, false, err
	}
	cluster, err := o.clusterOf(wanted.Cluster)
	if err != nil {
		return made, false, err
	}
	leave, err := o.turn(ctx, wanted.Cluster, wanted.ID)
	if err != nil {
		return made, false, err
	}
	defer leave()
	wanted.Trace = o.Trace(ctx, time.Now())
	known, there := o.Store.get(wanted.Cluster.Namespace, wanted.ID)
	for attempt := range writeAttempts {
		if attempt > 0 && !timing.Sleep(ctx, timing.Jittered(conflictPause<<(attempt-1))) {
			return made, false, ctx.Err()
		}
		if attempt > 0 {
			if known, there, err = o.fresh(ctx, wanted.Cluster.Namespace, wanted.ID); err != nil {
				return made, false, err
			}
		}
		var written *unstructured.Unstructured
		if !there {
			written, err = o.create(ctx, wanted, cluster, may)
		} else {
			written, err = o.replace(ctx, wanted, &known, may)
		}
		if err == nil {
			return o.Store.keep(Decode(written)), !there, nil
		}
		if !there && apierrors.IsNotFound(err) {
			return made, false, fmt.Errorf("%w: %s", nodepool.ErrRequestsPaused, notFound)
		}
		overtaken := apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
		if !overtaken && (attempt > 0 || !isRefusedAsKnown(err)) {
			return made, false, err
		}
	}
	return made, false, nodepool.ErrRequestConflict
}

// isRefusedAsKnown reports whether a call was refused for what is known of the request that is there.
func isRefusedAsKnown(err error) bool {
	return errors.Is(err, nodepool.ErrPrecondition) || errors.Is(err, nodepool.ErrRequestElsewhere) || errors.Is(err, nodepool.ErrReadOnly)
}

func (o Calls) create(ctx context.Context, wanted nodepool.OwnedRequest, cluster nodepool.ClusterReference, may func(*nodepool.OwnedRequest) error) (*unstructured.Unstructured, error) {
	if err := may(nil); err != nil {
		return nil, err
	}
	object, err := Encode(&wanted)
	if err != nil {
		return nil, err
	}
	own(object, cluster)
	return o.client(wanted.Cluster.Namespace).Create(ctx, object, metav1.CreateOptions{FieldManager: rayobject.FieldManager})
}

// replace writes the spec of a request that is there, guarded by its version. Who owns it stays. Where nothing would change
// its version alone is sent: then the API server writes nothing, and says whether that is still what is there.
func (o Calls) replace(ctx context.Context, wanted nodepool.OwnedRequest, known *nodepool.OwnedRequest, may func(*nodepool.OwnedRequest) error) (*unstructured.Unstructured, error) {
	if known.Cluster != wanted.Cluster {
		return nil, nodepool.ErrRequestElsewhere // which one is not told: the caller may have no right to see it
	}
	if err := may(known); err != nil {
		return nil, err
	}
	if known.Deleting {
		return nil, fmt.Errorf("%w: it is being deleted", nodepool.ErrReadOnly)
	}
	if known.Owner != "" {
		wanted.Owner = known.Owner
	}
	if known.Unreadable == "" && wanted.LeaseSeconds == 0 && wanted.Fingerprint() == known.Fingerprint() {
		return o.patch(ctx, &wanted, map[string]any{"metadata": map[string]any{"uid": known.UID, "resourceVersion": known.ResourceVersion}})
	}
	form := &unstructured.Unstructured{Object: map[string]any{}}
	if err := encodeSpec(form, &wanted); err != nil {
		return nil, err
	}
	spec := form.Object["spec"].(map[string]any)
	for _, optional := range []string{"priority", "leaseSeconds", "renewTime", "holdUntilDeleted", "allOrNothing"} {
		if _, given := spec[optional]; !given {
			spec[optional] = nil // a merge patch removes it
		}
	}
	return o.patch(ctx, &wanted, map[string]any{
		"metadata": map[string]any{"uid": known.UID, "resourceVersion": known.ResourceVersion, "annotations": requestTrace(&wanted)}, "spec": spec,
	})
}

func (o Calls) patch(ctx context.Context, wanted *nodepool.OwnedRequest, change map[string]any) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	return o.client(wanted.Cluster.Namespace).Patch(ctx, wanted.ID, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: rayobject.FieldManager})
}

// Renew renews the lease of a request. One that holds until it is deleted stays as it is.
func (o Calls) Renew(ctx context.Context, key nodepool.ClusterKey, id string, now time.Time, may func(known *nodepool.OwnedRequest) error) (made nodepool.OwnedRequest, err error) {
	defer func() { err = o.about("renewing", id, key, err) }()
	if err := o.Writable(); err != nil {
		return made, err
	}
	leave, err := o.turn(ctx, key, id)
	if err != nil {
		return made, err
	}
	defer leave()
	known, err := o.found(ctx, key, id)
	if err == nil && (known.Deleting || known.LeaseSeconds == 0) { // it may be another one by now, or have a lease
		known, err = o.foundFresh(ctx, key, id)
	}
	if err != nil {
		return known, err
	}
	if err := may(&known); err != nil {
		return known, err
	}
	if known.Deleting {
		return known, fmt.Errorf("%w: it is being deleted", nodepool.ErrReadOnly)
	}
	if known.LeaseSeconds == 0 {
		return known, nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": known.UID}, "spec": map[string]any{"renewTime": metav1.NewMicroTime(now)},
	})
	if err != nil {
		return known, err
	}
	written, err := o.client(key.Namespace).Patch(ctx, id, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: rayobject.FieldManager})
	if err != nil {
		return known, err
	}
	return o.Store.keep(Decode(written)), nil
}

// Delete ends a request.
func (o Calls) Delete(ctx context.Context, key nodepool.ClusterKey, id string, may func(known *nodepool.OwnedRequest) error) (err error) {
	defer func() { err = o.about("deleting", id, key, err) }()
	if err := o.Writable(); err != nil {
		return err
	}
	leave, err := o.turn(ctx, key, id)
	if err != nil {
		return err
	}
	defer leave()
	known, err := o.found(ctx, key, id)
	if err != nil {
		return err
	}
	for attempt := range writeAttempts {
		if attempt > 0 && !timing.Sleep(ctx, timing.Jittered(conflictPause<<(attempt-1))) {
			return ctx.Err()
		}
		if err = may(&known); err == nil {
			err = o.client(key.Namespace).Delete(ctx, id, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
				UID: new(uid(known.UID)), ResourceVersion: &known.ResourceVersion}})
			if err == nil || apierrors.IsNotFound(err) {
				o.Store.deleted(&known)
				return err
			}
		}
		if !apierrors.IsConflict(err) && (attempt > 0 || !isRefusedAsKnown(err)) {
			return err
		}
		if known, err = o.foundFresh(ctx, key, id); err != nil {
			return err
		}
	}
	return nodepool.ErrRequestConflict
}

// turn waits until nobody of this process writes to a request; leave ends the turn.
func (o Calls) turn(ctx context.Context, key nodepool.ClusterKey, id string) (leave func(), err error) {
	if err := o.Available(key.Namespace); err != nil {
		return nil, err
	}
	return o.Store.locks.call(ctx, requestKey{key.Namespace, id})
}

func (o Calls) client(namespace string) requestClient {
	return o.Store.client.Namespace(namespace)
}

// requestClient is what is needed to write ResourceRequests of one namespace.
type requestClient interface {
	Create(ctx context.Context, object *unstructured.Unstructured, options metav1.CreateOptions, subresources ...string) (*unstructured.Unstructured, error)
	Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string) (*unstructured.Unstructured, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions, subresources ...string) error
}

// found is a request as it is known, or where it is not, as the API server has it: no watch may have told of it yet.
func (o Calls) found(ctx context.Context, key nodepool.ClusterKey, id string) (nodepool.OwnedRequest, error) {
	known, err := o.Get(key, id)
	if errors.Is(err, nodepool.ErrNoRequest) {
		return o.foundFresh(ctx, key, id)
	}
	return known, err
}

// foundFresh is a request as the API server has it.
func (o Calls) foundFresh(ctx context.Context, key nodepool.ClusterKey, id string) (nodepool.OwnedRequest, error) {
	found, there, err := o.fresh(ctx, key.Namespace, id)
	if err == nil && (!there || found.Cluster != key) {
		err = fmt.Errorf("%w: %s for %s", nodepool.ErrNoRequest, id, key)
	}
	return found, err
}

// fresh reads a request from the API server.
func (o Calls) fresh(ctx context.Context, namespace, name string) (nodepool.OwnedRequest, bool, error) {
	object, err := o.Store.client.Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nodepool.OwnedRequest{}, false, nil
	}
	if err != nil {
		return nodepool.OwnedRequest{}, false, err
	}
	return o.Store.keep(Decode(object)), true, nil
}

// clusterOf finds the RayCluster that a request is for; one that is being deleted takes no more.
func (o Calls) clusterOf(key nodepool.ClusterKey) (nodepool.ClusterReference, error) {
	if err := o.Available(key.Namespace); err != nil {
		return nodepool.ClusterReference{}, err
	}
	object, err := o.Cluster(key)
	if err != nil {
		return nodepool.ClusterReference{}, err
	}
	if object.GetDeletionTimestamp() != nil {
		return nodepool.ClusterReference{}, fmt.Errorf("%w: %s: it is being deleted", nodepool.ErrReadOnly, key)
	}
	return nodepool.ClusterReference{Name: key.Name, UID: string(object.GetUID())}, nil
}

// about says what was done to which request, and turns the API server's answers into the errors that callers branch on.
func (o Calls) about(doing, id string, key nodepool.ClusterKey, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		err = fmt.Errorf("%w: %w", nodepool.ErrRequestRefused, err)
	case apierrors.IsNotFound(err):
		err = fmt.Errorf("%w: %w", nodepool.ErrNoRequest, err)
	case isKindGoing(err):
		err = fmt.Errorf("%w: their CustomResourceDefinition is being deleted", nodepool.ErrRequestsPaused)
	case apierrors.IsForbidden(err):
		err = fmt.Errorf("%w: %w", nodepool.ErrRequestRefused, err)
	case apierrors.IsConflict(err):
		err = fmt.Errorf("%w: %w", nodepool.ErrRequestConflict, err)
	}
	return fmt.Errorf("%s request %s for %s: %w", doing, id, key, err)
}

// isKindGoing reports whether the API server takes no new object because the kind is being deleted. It says so in words alone.
func isKindGoing(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "while custom resource definition is terminating")
}
