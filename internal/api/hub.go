package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// maxSubscribers limits the streams. The pending events of a subscriber are the newest of each kind about each
// RayCluster, and subscribers share them.
const maxSubscribers = 2000

// HubConfig has the times of a hub. Zero means the default.
type HubConfig struct {
	// Interval is the pause between two dispatches, which gathers changes: 250 ms by default. Negative means none.
	Interval time.Duration
	// Heartbeat is how often a stream checks its caller's rights again and sends a comment: every 15 s by default.
	Heartbeat time.Duration
	// MaxAge is how long a stream lasts: 30 minutes by default.
	MaxAge time.Duration
}

// Hub sends changes to subscribers. Without subscribers it costs one atomic read per decision and stores nothing.
type Hub struct {
	HubConfig
	fleet Fleet

	subscribed atomic.Int64 // the number of subscribers
	ids        atomic.Uint64

	mu          sync.Mutex // guards the fields below
	subscribers map[*subscriber]bool
	changed     map[nodepool.ClusterKey]bool
	gone        map[nodepool.ClusterKey]bool
	sent        map[nodepool.ClusterKey]state // the last state that was sent
	closed      bool
	// wake has a token while a change waits for dispatch. done is closed when the dispatcher has ended; nil without
	// one.
	wake chan struct{}
	stop context.CancelFunc
	done chan struct{}
}

// NewHub returns a hub without subscribers. SetFleet must follow before its first use.
func NewHub(config HubConfig) *Hub {
	return &Hub{
		HubConfig: HubConfig{
			Interval:  cmp.Or(config.Interval, 250*time.Millisecond),
			Heartbeat: cmp.Or(config.Heartbeat, 15*time.Second),
			MaxAge:    cmp.Or(config.MaxAge, 30*time.Minute),
		},
		subscribers: map[*subscriber]bool{},
		wake:        make(chan struct{}, 1),
		changed:     map[nodepool.ClusterKey]bool{},
		gone:        map[nodepool.ClusterKey]bool{},
		sent:        map[nodepool.ClusterKey]state{},
	}
}

// SetFleet sets the clusters that events are about.
func (h *Hub) SetFleet(fleet Fleet) { h.fleet = fleet }

// Changed records a new decision about a cluster. It never blocks.
func (h *Hub) Changed(key nodepool.ClusterKey) { h.record(key, false) }

// Gone records that a cluster was deleted. It never blocks.
func (h *Hub) Gone(key nodepool.ClusterKey) { h.record(key, true) }

// Moved ends the streams that show a cluster: another replica decides about it, and sends its events from now on.
func (h *Hub) Moved(key nodepool.ClusterKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sent, key)
	for s := range h.subscribers {
		if s.includes(key) {
			s.end("RayCluster " + key.String() + " has moved to another replica; open a new stream")
		}
	}
}

func (h *Hub) record(key nodepool.ClusterKey, gone bool) {
	if h.subscribed.Load() == 0 {
		return
	}
	h.mu.Lock()
	if gone {
		h.gone[key] = true
	} else {
		h.changed[key] = true
	}
	h.mu.Unlock()
	signal(h.wake)
}

// signal puts a token into wake, unless there is one.
func signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// Close ends all streams and refuses new ones. It returns when no event is being dispatched.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	for s := range h.subscribers {
		s.end(serverEnds)
	}
	stop, done := h.stop, h.done
	h.mu.Unlock()
	if stop != nil {
		stop()
		<-done
	}
}

const serverEnds = "the server is shutting down"

// Reasons why the hub refuses a subscriber.
var (
	errFull   = &problem{Kind: kindUnavailable, Detail: "there are too many event streams; try again later"}
	errClosed = &problem{Kind: kindUnavailable, Detail: serverEnds}
)

// add adds a subscriber, and starts the dispatcher with the first one.
func (h *Hub) add(s *subscriber) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return errClosed
	case len(h.subscribers) >= maxSubscribers:
		return errFull
	}
	h.subscribers[s] = true
	h.subscribed.Store(int64(len(h.subscribers)))
	if h.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		h.stop, h.done = stop, make(chan struct{})
		go h.run(ctx, h.done)
	}
	return nil
}

// remove removes a subscriber. With the last one it stops the dispatcher and forgets what was sent.
func (h *Hub) remove(s *subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subscribers, s)
	h.subscribed.Store(int64(len(h.subscribers)))
	if len(h.subscribers) == 0 && h.stop != nil {
		h.stop()
		h.stop = nil
		clear(h.changed)
		clear(h.gone)
		clear(h.sent)
	}
}

// run dispatches changes until ctx ends.
func (h *Hub) run(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
		}
		h.dispatch(ctx)
		if h.Interval > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(h.Interval):
			}
		}
	}
}

