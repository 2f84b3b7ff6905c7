package kube

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/rayobject"
	"heliostat.dev/heliostat/pkg/nodepool/kube/timing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const (
	// maxParents bounds how many owners are followed. The longest known chain has four: a RayCluster of a RayJob of a
	// RayCronJob of an AppWrapper.
	maxParents = 8
	// parentTTL is how long owners are cached between patches. Kueue does not allow the queue of a running job to
	// change, and owners are read again right before each patch.
	parentTTL = 10 * time.Minute
	// parentPause is the pause before unreadable owners are read again for a cycle. There are several cycles a second,
	// and one slow owner delays those of other RayClusters.
	parentPause = 5 * time.Second
)

// OwnerUnread says that this process may not read an object that controls the RayCluster, so a queue that only this
// object names is unknown.
const OwnerUnread = "owner-unread"

// parents knows which RayClusters Kueue queues through an object that controls them, directly or indirectly. It reads
// metadata alone, once for each RayCluster and again before each patch.
type parents struct {
	client    metadata.Interface
	discovery discovery.ServerResourcesInterface
	log       *slog.Logger
	now       func() time.Time
	// changed is called after the result for a RayCluster changed.
	changed func(nodepool.ClusterKey)
	// wake has a token while pending is not empty.
	wake chan struct{}

	mu sync.Mutex
	// Guarded by mu. pending are the RayClusters whose owners must be read.
	answers   map[nodepool.ClusterKey]parentAnswer
	pending   map[nodepool.ClusterKey]rayobject.Ownership
	resources map[schema.GroupVersionKind]parentResource
	// backOffUntil has the RayClusters whose owners could not be read.
	backOffUntil map[nodepool.ClusterKey]time.Time
}

// parentResource is the resource of an owner's kind.
type parentResource struct {
	schema.GroupVersionResource
	namespaced bool
}

// parentAnswer is what the owners of a RayCluster say.
type parentAnswer struct {
	of rayobject.Controller
	at time.Time
	// queue is the queue that the owners name; unreadable is the owner that may not be read, and cause why.
	queue             nodepool.Queue
	unreadable, cause string
}

// holds reports whether the answer is about these owners and still valid.
func (a parentAnswer) holds(from rayobject.Ownership, now time.Time) bool {
	return a.of == from.Controller && now.Sub(a.at) < parentTTL
}

func newParents(client metadata.Interface, kinds discovery.ServerResourcesInterface, log *slog.Logger,
	changed func(nodepool.ClusterKey)) *parents {
	return &parents{
		client:       client,
		discovery:    kinds,
		log:          log,
		now:          time.Now,
		changed:      changed,
		wake:         make(chan struct{}, 1),
		answers:      map[nodepool.ClusterKey]parentAnswer{},
		pending:      map[nodepool.ClusterKey]rayobject.Ownership{},
		resources:    map[schema.GroupVersionKind]parentResource{},
		backOffUntil: map[nodepool.ClusterKey]time.Time{},
	}
}

// addTo adds to a cluster what is known of its owners, and requests a reading if that is unknown or old. A label of the
// RayCluster's own needs no other proof. Until owners have been read once, a queue is possible, so nothing is written.
func (p *parents) addTo(cluster *nodepool.Cluster, from rayobject.Ownership) {
	if p == nil || cluster.Queue.Queued() || from.Controller == (rayobject.Controller{}) {
		return
	}
	p.mu.Lock()
	answer := p.answers[cluster.Key]
	if now := p.now(); !answer.holds(from, now) && !now.Before(p.backOffUntil[cluster.Key]) {
		p.pending[cluster.Key] = from
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
	p.mu.Unlock()
	if answer.of != from.Controller {
		cluster.Queue.Unknown = fmt.Sprintf("%s %s, which owns it, has not been read, so it is unknown whether Kueue "+
			"queues it", from.Controller.Kind, from.Controller.Name)
		return
	}
	cluster.Queue = answer.queue
	cluster.Queue.Elastic = from.Elastic
	if answer.unreadable != "" && !answer.queue.Queued() {
		cluster.Findings = append(cluster.Findings, raydemand.Finding{
			Code: OwnerUnread, Severity: raydemand.Info, Object: "RayCluster " + cluster.Key.String(),
			Field: "metadata.ownerReferences", Seen: answer.unreadable,
			Why: "this process cannot read the owner (" + answer.cause +
				"), so a Kueue queue that only the owner names is unknown; " +
				"neither labels nor pod templates of the RayCluster show one",
			Fix: "grant the verb get on its kind by a ClusterRole, if a queue admits it",
		})
	}
}

// Start reads the requested owners one by one until ctx ends: nothing waits for them.
func (p *parents) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		}
		for key, from := range p.due() {
			if _, err := p.read(ctx, key, from); err != nil && ctx.Err() == nil {
				p.backOff(key)
				p.log.Debug("cannot read owners; retrying", "cluster", key.String(), "reason", err)
			}
		}
	}
}

// NeedLeaderElection reports false: a candidate for leadership reads owners as well.
func (p *parents) NeedLeaderElection() bool { return false }

// due returns the pending RayClusters and clears the list. It leaves out those that have been answered since.
func (p *parents) due() map[nodepool.ClusterKey]rayobject.Ownership {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := p.pending
	p.pending = map[nodepool.ClusterKey]rayobject.Ownership{}
	for key, from := range due {
		if p.answers[key].holds(from, p.now()) {
			delete(due, key)
		}
	}
	return due
}

func (p *parents) drop(key nodepool.ClusterKey) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.answers, key)
	delete(p.pending, key)
	delete(p.backOffUntil, key)
}

