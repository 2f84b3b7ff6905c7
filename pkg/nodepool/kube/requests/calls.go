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
	"k8s.io/client-go/dynamic"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// Calls lets users read and write ResourceRequests. Any process may write them, leading or not: they are what users ask
// for.
//
// Errors: nodepool.ErrNoRequests if there are no ResourceRequests, nodepool.ErrGone without the RayCluster,
// nodepool.ErrNoRequest without the request, nodepool.ErrRequestElsewhere if its name is in use for another RayCluster,
// nodepool.ErrRequestRefused if the API server rejects it.
type Calls struct {
	// Store and Writer are nil if requests cannot be kept.
	Store  *Store
	Writer *Writer
	// Cluster returns the known RayCluster, or nodepool.ErrGone.
	Cluster func(key nodepool.ClusterKey) (*unstructured.Unstructured, error)
	// Writable returns nil, or why nothing may be written.
	Writable func() error
}

// Report writes the status of requests, in the background and only while this process leads.
func (o Calls) Report(updates []nodepool.OwnedUpdate) {
	if o.Writer != nil {
		o.Writer.Report(updates)
	}
}

// Of lists the requests for a RayCluster as they are written, whether the RayCluster exists or not. All other methods
// show decisions about requests before they are written.
func (o Calls) Of(key nodepool.ClusterKey) []nodepool.OwnedRequest {
	if o.Store == nil {
		return nil
	}
	return o.Store.decidable(key)
}

// Available returns nil if requests can be kept.
func (o Calls) Available(namespace string) error {
	if o.Store == nil {
		return fmt.Errorf("%w: the sidecar form has no right to write them", nodepool.ErrNoRequests)
	}
	return o.Store.available(namespace)
}

