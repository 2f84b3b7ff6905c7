package kueue

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

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
	// failurePause is the pause before owners that could not be read are read again for a cycle. There are several
	// cycles a second.
	failurePause = 5 * time.Second
	// discoveryPause is the pause after the resources of an API version could not be listed. Meanwhile, readings that
	// need them fail at once, and do not hold a reader for up to RequestTimeout each.
	discoveryPause = time.Second
	// firstReaders are the first readings at the same time, and laterReaders the other ones, so that owners that are
	// known or do not answer hold up no first reading.
	firstReaders = 8
	laterReaders = 4
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
	// list returns the resources of an API version.
	list func(ctx context.Context, version string) (*metav1.APIResourceList, error)
	log  *slog.Logger
	now  func() time.Time
	// changed is called after the result for a RayCluster changed.
	changed func(nodepool.ClusterKey)
	// first and later have a token for each of these readings that runs.
	first, later chan struct{}

	mu sync.Mutex
	// Guarded by mu. pending are the readings that wait or run. They begin when ctx is set, and readers counts them.
	answers   map[nodepool.ClusterKey]ownerAnswer
	pending   map[nodepool.ClusterKey]*ownerReading
	ctx       context.Context
	readers   sync.WaitGroup
	resources map[schema.GroupVersionKind]ownerResource
	// backOffUntil has the RayClusters whose owners could not be read, and unlisted the API versions whose resources
	// could not be listed.
	backOffUntil map[nodepool.ClusterKey]time.Time
	unlisted     map[string]failedList
}

// ownerReading is a requested reading. Before a first one, nothing is written to the RayCluster; without it, the last
// answer counts until then, or the reading has failed before, or no cycle has looked yet.
type ownerReading struct {
	key   nodepool.ClusterKey
	from  decode.Ownership
	first bool
}

// ownerResource is the resource of an owner's kind.
type ownerResource struct {
	schema.GroupVersionResource
	namespaced bool
}

// failedList says why the resources of an API version could not be listed, and until when nobody tries again.
type failedList struct {
	err   error
	until time.Time
}

// ownerAnswer is what the owners of a RayCluster say.
type ownerAnswer struct {
	of decode.Controller
	// readAt is when the reading began, until when the answer counts.
	readAt, until time.Time
	// queue is the queue that the owners name; unreadable is the owner that may not be read, and cause why.
	queue             nodepool.Queue
	unreadable, cause string
}

// holds reports whether the answer is about these owners and still valid.
func (a ownerAnswer) holds(from decode.Ownership, now time.Time) bool {
	return a.of == from.Controller && now.Before(a.until)
}

func NewOwners(client metadata.Interface, whole dynamic.Interface,
	list func(context.Context, string) (*metav1.APIResourceList, error),
	log *slog.Logger, changed func(nodepool.ClusterKey)) *Owners {
	return &Owners{
		client:       client,
		whole:        whole,
		list:         list,
		log:          log,
		now:          time.Now,
		changed:      changed,
		answers:      map[nodepool.ClusterKey]ownerAnswer{},
		pending:      map[nodepool.ClusterKey]*ownerReading{},
		resources:    map[schema.GroupVersionKind]ownerResource{},
		backOffUntil: map[nodepool.ClusterKey]time.Time{},
		unlisted:     map[string]failedList{},
		first:        make(chan struct{}, firstReaders),
		later:        make(chan struct{}, laterReaders),
	}
}

