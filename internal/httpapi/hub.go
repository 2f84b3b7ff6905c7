package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Limits of the hub. What waits for one listener is the newest event of each kind about each RayCluster, shared with the others;
// one that lets more than maxPending bytes wait is too slow.
const (
	maxListeners = 2000
	maxPending   = 4 << 20
	// hubPause gathers changes: a cluster's events come at most four times a second.
	hubPause = 250 * time.Millisecond
)

// Hub tells listeners what changed. Without listeners it costs an atomic look per decision and keeps nothing.
type Hub struct {
	fleet Fleet
	now   func() time.Time
	// pause lies between two rounds; heartbeat, life and patience are those of streams.
	pause, heartbeat, life, patience time.Duration

	listening atomic.Int64 // how many listeners there are
	ids       atomic.Uint64

	mu        sync.Mutex // guards what follows
	listeners map[*listener]bool
	changed   map[nodepool.ClusterKey]bool
	gone      map[nodepool.ClusterKey]bool
	told      map[nodepool.ClusterKey]state
	closed    bool
	// wake has a token while something changed and is not told; done is closed when the teller has ended, nil without one.
	wake chan struct{}
	stop context.CancelFunc
	done chan struct{}
}

// NewHub returns a hub without listeners. The server that it is given to reads the clusters.
func NewHub() *Hub {
	return &Hub{
		now: time.Now, pause: hubPause, heartbeat: eventHeartbeat, life: eventLife, patience: eventPatience, listeners: map[*listener]bool{}, wake: make(chan struct{}, 1),
		changed: map[nodepool.ClusterKey]bool{}, gone: map[nodepool.ClusterKey]bool{}, told: map[nodepool.ClusterKey]state{},
	}
}

// Changed notes that there is a new decision about a cluster. It never blocks.
func (h *Hub) Changed(key nodepool.ClusterKey) { h.note(key, false) }

// Gone notes that a cluster is gone.
func (h *Hub) Gone(key nodepool.ClusterKey) { h.note(key, true) }

func (h *Hub) note(key nodepool.ClusterKey, gone bool) {
	if h.listening.Load() == 0 {
		return
	}
	h.mu.Lock()
	if gone {
		h.gone[key] = true
	} else {
		h.changed[key] = true
	}
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Close ends all streams and takes no further ones. It returns when nobody is told anything any more.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	for l := range h.listeners {
		l.end("the server ends")
	}
	stop, done := h.stop, h.done
	h.mu.Unlock()
	if stop != nil {
		stop()
		<-done
	}
}

// errFull and errClosed say why there is no room for another listener.
var (
	errFull   = errors.New("as many listeners are there as there may be")
	errClosed = errors.New("the server ends")
)

// add takes a listener, and starts the teller with the first one.
func (h *Hub) add(l *listener) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return errClosed
	case len(h.listeners) >= maxListeners:
		return errFull
	}
	h.listeners[l] = true
	h.listening.Store(int64(len(h.listeners)))
	if h.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		h.stop, h.done = stop, make(chan struct{})
		go h.tell(ctx, h.done)
	}
	return nil
}

// remove drops a listener. The last one takes along the teller and what was told.
func (h *Hub) remove(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, l)
	h.listening.Store(int64(len(h.listeners)))
	if len(h.listeners) == 0 && h.stop != nil {
		h.stop()
		h.stop = nil
		clear(h.changed)
		clear(h.gone)
		clear(h.told)
	}
}

// tell passes changes on until ctx ends.
func (h *Hub) tell(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
		}
		h.round(ctx)
		if h.pause > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(h.pause):
			}
		}
	}
}

// round tells everybody what changed since the round before.
func (h *Hub) round(ctx context.Context) {
	h.mu.Lock()
	changed, gone := h.changed, h.gone
	h.changed, h.gone = map[nodepool.ClusterKey]bool{}, map[nodepool.ClusterKey]bool{}
	h.mu.Unlock()
	for key := range changed {
		if ctx.Err() != nil {
			return
		}
		if view, there := h.fleet.View(key); there {
			h.spread(key, h.news(view))
		}
	}
	for key := range gone {
		if _, there := h.fleet.View(key); !there {
			h.spread(key, []frame{h.frame(key, apiv1.EventGone, subject{key.Namespace, key.Name})})
			h.mu.Lock()
			delete(h.told, key)
			h.mu.Unlock()
		}
	}
}

// spread gives frames to all that listen to a cluster.
func (h *Hub) spread(key nodepool.ClusterKey, frames []frame) {
	if len(frames) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		if l.hears(key) {
			l.put(frames...)
		}
	}
}

// news are the events about a cluster whose content is not what was told last.
func (h *Hub) news(view View) []frame {
	now := stateOf(view, h.now())
	h.mu.Lock()
	before, told := h.told[view.Key]
	h.told[view.Key] = now.remembered()
	h.mu.Unlock()
	var frames []frame
	if !told || before.summary != now.summary {
		frames = append(frames, h.frame(view.Key, apiv1.EventStatus, view.summary(h.now())))
	}
	if !told || before.demandSum != now.demandSum {
		frames = append(frames, h.frame(view.Key, apiv1.EventDemand, now.demand))
	}
	if !told || before.planSum != now.planSum {
		frames = append(frames, h.frame(view.Key, apiv1.EventPlan, now.plan))
	}
	return frames
}

// present are all events about a cluster as it is, or those of one kind.
func (h *Hub) present(view View, kinds ...string) []frame {
	now := stateOf(view, h.now())
	var frames []frame
	for _, event := range []struct {
		kind string
		data any
	}{{apiv1.EventStatus, view.summary(h.now())}, {apiv1.EventDemand, now.demand}, {apiv1.EventPlan, now.plan}} {
		if len(kinds) == 0 || slices.Contains(kinds, event.kind) {
			frames = append(frames, h.frame(view.Key, event.kind, event.data))
		}
	}
	return frames
}

// about is what an event is about: each is the whole state of it, so only the newest is worth reading.
type about struct {
	key  nodepool.ClusterKey
	kind string
}

// frame is one event as it goes over the wire.
type frame struct {
	about
	text []byte
}

func (h *Hub) frame(key nodepool.ClusterKey, kind string, data any) frame {
	text, err := json.Marshal(data)
	if err != nil {
		text = []byte("{}") // what the API shows can be encoded
	}
	var b bytes.Buffer
	b.WriteString("id: " + strconv.FormatUint(h.ids.Add(1), 10) + "\nevent: " + kind + "\ndata: ")
	b.Write(text)
	b.WriteString("\n\n")
	return frame{about{key, kind}, b.Bytes()}
}
