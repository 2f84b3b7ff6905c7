package nodes

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	fieldselector "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// nodeEvents watches the Events in which the AWS node termination handler says that a node goes. It writes them before
// it taints and evicts, and by default it sets no taint at all (docs/reference/departures.md#events). The API server
// selects them, so there are a few for each machine that ends, and it drops them after an hour.
type nodeEvents struct {
	client eventClient
	log    *slog.Logger

	mu sync.Mutex // guards byNode
	// byNode are the Events by the node and their own name.
	byNode map[string]map[types.NamespacedName]nodeEvent
}

// nodeEvent is what one Event says; notice is nil if it takes back what others say.
type nodeEvent struct {
	at     time.Time
	notice *departure.Notice
}

// newNodeEvents prepares the reads; Start begins them.
func newNodeEvents(client eventClient, log *slog.Logger) *nodeEvents {
	return &nodeEvents{client: client, log: log, byNode: map[string]map[types.NamespacedName]nodeEvent{}}
}

// Start reads Events until ctx ends. Without the right to, the signs of the nodes themselves remain.
func (e *nodeEvents) Start(ctx context.Context) error {
	selector := fieldselector.AndSelectors(
		fieldselector.OneTermEqualSelector("source", departure.AWSHandler),
		fieldselector.OneTermEqualSelector("involvedObject.kind", "Node"),
	).String()
	source := eventsOf(e.client, departure.AWSHandler, selector)
	source.Forbidden = func(err error) {
		e.replace(nil, "")
		e.log.Debug("events about nodes are forbidden", "reason", err)
	}
	source.Failed = func(err error) { e.log.Debug("reading events about nodes failed; retrying", "reason", err) }
	source.Into(ctx, &reflector.Store[*corev1.Event]{Put: e.update, Remove: e.remove, ReplaceAll: e.replace})
	return nil
}

func (e *nodeEvents) update(event *corev1.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.keep(event)
}

// keep keeps an Event that says something. The caller holds mu.
func (e *nodeEvents) keep(event *corev1.Event) {
	if sourceOf(event) != departure.AWSHandler || event.InvolvedObject.Kind != "Node" {
		return
	}
	notice, takenBack := departure.OfAWSEvent(event.Reason, event.Message)
	if notice == nil && !takenBack {
		return
	}
	at := happenedAt(event)
	if notice != nil {
		notice.Since = at.UTC()
	}
	node := event.InvolvedObject.Name
	if e.byNode[node] == nil {
		e.byNode[node] = map[types.NamespacedName]nodeEvent{}
	}
	e.byNode[node][nameOf(event)] = nodeEvent{at, notice}
}

func (e *nodeEvents) remove(event *corev1.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	node := event.InvolvedObject.Name
	delete(e.byNode[node], nameOf(event))
	if len(e.byNode[node]) == 0 {
		delete(e.byNode, node)
	}
}

// replace takes a whole list: the first one, or the one after a watch broke.
func (e *nodeEvents) replace(list []*corev1.Event, _ string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.byNode = map[string]map[types.NamespacedName]nodeEvent{}
	for _, event := range list {
		e.keep(event)
	}
}

// Of returns what the Events say about a node that registered at a time: an Event before that is about an earlier
// machine of the name, and one before the last that takes signs back holds no more. A zero time is unknown.
//
// More people may write Events than nodes, so an Event is only a warning until the node itself is confirmed to go. The
// handler cordons each node right after its Event.
func (e *nodeEvents) Of(node string, registered time.Time, confirmed bool) *departure.Notice {
	e.mu.Lock()
	defer e.mu.Unlock()
	events, from := e.byNode[node], registered
	for _, event := range events {
		if event.notice == nil && event.at.After(from) {
			from = event.at
		}
	}
	var found *departure.Notice
	for _, event := range events {
		if event.notice != nil && !event.at.Before(from) {
			found = earliest(found, event.notice)
		}
	}
	if found != nil && !confirmed {
		return found.AsWarning()
	}
	return found
}

// earliest is departure.Earlier for signs that have no order: the one that appeared first comes first.
func earliest(a, b *departure.Notice) *departure.Notice {
	if a != nil && (b.Since.Before(a.Since) || b.Since.Equal(a.Since) && b.Sign < a.Sign) {
		a, b = b, a
	}
	return departure.Earlier(a, b)
}