// All lists the requests of a namespace; an empty one means all of them.
func (o Calls) All(namespace string) ([]nodepool.OwnedRequest, error) {
	if err := o.Available(namespace); err != nil {
		return nil, err
	}
	return o.Store.all(namespace), nil
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

// Changes is closed when a request changes or goes; nil if there is no such request.
func (o Calls) Changes(key nodepool.ClusterKey, id string) <-chan struct{} {
	if o.Store == nil {
		return nil
	}
	return o.Store.changes(key.Namespace, id)
}

// A write that conflicts with another write of the same request is retried, with a pause that doubles each time, so
// that competing callers spread out.
const (
	writeAttempts = 6
	conflictPause = 20 * time.Millisecond
)

// Put creates a request, or replaces it. may is called with the existing one, nil if there is none, and can reject the
// call. Put calls it again if another write came in between, or if it rejected a request that a watch reported, because
// watches lag. If nothing but the lease's renewal would change, Put renews the lease.
func (o Calls) Put(
	ctx context.Context, wanted nodepool.OwnedRequest, may func(known *nodepool.OwnedRequest) error,
) (made nodepool.OwnedRequest, created bool, err error) {
	defer func() { err = o.about("keeping", wanted.ID, wanted.Cluster, err) }()
	if err := o.Writable(); err != nil {
		return made, false, err
	}
	cluster, err := o.clusterOf(wanted.Cluster)
	if err != nil {
		return made, false, err
	}
	known, there := o.Store.get(wanted.Cluster.Namespace, wanted.ID)
	for attempt := range writeAttempts {
		if attempt > 0 && !reflector.Sleep(ctx, reflector.Jittered(conflictPause<<(attempt-1))) {
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

// isRefusedAsKnown reports whether a call was rejected because of what is known of the existing request.
func isRefusedAsKnown(err error) bool {
	return errors.Is(err, nodepool.ErrRequestElsewhere) || errors.Is(err, nodepool.ErrReadOnly)
}

func (o Calls) create(
	ctx context.Context, wanted nodepool.OwnedRequest, cluster nodepool.ClusterReference,
	may func(*nodepool.OwnedRequest) error,
) (*unstructured.Unstructured, error) {
	if err := may(nil); err != nil {
		return nil, err
	}
	object, err := Encode(&wanted)
	if err != nil {
		return nil, err
	}
	own(object, cluster)
	return o.client(wanted.Cluster.Namespace).
		Create(ctx, object, metav1.CreateOptions{FieldManager: nodepool.FieldManager})
}

// replace writes the spec of an existing request, guarded by its version. The owner stays. If nothing would change, it
// sends the version alone: then the API server writes nothing, and returns whether that is still the current version.
func (o Calls) replace(
	ctx context.Context, wanted nodepool.OwnedRequest, known *nodepool.OwnedRequest,
	may func(*nodepool.OwnedRequest) error,
) (*unstructured.Unstructured, error) {
	if known.Cluster != wanted.Cluster {
		return nil, nodepool.ErrRequestElsewhere // do not say which one: the caller may not have the right to see it
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
	metadata := map[string]any{"uid": known.UID, "resourceVersion": known.ResourceVersion}
	if known.Unreadable == "" && wanted.LeaseSeconds == 0 && wanted.Fingerprint() == known.Fingerprint() {
		return o.patch(ctx, wanted.Cluster, wanted.ID, map[string]any{"metadata": metadata})
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
	return o.patch(ctx, wanted.Cluster, wanted.ID, map[string]any{"metadata": metadata, "spec": spec})
}

func (o Calls) patch(
	ctx context.Context, key nodepool.ClusterKey, id string, change map[string]any,
) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	return o.client(key.Namespace).
		Patch(ctx, id, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: nodepool.FieldManager})
}

// Renew renews the lease of a request. A request without a lease stays as it is.
func (o Calls) Renew(
	ctx context.Context, key nodepool.ClusterKey, id string, now time.Time,
	may func(known *nodepool.OwnedRequest) error,
) (made nodepool.OwnedRequest, err error) {
	defer func() { err = o.about("renewing", id, key, err) }()
	if err := o.Writable(); err != nil {
		return made, err
	}
	if err := o.Available(key.Namespace); err != nil {
		return made, err
	}
	known, err := o.found(ctx, key, id)
	if err == nil && (known.Deleting || known.LeaseSeconds == 0) { // it may have been replaced, or have a lease by now
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
	written, err := o.patch(ctx, key, id, map[string]any{
		"metadata": map[string]any{"uid": known.UID}, "spec": map[string]any{"renewTime": metav1.NewMicroTime(now)},
	})
	if err != nil {
		return known, err
	}
	return o.Store.keep(Decode(written)), nil
}

// Delete deletes a request.
func (o Calls) Delete(
	ctx context.Context, key nodepool.ClusterKey, id string, may func(known *nodepool.OwnedRequest) error,
) (err error) {
	defer func() { err = o.about("deleting", id, key, err) }()
	if err := o.Writable(); err != nil {
		return err
	}
	if err := o.Available(key.Namespace); err != nil {
		return err
	}
	known, err := o.found(ctx, key, id)
	if err != nil {
		return err
	}
	for attempt := range writeAttempts {
		if attempt > 0 && !reflector.Sleep(ctx, reflector.Jittered(conflictPause<<(attempt-1))) {
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

func (o Calls) client(namespace string) dynamic.ResourceInterface {
	return o.Store.client.Namespace(namespace)
}

// found returns the known request, or else reads it from the API server: a watch may not have reported it yet.
func (o Calls) found(ctx context.Context, key nodepool.ClusterKey, id string) (nodepool.OwnedRequest, error) {
	known, err := o.Get(key, id)
	if errors.Is(err, nodepool.ErrNoRequest) {
		return o.foundFresh(ctx, key, id)
	}
	return known, err
}

// foundFresh reads a request from the API server, and returns nodepool.ErrNoRequest if there is none.
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

// clusterOf returns the RayCluster of a request. One that is being deleted accepts no more requests.
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

// about adds what was done to which request, and converts the API server's errors into those that callers check for.
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

// isKindGoing reports whether the API server rejects new objects because the kind is being deleted. Only the message
// says so.
func isKindGoing(err error) bool {
	return apierrors.IsForbidden(err) &&
		strings.Contains(err.Error(), "while custom resource definition is terminating")
}
