package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// FollowCluster streams the events of one cluster until the caller leaves, recheck fails, or the stream is too old. An
// error means that the stream did not begin.
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
	heartbeat, age := time.NewTicker(h.Heartbeat), time.NewTimer(h.MaxAge)
	defer heartbeat.Stop()
	defer age.Stop()
	var sent sentEvents
	for ended := ""; ended == ""; {
		var texts [][]byte
		select {
		case <-r.Context().Done():
			return nil
		case <-age.C:
			ended = fmt.Sprintf("a stream lasts %v; open a new one", h.MaxAge)
		case <-heartbeat.C:
			if err := recheck(); err != nil {
				ended = problemOf(err).Detail
			} else {
				texts = [][]byte{[]byte(": keep-alive\n\n")}
			}
		case <-s.wake:
			texts, ended = sent.changes(h.fleet, key), h.end(s)
		}
		if ended != "" {
			texts = append(texts, endEvent(ended))
		}
		if out.Send(texts...) != nil {
			return nil // the caller has left, or reads too slowly
		}
		h.pause(r, len(texts))
	}
	return nil
}

// pause waits for further changes after some were sent.
func (h *Hub) pause(r *http.Request, sent int) {
	if h.Interval <= 0 || sent == 0 {
		return
	}
	select {
	case <-r.Context().Done():
	case <-time.After(h.Interval):
	}
}

// endEvent is the last event of a stream.
func endEvent(reason string) []byte {
	text, _ := json.Marshal(map[string]string{"reason": reason}) // text always has an encoding
	return []byte("event: " + apiv1.EventEnd + "\ndata: " + string(text) + "\n\n")
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
