package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// subscription is what one stream shows.
type subscription struct {
	// includes reports whether the stream shows a cluster. It never blocks.
	includes func(nodepool.ClusterKey) bool
	// initial returns the first events.
	initial func() []event
	// recheck checks the rights of the caller again, and returns events about what the stream shows only from now on.
	recheck func() ([]event, error)
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
		recheck: func() ([]event, error) { return nil, recheck() },
	})
}

// FollowFleet streams the events of all clusters that the caller may see. It reviews rights when the stream begins and
// with each heartbeat; until then it does not show a namespace that is new to it, unless the caller may see all.
func (h *Hub) FollowFleet(w http.ResponseWriter, r *http.Request, review review, recheck func() error) error {
	filter, err := newNamespaceFilter(h.fleet, review)
	if err != nil {
		return err
	}
	return h.follow(w, r, subscription{
		includes: filter.includes,
		initial: func() []event {
			return h.currentIf(func(v View) bool { return filter.includes(v.Cluster) }, apiv1.EventStatus)
		},
		recheck: func() ([]event, error) {
			if err := recheck(); err != nil {
				return nil, err
			}
			gained, err := filter.review()
			return h.currentIf(func(v View) bool { return gained[v.Cluster.Namespace] }), err
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
			gained, err = s.recheck()
			gained = append(gained, event{text: []byte(": keep-alive\n\n")})
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

// FollowCluster serves GET …/rayclusters/{name}/events.
func (s *server) FollowCluster(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	view, err := s.view(namespace, name)
	if err == nil {
		err = s.noStreams()
	}
	if err == nil {
		err = s.Hub.FollowCluster(c.Writer, c.Request, view.Cluster, func() error { return s.guard.Recheck(c) })
	}
	if err != nil {
		s.answers.Fail(c, err)
	}
}

// FollowFleet serves GET /v1/events.
func (s *server) FollowFleet(c *gin.Context) {
	err := s.incomplete()
	if err == nil {
		err = s.noStreams()
	}
	if err == nil {
		review := func(namespaces []string) (everywhere bool, visible map[string]bool, err error) {
			return s.guard.Visible(c, namespaces)
		}
		err = s.Hub.FollowFleet(c.Writer, c.Request, review, func() error { return s.guard.Recheck(c) })
	}
	if err != nil {
		s.answers.Fail(c, err)
	}
}

// noStreams returns an error if this process sends no events.
func (s *server) noStreams() error {
	if s.Hub == nil {
		return &problem{Kind: kindUnavailable, Detail: "this process does not send events"}
	}
	return nil
}

// answerStream writes an answer of unlimited length. An ordinary answer has one deadline for all of it. A stream has
// one for each write, and none between writes: over HTTP/2, a deadline that passes between writes would end the stream
// too.
type answerStream struct {
	writer  http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

// newAnswerStream returns a stream to a reader that must take each write within timeout.
func newAnswerStream(w http.ResponseWriter, timeout time.Duration) *answerStream {
	return &answerStream{writer: w, control: http.NewResponseController(w), timeout: timeout}
}

// Send writes texts and flushes them.
func (s *answerStream) Send(texts ...[]byte) error {
	err := s.Begin()
	for _, text := range texts {
		if err == nil {
			_, err = s.writer.Write(text)
		}
	}
	if err == nil {
		err = s.control.Flush()
	}
	return errors.Join(err, s.End())
}

// Begin sets the deadline of one write.
func (s *answerStream) Begin() error { return s.SetDeadline(time.Now().Add(s.timeout)) }

// End removes the deadline.
func (s *answerStream) End() error { return s.SetDeadline(time.Time{}) }

// Flush sends what was written.
func (s *answerStream) Flush() error { return s.control.Flush() }

// SetDeadline sets the time by which all writes must be complete; zero means no limit. Writers without deadlines ignore
// it.
func (s *answerStream) SetDeadline(until time.Time) error {
	if err := s.control.SetWriteDeadline(until); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// review returns for each namespace whether the caller may see its clusters, and whether they may see all namespaces,
// future ones included.
type review func(namespaces []string) (everywhere bool, visible map[string]bool, err error)

// namespaceFilter holds which namespaces a caller may see. It reviews them again with each heartbeat, so it notices new
// namespaces and revoked rights.
type namespaceFilter struct {
	fleet Fleet
	ask   review

	mu sync.Mutex // guards the fields below
	// everywhere means that no namespace needs a review. visible has the results of reviews.
	everywhere bool
	visible    map[string]bool
}

// newNamespaceFilter reviews the namespaces that have clusters now.
func newNamespaceFilter(fleet Fleet, ask review) (*namespaceFilter, error) {
	f := &namespaceFilter{fleet: fleet, ask: ask}
	_, err := f.review()
	return f, err
}

// includes reports whether the caller may see a cluster.
func (f *namespaceFilter) includes(key nodepool.ClusterKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.everywhere || f.visible[key.Namespace]
}

// review reviews the namespaces of the fleet and those it has reviewed before, and returns those that have become
// visible. Only one review may run at a time.
func (f *namespaceFilter) review() (gained map[string]bool, err error) {
	namespaces := slices.Collect(maps.Keys(f.visible)) // also those whose last RayCluster is gone, for that event
	for _, view := range f.fleet.Views() {
		namespaces = append(namespaces, view.Cluster.Namespace)
	}
	everywhere, visible, err := f.ask(namespaces)
	if err != nil {
		return nil, err
	}
	gained = map[string]bool{}
	for namespace, allowed := range visible {
		gained[namespace] = allowed && !f.everywhere && !f.visible[namespace]
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.everywhere, f.visible = everywhere, visible
	return gained, nil
}
