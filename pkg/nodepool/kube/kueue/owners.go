package kueue

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const (
	// maxOwners bounds how many owners are followed. The longest known chain has four: a RayCluster of a RayJob of a
	// RayCronJob of an AppWrapper.
	maxOwners = 8
	// answersLast is how long owners are cached between patches. Kueue does not allow the queue of a running job to
	// change, and owners are read again right before each patch.
	answersLast = 10 * time.Minute
	// unfollowedLast is how long it is cached that Kueue does not follow the replicas of a RayCluster: it soon may, for
	// example when a RayService gets ready.
	unfollowedLast = 5 * time.Second
	// failurePause is the pause before owners that could not be read are read again.
	failurePause = 5 * time.Second
	// ownerReaders is how many RayClusters' owners are read at the same time.
	ownerReaders = 12
)

// Unread says that this process may not read an object that controls the RayCluster, so a queue that only this
// object names is unknown.
const Unread = "owner-unread"

// Owners knows which RayClusters Kueue queues through an object that controls them, directly or indirectly. It reads
// metadata alone, once for each RayCluster and again before each patch.
type Owners struct {
	client metadata.Interface
	// whole reads RayJobs and RayServices.
	whole dynamic.Interface
	kinds meta.RESTMapper
	log   *slog.Logger
	now   func() time.Time
	// changed is called after the result for a RayCluster changed.
	changed func(nodepool.ClusterKey)
	// places has one for each reading that is made at the same time.
	places chan struct{}

	mu sync.Mutex
	// Guarded by mu. answers are those about RayClusters that have been asked about; requested are the readings that
	// have not ended.
	answers   map[nodepool.ClusterKey]ownerAnswer
	requested map[reading]bool
}

// reading is a requested reading of the owners of a RayCluster.
type reading struct {
	cluster nodepool.ClusterKey
	from    decode.Ownership
}

// ownerAnswer is what the owners of a RayCluster say.
type ownerAnswer struct {
	of decode.Controller
	// readAt is when the reading began; zero while there is no answer. No other reading is requested before until.
	readAt, until time.Time
	// queue is the queue that the owners name; unreadable is the owner that may not be read, and cause why.
	queue             nodepool.Queue
	unreadable, cause string
}

// NewOwners prepares the reads. kinds finds the resource of a kind.
func NewOwners(client metadata.Interface, whole dynamic.Interface, kinds meta.RESTMapper, log *slog.Logger,
	changed func(nodepool.ClusterKey)) *Owners {
	return &Owners{
		client:    client,
		whole:     whole,
		kinds:     kinds,
		log:       log,
		now:       time.Now,
		changed:   changed,
		answers:   map[nodepool.ClusterKey]ownerAnswer{},
		requested: map[reading]bool{},
		places:    make(chan struct{}, ownerReaders),
	}
}

// AddTo adds to a cluster what is known of its owners, and requests a reading if that is unknown or old. A label of the
// RayCluster's own needs no other proof. Until owners have been read once, a queue is possible, so nothing is written.
func (p *Owners) AddTo(cluster *nodepool.Cluster, from decode.Ownership) {
	own := cluster.Queue.Queued() && cluster.Queue.Parent.Kind == ""
	if p == nil || own || from.Controller == (decode.Controller{}) {
		return
	}
	answer := p.known(cluster.Key, from)
	if cluster.Queue.Queued() && !answer.queue.Queued() {
		return
	}
	if answer.readAt.IsZero() {
		cluster.Queue.Unknown = fmt.Sprintf("%s %s, which owns it, has not been read, so it is unknown whether Kueue "+
			"queues it", from.Controller.Kind, from.Controller.Name)
		return
	}
	cluster.Queue = answer.queue
	cluster.Queue.Elastic = from.Elastic
	if answer.unreadable != "" && !answer.queue.Queued() {
		cluster.Findings = append(cluster.Findings, raydemand.Finding{
			Code: Unread, Severity: raydemand.Info, Object: "RayCluster " + cluster.Key.String(),
			Field: "metadata.ownerReferences", Seen: answer.unreadable,
			Why: "this process cannot read the owner (" + answer.cause +
				"), so a Kueue queue that only the owner names is unknown; " +
				"neither labels nor pod templates of the RayCluster show one",
			Fix: "grant the verb get on its kind by a ClusterRole, if a queue admits it",
		})
	}
}

// known returns the last answer about a RayCluster, and requests a reading if there is none or it is old. A reading
// that fails is requested again after a pause, and none while it waits for a place or for the API server.
func (p *Owners) known(key nodepool.ClusterKey, from decode.Ownership) ownerAnswer {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer := p.answers[key]
	if answer.of != from.Controller {
		answer = ownerAnswer{of: from.Controller}
	}
	if now := p.now(); !now.Before(answer.until) {
		answer.until = now.Add(failurePause)
		p.answers[key] = answer
		if r := (reading{key, from}); !p.requested[r] {
			p.requested[r] = true
			go p.read(r)
		}
	}
	return answer
}

// read makes a requested reading, and keeps the answer unless the RayCluster is gone or has another owner by then.
func (p *Owners) read(r reading) {
	p.places <- struct{}{}
	defer func() { <-p.places }()
	answer, err := p.follow(context.Background(), r.cluster, r.from)
	p.mu.Lock()
	delete(p.requested, r)
	asked := p.answers[r.cluster].of == r.from.Controller
	news := err == nil && asked && p.remember(r.cluster, answer)
	p.mu.Unlock()
	if err != nil {
		p.log.Debug("cannot read owners", "cluster", r.cluster.String(), "reason", err)
	}
	if news {
		p.changed(r.cluster)
	}
}

