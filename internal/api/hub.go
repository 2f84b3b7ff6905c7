package api

import (
	"cmp"
	"sync"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// maxSubscribers limits the streams.
const maxSubscribers = 2000

// Hub wakes streams when there is a new decision about their RayCluster. Each stream reads the decision itself, so a
// slow reader makes nothing pile up. A decision without streams costs one look into a map.
type Hub struct {
	// pause is the time between two events of a stream, which gathers decisions.
	pause time.Duration
	// heartbeat is how often a stream checks its caller's rights again and sends a comment; maxAge is how long it
	// lasts.
	heartbeat, maxAge time.Duration

	fleet Fleet

	mu          sync.Mutex // guards the fields below
	subscribers map[nodepool.ClusterKey]map[*subscriber]bool
	count       int
	closed      bool
}

// subscriber is one stream.
type subscriber struct {
	// wake has a token while there may be a change.
	wake chan struct{}
	// ended is the reason why nothing follows; empty while something may. The hub's mu guards it.
	ended string
}

// NewHub returns a hub without streams. SetFleet must follow before its first use.
func NewHub() *Hub {
	return &Hub{
		pause: time.Second, heartbeat: 15 * time.Second, maxAge: 30 * time.Minute,
		subscribers: map[nodepool.ClusterKey]map[*subscriber]bool{},
	}
}

// SetFleet sets the clusters that events are about.
func (h *Hub) SetFleet(fleet Fleet) { h.fleet = fleet }

// Changed wakes the streams of a cluster about which there is a new decision, or which was deleted. It never blocks.
func (h *Hub) Changed(key nodepool.ClusterKey) { h.tell(key, "") }

// Moved ends the streams of a cluster: another replica decides about it, and sends its events from now on.
func (h *Hub) Moved(key nodepool.ClusterKey) {
	h.tell(key, "RayCluster "+key.String()+" has moved to another replica; open a new stream")
}

// tell wakes the streams of a cluster, and ends them if there is a reason.
func (h *Hub) tell(key nodepool.ClusterKey, end string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subscribers[key] {
		s.ended = cmp.Or(s.ended, end)
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// Close ends all streams and refuses new ones.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	var keys []nodepool.ClusterKey
	for key := range h.subscribers {
		keys = append(keys, key)
	}
	h.mu.Unlock()
	for _, key := range keys {
		h.tell(key, serverEnds)
	}
}

const serverEnds = "the server is shutting down"

// Reasons why the hub refuses a stream.
var (
	errFull   = &problem{Kind: kindUnavailable, Detail: "there are too many event streams; try again later"}
	errClosed = &problem{Kind: kindUnavailable, Detail: serverEnds}
)

// add adds a stream about a cluster. Its first token is there already.
func (h *Hub) add(key nodepool.ClusterKey) (*subscriber, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, errClosed
	case h.count >= maxSubscribers:
		return nil, errFull
	}
	s := &subscriber{wake: make(chan struct{}, 1)}
	s.wake <- struct{}{}
	if h.subscribers[key] == nil {
		h.subscribers[key] = map[*subscriber]bool{}
	}
	h.subscribers[key][s] = true
	h.count++
	return s, nil
}

func (h *Hub) remove(key nodepool.ClusterKey, s *subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count--
	if delete(h.subscribers[key], s); len(h.subscribers[key]) == 0 {
		delete(h.subscribers, key)
	}
}

// end returns the reason why a stream ends; empty if it goes on.
func (h *Hub) end(s *subscriber) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return s.ended
}