// backOff delays the next reading of owners that could not be read.
func (p *parents) backOff(key nodepool.ClusterKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.backOffUntil[key] = p.now().Add(timing.Jittered(parentPause))
	delete(p.pending, key)
}

// read reads from the API server which queue the owners name, and remembers the answer. After an error nothing is
// known.
func (p *parents) read(ctx context.Context, key nodepool.ClusterKey, from rayobject.Ownership) (nodepool.Queue, error) {
	ctx, cancel := context.WithTimeout(ctx, timing.RequestTimeout)
	defer cancel()
	answer, err := p.follow(ctx, key.Namespace, from)
	if err != nil {
		return nodepool.Queue{}, fmt.Errorf("reading the owners of RayCluster %s: %w", key, err)
	}
	p.mu.Lock()
	before, known := p.answers[key]
	p.answers[key] = answer
	p.mu.Unlock()
	if !known || before.queue != answer.queue || before.unreadable != answer.unreadable {
		p.changed(key)
	}
	return answer.queue, nil
}

// follow goes from controller to controller until one names a queue.
func (p *parents) follow(ctx context.Context, namespace string, from rayobject.Ownership) (parentAnswer, error) {
	answer := parentAnswer{of: from.Controller, at: p.now(), queue: nodepool.Queue{Elastic: from.Elastic}}
	next := from.Controller
	for range maxParents {
		if next == (rayobject.Controller{}) {
			return answer, nil
		}
		object, err := p.get(ctx, namespace, next)
		switch {
		case apierrors.IsForbidden(err), unserved(err):
			return answer.withoutOwner(next, err, from), nil
		case apierrors.IsNotFound(err), err == nil && string(object.UID) != next.UID:
			return answer, nil // the garbage collector deletes the RayCluster soon
		case err != nil:
			return answer, err
		}
		if queue := object.Labels[nodepool.QueueLabel]; queue != "" {
			answer.queue.Name = queue
			answer.queue.Parent = nodepool.Owner{Kind: next.Kind, Name: next.Name}
			answer.queue.Mark = fmt.Sprintf("label %s on %s %s", nodepool.QueueLabel, next.Kind, next.Name)
			return answer, nil
		}
		next = controllerAbove(object)
	}
	return answer.withoutOwner(next, fmt.Errorf("it is owner number %d", maxParents+1), from), nil
}

// withoutOwner uses what Kueue wrote into the pod templates if an owner cannot be read.
func (a parentAnswer) withoutOwner(owner rayobject.Controller, cause error, from rayobject.Ownership) parentAnswer {
	a.unreadable, a.cause = owner.Kind+" "+owner.Name, cause.Error()
	if from.Admitted {
		a.queue.Name, a.queue.Parent = from.Queue, nodepool.Owner{Kind: owner.Kind, Name: owner.Name}
		a.queue.Mark = fmt.Sprintf("label %s in its pod templates; %s %s cannot be read", rayobject.PodSetLabel,
			owner.Kind, owner.Name)
	}
	return a
}

func controllerAbove(object *metav1.PartialObjectMetadata) rayobject.Controller {
	at := slices.IndexFunc(object.OwnerReferences,
		func(r metav1.OwnerReference) bool { return r.Controller != nil && *r.Controller })
	if at < 0 {
		return rayobject.Controller{}
	}
	reference := object.OwnerReferences[at]
	return rayobject.Controller{
		APIVersion: reference.APIVersion,
		Kind:       reference.Kind,
		Name:       reference.Name,
		UID:        string(reference.UID),
	}
}

// get reads the metadata of an owner, which is in the namespace of what it owns or in none.
func (p *parents) get(
	ctx context.Context,
	namespace string,
	owner rayobject.Controller,
) (*metav1.PartialObjectMetadata, error) {
	resource, err := p.resource(owner)
	if err != nil {
		return nil, err
	}
	if resource.namespaced {
		return p.client.Resource(resource.GroupVersionResource).Namespace(namespace).Get(ctx, owner.Name,
			metav1.GetOptions{})
	}
	return p.client.Resource(resource.GroupVersionResource).Get(ctx, owner.Name, metav1.GetOptions{})
}

// unservedError says that the API server does not serve a kind.
type unservedError struct{ kind schema.GroupVersionKind }

func (e unservedError) Error() string { return "the API server does not serve " + e.kind.String() }

func unserved(err error) bool { _, is := err.(unservedError); return is }

// resource returns the resource of a kind. It is cached for good.
func (p *parents) resource(owner rayobject.Controller) (parentResource, error) {
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return parentResource{}, unservedError{schema.GroupVersionKind{Kind: owner.Kind, Version: owner.APIVersion}}
	}
	kind := version.WithKind(owner.Kind)
	p.mu.Lock()
	known, there := p.resources[kind]
	p.mu.Unlock()
	if there {
		return known, nil
	}
	list, err := p.discovery.ServerResourcesForGroupVersion(owner.APIVersion)
	if err != nil && !apierrors.IsNotFound(err) {
		return parentResource{}, fmt.Errorf("finding the resource of %s: %w", kind, err)
	}
	if list == nil {
		return parentResource{}, unservedError{kind}
	}
	at := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool {
		return r.Kind == owner.Kind &&
			!strings.Contains(r.Name, "/")
	})
	if at < 0 {
		return parentResource{}, unservedError{kind}
	}
	found := parentResource{version.WithResource(list.APIResources[at].Name), list.APIResources[at].Namespaced}
	p.mu.Lock()
	p.resources[kind] = found
	p.mu.Unlock()
	return found, nil
}