// remember keeps an answer unless a later reading has given another, and reports whether it is news. The caller holds
// mu.
func (p *Owners) remember(key nodepool.ClusterKey, answer ownerAnswer) bool {
	before := p.answers[key]
	if before.of == answer.of && before.readAt.After(answer.readAt) {
		return false
	}
	p.answers[key] = answer
	return before.readAt.IsZero() || before.of != answer.of || before.queue != answer.queue ||
		before.unreadable != answer.unreadable
}

// Drop forgets a RayCluster that is gone.
func (p *Owners) Drop(key nodepool.ClusterKey) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.answers, key)
}

// Read reads from the API server which queue the owners name, and remembers the answer. It does not if they were read
// since that time; zero is never. After an error nothing is known.
func (p *Owners) Read(
	ctx context.Context, key nodepool.ClusterKey, from decode.Ownership, since time.Time,
) (nodepool.Queue, error) {
	p.mu.Lock()
	last := p.answers[key]
	p.mu.Unlock()
	if last.of == from.Controller && !since.IsZero() && !last.readAt.Before(since) {
		last.queue.Elastic = from.Elastic
		return last.queue, nil
	}
	answer, err := p.follow(ctx, key, from)
	if err != nil {
		return nodepool.Queue{}, fmt.Errorf("reading the owners of RayCluster %s: %w", key, err)
	}
	p.mu.Lock()
	news := p.remember(key, answer)
	p.mu.Unlock()
	if news {
		p.changed(key)
	}
	return answer.queue, nil
}

// follow goes from controller to controller until one names a queue.
func (p *Owners) follow(ctx context.Context, key nodepool.ClusterKey, from decode.Ownership) (ownerAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, reflector.RequestTimeout)
	defer cancel()
	answer := ownerAnswer{of: from.Controller, readAt: p.now(), queue: nodepool.Queue{Elastic: from.Elastic}}
	// With jitter, so that the answers of a start do not all end at the same time.
	answer.until = p.now().Add(reflector.Jittered(answersLast))
	next := from.Controller
	for range maxOwners {
		if next == (decode.Controller{}) {
			return answer, nil
		}
		object, err := p.get(ctx, key.Namespace, next)
		switch {
		case apierrors.IsForbidden(err), meta.IsNoMatchError(err):
			return answer.withoutOwner(next, err, from), nil
		case apierrors.IsNotFound(err), err == nil && string(object.UID) != next.UID:
			return answer, nil // the garbage collector deletes the RayCluster soon
		case err != nil:
			return answer, err
		}
		if queue := object.Labels[nodepool.QueueLabel]; queue != "" {
			answer.queue.Name = queue
			answer.queue.Parent = nodepool.Owner{Kind: next.Kind, Name: next.Name, UID: next.UID}
			answer.queue.Mark = fmt.Sprintf("label %s on %s %s", nodepool.QueueLabel, next.Kind, next.Name)
			if !from.Elastic {
				return answer, nil
			}
			if answer.queue.Unfollowed, err = p.unfollowed(ctx, key, next); answer.queue.Unfollowed != "" {
				answer.until = p.now().Add(reflector.Jittered(unfollowedLast))
			}
			answer.queue.Followed = err == nil && answer.queue.Unfollowed == ""
			return answer, err
		}
		next = controllerAbove(object)
	}
	return answer.withoutOwner(next, fmt.Errorf("it is owner number %d", maxOwners+1), from), nil
}

// withoutOwner uses what Kueue wrote into the pod templates if an owner cannot be read.
func (a ownerAnswer) withoutOwner(owner decode.Controller, cause error, from decode.Ownership) ownerAnswer {
	a.unreadable, a.cause = owner.Kind+" "+owner.Name, cause.Error()
	if from.Admitted {
		a.queue.Name, a.queue.Parent = from.Queue, nodepool.Owner{Kind: owner.Kind, Name: owner.Name, UID: owner.UID}
		a.queue.Unfollowed = fmt.Sprintf("%s %s cannot be read", owner.Kind, owner.Name)
		a.queue.Mark = fmt.Sprintf("label %s in its pod templates; %s %s cannot be read", decode.PodSetLabel,
			owner.Kind, owner.Name)
	}
	return a
}

func controllerAbove(object *metav1.PartialObjectMetadata) decode.Controller {
	above := metav1.GetControllerOfNoCopy(object)
	if above == nil {
		return decode.Controller{}
	}
	return decode.Controller{APIVersion: above.APIVersion, Kind: above.Kind, Name: above.Name, UID: string(above.UID)}
}

// get reads the metadata of an owner, which is in the namespace of what it owns or in none.
func (p *Owners) get(
	ctx context.Context,
	namespace string,
	owner decode.Controller,
) (*metav1.PartialObjectMetadata, error) {
	resource, namespaced, err := p.resource(owner)
	if err != nil {
		return nil, err
	}
	if namespaced {
		return p.client.Resource(resource).Namespace(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	}
	return p.client.Resource(resource).Get(ctx, owner.Name, metav1.GetOptions{})
}

// resource returns the resource of an owner's kind.
func (p *Owners) resource(owner decode.Controller) (of schema.GroupVersionResource, namespaced bool, err error) {
	kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
	mapping, err := p.kinds.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return of, false, fmt.Errorf("finding the resource of %s: %w", kind, err)
	}
	return mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}