// Resources lists resources with the client of discovery. Its own method takes no context, so a reading would outlast
// the process.
func Resources(client rest.Interface) func(context.Context, string) (*metav1.APIResourceList, error) {
	return func(ctx context.Context, version string) (*metav1.APIResourceList, error) {
		path := "/apis/" + version
		if !strings.Contains(version, "/") {
			path = "/api/" + version
		}
		list := &metav1.APIResourceList{}
		return list, client.Get().AbsPath(path).Do(ctx).Into(list)
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
	if answer.of != from.Controller {
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

// known returns the last answer about a RayCluster, and requests a reading unless the answer holds.
func (p *Owners) known(key nodepool.ClusterKey, from decode.Ownership) ownerAnswer {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer, now := p.answers[key], p.now()
	failedUntil, failed := p.backOffUntil[key]
	if !answer.holds(from, now) && !now.Before(failedUntil) {
		p.request(&ownerReading{key, from, !failed && answer.of != from.Controller})
	}
	return answer
}

// Expect requests a reading before a cycle needs it. A candidate for leadership runs no cycles, and should know the
// owners when it leads.
func (p *Owners) Expect(rayCluster *unstructured.Unstructured) {
	from := decode.OwnershipOf(rayCluster)
	if rayCluster.GetLabels()[nodepool.QueueLabel] != "" || from.Controller == (decode.Controller{}) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := nodepool.ClusterKey{Namespace: rayCluster.GetNamespace(), Name: rayCluster.GetName()}
	p.request(&ownerReading{key: key, from: from})
}

// request begins a reading, unless one of the same owner is pending that comes no later. The caller holds mu.
func (p *Owners) request(reading *ownerReading) {
	before := p.pending[reading.key]
	if before != nil && before.from.Controller == reading.from.Controller && (before.first || !reading.first) {
		return
	}
	p.pending[reading.key] = reading
	p.begin(reading)
}

// begin begins a reading while this process reads. The caller holds mu.
func (p *Owners) begin(reading *ownerReading) {
	if ctx := p.ctx; ctx != nil {
		p.readers.Go(func() { p.read(ctx, reading) })
	}
}

// Start reads the requested owners until ctx ends.
func (p *Owners) Start(ctx context.Context) error {
	p.mu.Lock()
	p.ctx = ctx
	for _, reading := range p.pending {
		p.begin(reading)
	}
	p.mu.Unlock()
	<-ctx.Done()
	p.mu.Lock()
	p.ctx = nil
	p.mu.Unlock()
	p.readers.Wait()
	return nil
}

// read makes a reading in its turn, if it is still wanted.
func (p *Owners) read(ctx context.Context, reading *ownerReading) {
	turns := p.later
	if reading.first {
		turns = p.first
	}
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
	case <-ctx.Done():
		return
	}
	// Another one may have taken its place, the RayCluster be gone, or a patch have read its owners.
	wanted := func() bool { return p.pending[reading.key] == reading }
	p.mu.Lock()
	begins := wanted()
	p.mu.Unlock()
	if !begins {
		return
	}
	answer, err := p.follow(ctx, reading.key, reading.from)
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	news := wanted() && err == nil && p.remember(reading.key, answer)
	if wanted() && err != nil {
		p.log.Debug("cannot read owners; retrying", "cluster", reading.key.String(), "reason", err)
		delete(p.pending, reading.key)
		p.backOffUntil[reading.key] = p.now().Add(reflector.Jittered(failurePause))
	}
	p.mu.Unlock()
	if news {
		p.changed(reading.key)
	}
}

// remember keeps an answer, and reports whether it is news. The caller holds mu.
func (p *Owners) remember(key nodepool.ClusterKey, answer ownerAnswer) bool {
	before := p.answers[key]
	p.answers[key] = answer
	delete(p.pending, key)
	delete(p.backOffUntil, key)
	return before.of != answer.of || before.queue != answer.queue || before.unreadable != answer.unreadable
}

func (p *Owners) Drop(key nodepool.ClusterKey) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.answers, key)
	delete(p.pending, key)
	delete(p.backOffUntil, key)
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
		case apierrors.IsForbidden(err), unserved(err):
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
	at := slices.IndexFunc(object.OwnerReferences,
		func(r metav1.OwnerReference) bool { return r.Controller != nil && *r.Controller })
	if at < 0 {
		return decode.Controller{}
	}
	reference := object.OwnerReferences[at]
	return decode.Controller{
		APIVersion: reference.APIVersion,
		Kind:       reference.Kind,
		Name:       reference.Name,
		UID:        string(reference.UID),
	}
}

// get reads the metadata of an owner, which is in the namespace of what it owns or in none.
func (p *Owners) get(
	ctx context.Context,
	namespace string,
	owner decode.Controller,
) (*metav1.PartialObjectMetadata, error) {
	resource, err := p.resource(ctx, owner)
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

// resource returns the resource of a kind. It is cached for good, and a failure for a moment.
func (p *Owners) resource(ctx context.Context, owner decode.Controller) (ownerResource, error) {
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return ownerResource{}, unservedError{schema.GroupVersionKind{Kind: owner.Kind, Version: owner.APIVersion}}
	}
	kind := version.WithKind(owner.Kind)
	p.mu.Lock()
	known, there := p.resources[kind]
	failed := p.unlisted[owner.APIVersion]
	p.mu.Unlock()
	if there {
		return known, nil
	}
	if p.now().Before(failed.until) {
		return ownerResource{}, failed.err
	}
	list, err := p.list(ctx, owner.APIVersion)
	if apierrors.IsNotFound(err) {
		return ownerResource{}, unservedError{kind}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		now, err := p.now(), fmt.Errorf("listing the resources of %s: %w", version, err)
		maps.DeleteFunc(p.unlisted, func(_ string, f failedList) bool { return !now.Before(f.until) })
		p.unlisted[owner.APIVersion] = failedList{err, now.Add(discoveryPause)}
		return ownerResource{}, err
	}
	at := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool {
		return r.Kind == owner.Kind &&
			!strings.Contains(r.Name, "/")
	})
	if at < 0 {
		return ownerResource{}, unservedError{kind}
	}
	found := ownerResource{version.WithResource(list.APIResources[at].Name), list.APIResources[at].Namespaced}
	p.resources[kind] = found
	return found, nil
}
