package requests

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"heliostat.dev/heliostat/api/v1alpha1"
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
	return o.Store.Of(key), nil
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

// unlessOvertaken makes a write, and repeats it with a growing pause while it meets other writes of the same request,
// until ctx ends. retry.OnError returns no error for a write that was cut, so the outcome is that of the last write.
func unlessOvertaken(ctx context.Context, write func() error) error {
	patience := wait.Backoff{Steps: 6, Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.5}
	var last error
	_ = retry.OnError(patience, func(err error) bool {
		return ctx.Err() == nil && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err))
	}, func() error { last = write(); return last })
	return last
}

// Put creates a request, or replaces it. may is called with the one that the API server has, nil if there is none, and
// can reject the call. Put calls it again if another write came in between. If nothing but the lease's renewal would
// change, Put renews the lease.
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
	err = unlessOvertaken(ctx, func() error {
		known, err := o.read(ctx, wanted.Cluster.Namespace, wanted.ID)
		if err != nil {
			return err
		}
		var written *unstructured.Unstructured
		if known == nil {
			written, err = o.create(ctx, wanted, cluster, may)
		} else {
			written, err = o.replace(ctx, wanted, known, may)
		}
		switch {
		case apierrors.IsNotFound(err) && known == nil:
			return fmt.Errorf("%w: %s", nodepool.ErrRequestsPaused, notFound)
		case apierrors.IsNotFound(err):
			return apierrors.NewConflict(v1alpha1.Resource.GroupResource(), wanted.ID, err)
		case err != nil:
			return err
		}
		made, created = o.Store.keep(Decode(written)), known == nil
		return nil
	})
	return made, created, err
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

// replace writes the spec of an existing request, guarded by its version. The owner stays. If nothing would change, the
// API server writes nothing.
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
	metadata := map[string]any{"uid": known.UID, "resourceVersion": known.ResourceVersion}
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
	return unlessOvertaken(ctx, func() error {
		known, err := o.found(ctx, key, id)
		if err != nil {
			return err
		}
		if err := may(&known); err != nil {
			return err
		}
		err = o.client(key.Namespace).Delete(ctx, id, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
			UID: new(types.UID(known.UID)), ResourceVersion: &known.ResourceVersion}})
		if err == nil || apierrors.IsNotFound(err) {
			o.Store.deleted(&known)
		}
		return err
	})
}

func (o Calls) client(namespace string) dynamic.ResourceInterface {
	return o.Store.client.Namespace(namespace)
}

// found reads a request from the API server, because watches lag; nodepool.ErrNoRequest if there is none.
func (o Calls) found(ctx context.Context, key nodepool.ClusterKey, id string) (nodepool.OwnedRequest, error) {
	known, err := o.read(ctx, key.Namespace, id)
	if err == nil && (known == nil || known.Cluster != key) {
		err = fmt.Errorf("%w: %s for %s", nodepool.ErrNoRequest, id, key)
	}
	if err != nil {
		return nodepool.OwnedRequest{}, err
	}
	return *known, nil
}

// read reads a request from the API server; nil if there is none.
func (o Calls) read(ctx context.Context, namespace, name string) (*nodepool.OwnedRequest, error) {
	object, err := o.client(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return new(o.Store.keep(Decode(object))), nil
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
	case apierrors.IsNotFound(err):
		err = fmt.Errorf("%w: %w", nodepool.ErrNoRequest, err)
	case isKindGoing(err):
		err = fmt.Errorf("%w: their CustomResourceDefinition is being deleted", nodepool.ErrRequestsPaused)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err):
		err = fmt.Errorf("%w: %w", nodepool.ErrRequestRefused, err)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		err = fmt.Errorf("%w: %w", nodepool.ErrRequestConflict, err)
	case reflector.Unserved(err):
		err = fmt.Errorf("%w: %w", nodepool.ErrUnserved, err)
	}
	return fmt.Errorf("%s request %s for %s: %w", doing, id, key, err)
}

// isKindGoing reports whether the API server rejects new objects because the kind is being deleted. Only the message
// says so.
func isKindGoing(err error) bool {
	return apierrors.IsForbidden(err) &&
		strings.Contains(err.Error(), "while custom resource definition is terminating")
}
