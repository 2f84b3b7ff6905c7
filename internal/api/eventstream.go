package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// FollowCluster sends an event with each decision about one cluster until the caller leaves, recheck fails, or the
// stream is too old. An error means that the stream did not begin.
func (h *Hub) FollowCluster(
	w http.ResponseWriter, r *http.Request, key nodepool.ClusterKey, recheck func() error,
) error {
	s, err := h.add(key)
	if err != nil {
		return err
	}
	defer h.remove(key, s)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies must not buffer events
	w.WriteHeader(http.StatusOK)
	out := newAnswerStream(w, streamTimeout)
	heartbeat, age := time.NewTicker(h.heartbeat), time.NewTimer(h.maxAge)
	defer heartbeat.Stop()
	defer age.Stop()
	for ended := ""; ended == ""; {
		text := ": keep-alive\n\n"
		select {
		case <-r.Context().Done():
			return nil
		case <-age.C:
			ended = fmt.Sprintf("a stream lasts %v; open a new one", h.maxAge)
		case <-heartbeat.C:
			if err := recheck(); err != nil {
				ended = problemOf(err).Detail
			}
		case <-s.wake:
			text, ended = h.state(key), h.end(s)
		}
		if ended != "" {
			text = eventOf("end", map[string]string{"reason": ended})
		}
		if out.Send(text) != nil {
			return nil // the caller has left, or reads too slowly
		}
		select {
		case <-r.Context().Done():
		case <-time.After(h.pause):
		}
	}
	return nil
}

// state returns the event about a RayCluster: its line of the list, or that it is gone.
func (h *Hub) state(key nodepool.ClusterKey) string {
	view, exists := h.fleet.View(key)
	if !exists {
		return eventOf("gone", map[string]string{"namespace": key.Namespace, "name": key.Name})
	}
	return eventOf("status", view.Summary(time.Now()))
}

func eventOf(kind string, data any) string {
	text, _ := json.Marshal(data) // all events have an encoding
	return fmt.Sprintf("event: %s\ndata: %s\n\n", kind, text)
}

// FollowCluster serves GET …/rayclusters/{name}/events.
func (s *server) FollowCluster(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	view, err := s.view(namespace, name)
	if err == nil && s.Hub == nil {
		err = &problem{Kind: kindUnavailable, Detail: "this process does not send events"}
	}
	if err == nil {
		err = s.Hub.FollowCluster(c.Writer, c.Request, view.Cluster, func() error { return s.guard.Recheck(c) })
	}
	if err != nil {
		s.answers.Fail(c, err)
	}
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

// Send writes a text and flushes it.
func (s *answerStream) Send(text string) error {
	err := s.Begin()
	if err == nil {
		_, err = io.WriteString(s.writer, text)
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
