package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// subscription is what one stream shows.
type subscription struct {
	// includes reports whether the stream shows a cluster. It never blocks.
	includes func(nodepool.ClusterKey) bool
	// initial returns the first events.
	initial func() []event
	// unknown has a token while the rights on a namespace are unknown; nil if that cannot happen.
	unknown <-chan struct{}
	// recheck checks the caller itself again.
	recheck func() error
	// gained reviews rights, the unknown ones or all, and returns events about what the stream shows from now on.
	gained func(all bool) ([]event, error)
}

// FollowCluster streams the events of one cluster until the caller leaves, recheck fails, or the stream is too old. An
// error means that the stream did not begin.
func (h *Hub) FollowCluster(
	w http.ResponseWriter, r *http.Request, key nodepool.ClusterKey, recheck func() error,
) error {
	return h.follow(w, r, subscription{
		includes: func(other nodepool.ClusterKey) bool { return other == key },
		initial: func() []event {
			view, exists := h.fleet.View(key)
			if !exists {
				return nil
			}
			return h.current(view)
		},
		recheck: recheck,
		gained:  func(bool) ([]event, error) { return nil, nil },
	})
}

// FollowFleet streams the events of all clusters that the caller may see. It reviews rights when the stream begins, for
// each new namespace, and with each heartbeat.
func (h *Hub) FollowFleet(w http.ResponseWriter, r *http.Request, review review, recheck func() error) error {
	filter, err := newNamespaceFilter(h.fleet, review)
	if err != nil {
		return err
	}
	return h.follow(w, r, subscription{
		includes: filter.includes, unknown: filter.unknown, recheck: recheck,
		initial: func() []event {
			return h.currentIf(func(v View) bool { return filter.includes(v.Key) }, apiv1.EventStatus)
		},
		gained: func(all bool) ([]event, error) {
			gained, err := filter.review(all)
			return h.currentIf(func(v View) bool { return gained[v.Key.Namespace] }), err
		},
	})
}

// currentIf returns events with the current state of the clusters that are wanted.
func (h *Hub) currentIf(wanted func(View) bool, kinds ...string) []event {
	var events []event
	for _, view := range h.fleet.Views() {
		if wanted(view) {
			events = append(events, h.current(view, kinds...)...)
		}
	}
	return events
}

// follow sends the current state, and then changes.
func (h *Hub) follow(w http.ResponseWriter, r *http.Request, s subscription) error {
	queue := newSubscriber(s.includes)
	if err := h.add(queue); err != nil {
		return err
	}
	defer h.remove(queue)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies must not buffer events
	w.WriteHeader(http.StatusOK)
	out := newAnswerStream(w, streamTimeout)
	// Changes from here on are pending in the queue, so that none is lost between the two steps.
	if out.Send(texts(s.initial())...) == nil {
		h.pump(r, s, queue, out)
	}
	return nil
}

// pump sends pending events until the call or the subscription ends.
func (h *Hub) pump(r *http.Request, s subscription, queue *subscriber, out *answerStream) {
	heartbeat, age := time.NewTicker(h.Heartbeat), time.NewTimer(h.MaxAge)
	defer heartbeat.Stop()
	defer age.Stop()
	for {
		var gained []event
		var err error
		select {
		case <-r.Context().Done():
			return
		case <-age.C:
			queue.end(fmt.Sprintf("a stream lasts %v; open a new one", h.MaxAge))
			continue
		case <-heartbeat.C:
			if err = s.recheck(); err == nil {
				gained, err = s.gained(true)
			}
			gained = append(gained, event{text: []byte(": keep-alive\n\n")})
		case <-s.unknown:
			gained, err = s.gained(false)
		case <-queue.wake:
			pending, ended := queue.take()
			if out.Send(texts(pending)...) != nil {
				return
			}
			if ended != "" {
				_ = out.Send(endEvent(ended)) // the caller may have left
				return
			}
			continue
		}
		if err != nil {
			queue.end(problemOf(err).Detail)
		} else if out.Send(texts(gained)...) != nil {
			return
		}
	}
}

func texts(events []event) [][]byte {
	texts := make([][]byte, len(events))
	for i, e := range events {
		texts[i] = e.text
	}
	return texts
}

// endEvent is the last event of a stream.
func endEvent(reason string) []byte {
	text, _ := json.Marshal(map[string]string{"reason": reason}) // text always has an encoding
	return []byte("event: " + apiv1.EventEnd + "\ndata: " + string(text) + "\n\n")
}