// dispatch gives subscribers what has changed since the last time.
func (h *Hub) dispatch(ctx context.Context) {
	h.mu.Lock()
	changed, gone := h.changed, h.gone
	h.changed, h.gone = map[nodepool.ClusterKey]bool{}, map[nodepool.ClusterKey]bool{}
	h.mu.Unlock()
	for key := range changed {
		if ctx.Err() != nil {
			return
		}
		if view, exists := h.fleet.View(key); exists {
			h.publish(key, h.changes(view))
		}
	}
	for key := range gone {
		if _, exists := h.fleet.View(key); !exists {
			h.publish(key, []event{h.event(key, apiv1.EventGone, subject{key.Namespace, key.Name})})
			h.mu.Lock()
			delete(h.sent, key)
			h.mu.Unlock()
		}
	}
}

// publish gives events to all subscribers of a cluster.
func (h *Hub) publish(key nodepool.ClusterKey, events []event) {
	if len(events) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subscribers {
		if s.includes(key) {
			s.put(events...)
		}
	}
}

// changes returns the events about a cluster whose content differs from what was sent last.
func (h *Hub) changes(view View) []event {
	now := stateOf(view, time.Now())
	h.mu.Lock()
	before, sent := h.sent[view.Cluster]
	h.sent[view.Cluster] = now.sums()
	h.mu.Unlock()
	var events []event
	if !sent || before.summary != now.summary {
		events = append(events, h.event(view.Cluster, apiv1.EventStatus, view.Summary(time.Now())))
	}
	if !sent || before.demandSum != now.demandSum {
		events = append(events, h.event(view.Cluster, apiv1.EventDemand, now.demand))
	}
	if !sent || before.planSum != now.planSum {
		events = append(events, h.event(view.Cluster, apiv1.EventPlan, now.plan))
	}
	return events
}

// current returns events with the current state of a cluster: of all kinds, or of those given.
func (h *Hub) current(view View, kinds ...string) []event {
	now := stateOf(view, time.Now())
	var events []event
	for _, part := range []struct {
		kind string
		data any
	}{
		{apiv1.EventStatus, view.Summary(time.Now())}, {apiv1.EventDemand, now.demand}, {apiv1.EventPlan, now.plan},
	} {
		if len(kinds) == 0 || slices.Contains(kinds, part.kind) {
			events = append(events, h.event(view.Cluster, part.kind, part.data))
		}
	}
	return events
}

// topic is a cluster and a kind of event. Each event has the whole state of its topic, so a newer one replaces it.
type topic struct {
	key  nodepool.ClusterKey
	kind string
}

// event is one event in the wire format.
type event struct {
	topic
	text []byte
	// order is when it came to a subscriber, as a number that grows.
	order int
}

func (h *Hub) event(key nodepool.ClusterKey, kind string, data any) event {
	text, err := json.Marshal(data)
	if err != nil {
		text = []byte("{}") // all views have an encoding
	}
	var b bytes.Buffer
	b.WriteString("id: " + strconv.FormatUint(h.ids.Add(1), 10) + "\nevent: " + kind + "\ndata: ")
	b.Write(text)
	b.WriteString("\n\n")
	return event{topic: topic{key, kind}, text: b.Bytes()}
}

// Used returns how many of the streams that may be open at once are, from 0 to 1.
func (h *Hub) Used() float64 { return float64(h.subscribed.Load()) / maxSubscribers }

// maxPending is how many bytes of events a subscriber may leave unread.
const maxPending = 4 << 20

// subscriber is the queue of one stream.
type subscriber struct {
	// includes reports whether the stream shows a cluster. It never blocks.
	includes func(nodepool.ClusterKey) bool
	// wake has a token while events are pending.
	wake chan struct{}

	mu sync.Mutex // guards the fields below
	// pending has the newest event of each topic, and arrived counts all events.
	pending map[topic]event
	arrived int
	bytes   int
	// ended is the reason why no more events follow; empty while they may.
	ended string
}

func newSubscriber(includes func(nodepool.ClusterKey) bool) *subscriber {
	return &subscriber{includes: includes, wake: make(chan struct{}, 1), pending: map[topic]event{}}
}

// put adds events. A new event replaces the pending one of its topic; the time does not depend on how many are pending.
func (s *subscriber) put(events ...event) {
	s.mu.Lock()
	for _, e := range events {
		s.bytes += len(e.text) - len(s.pending[e.topic].text)
		s.arrived++
		e.order = s.arrived
		s.pending[e.topic] = e
	}
	if s.bytes > maxPending && s.ended == "" {
		s.ended = "too slow: more than " + strconv.Itoa(maxPending>>20) + " MiB of events are pending"
	}
	if s.ended != "" {
		s.reset()
	}
	s.mu.Unlock()
	signal(s.wake)
}

func (s *subscriber) reset() {
	s.bytes = 0
	clear(s.pending)
}

// end ends the stream after the pending events; the first reason counts.
func (s *subscriber) end(reason string) {
	s.mu.Lock()
	if s.ended == "" {
		s.ended = strings.TrimSpace(reason)
	}
	s.mu.Unlock()
	signal(s.wake)
}

// take returns the pending events in the order of their arrival, and the reason if none follow.
func (s *subscriber) take() (events []event, ended string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	events = slices.SortedFunc(maps.Values(s.pending), func(a, b event) int { return a.order - b.order })
	s.reset()
	return events, s.ended
}
