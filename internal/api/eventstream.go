package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

const (
	// streamPause is the interval in which a stream looks for a new decision.
	streamPause = time.Second
	// streamBeat is how often a stream checks its caller's rights again and sends a comment.
	streamBeat = 15 * time.Second
	// streamAge is how long a stream lasts.
	streamAge = 30 * time.Minute
)

// FollowCluster serves GET …/rayclusters/{name}/events: an event with each decision about one RayCluster, until the
// caller leaves, reads too slowly or loses its right, or the stream is too old. A stream reads the last decision when
// its reader is ready, so nothing piles up.
func (s *server) FollowCluster(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	if _, err := s.view(namespace, name); err != nil {
		s.answers.Fail(c, err)
		return
	}
	c.Header("Content-Type", "text/event-stream")
	c.Header("X-Accel-Buffering", "no") // proxies must not buffer events
	key := nodepool.ClusterKey{Namespace: namespace, Name: name}
	var shown *addon.Decision
	began := time.Now()
	for checked := began; ; {
		text, ended := "", ""
		view, exists := s.Fleet.View(key)
		switch {
		case time.Since(began) >= streamAge:
			ended = fmt.Sprintf("a stream lasts %v; open a new one", streamAge)
		case !s.owns(key):
			ended = "RayCluster " + key.String() + " has moved to another replica; open a new stream"
		case time.Since(checked) >= streamBeat:
			text, checked = ": keep-alive\n\n", time.Now()
			if err := s.guard.Recheck(c); err != nil {
				ended = problemOf(err).Detail
			}
		case !exists && shown != nil:
			text, shown = eventOf("gone", map[string]string{"namespace": namespace, "name": name}), nil
		case exists && view.Decision != shown:
			text, shown = eventOf("status", view.Summary(s.Now())), view.Decision
		}
		if ended != "" {
			text = eventOf("end", map[string]string{"reason": ended})
		}
		if text != "" && sendEvent(c.Writer, text) != nil || ended != "" {
			return
		}
		select {
		case <-c.Request.Context().Done():
			return
		case <-time.After(streamPause):
		}
	}
}

// owns reports whether this replica decides about a RayCluster.
func (s *server) owns(key nodepool.ClusterKey) bool {
	if s.Division == nil {
		return true
	}
	_, mine, _ := s.Division.Route(key)
	return mine
}

func eventOf(kind string, data any) string {
	text, _ := json.Marshal(data) // all events have an encoding
	return fmt.Sprintf("event: %s\ndata: %s\n\n", kind, text)
}

// sendEvent writes and flushes a text, which the reader must take within streamTimeout. There is no deadline between
// events: over HTTP/2, one that passes would end the stream.
func sendEvent(w http.ResponseWriter, text string) error {
	control := http.NewResponseController(w)
	err := setDeadline(control, time.Now().Add(streamTimeout))
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err == nil {
		err = control.Flush()
	}
	return errors.Join(err, setDeadline(control, time.Time{}))
}

// setDeadline sets the time by which all writes must be complete; zero means no limit. Writers without deadlines ignore
// it.
func setDeadline(control *http.ResponseController, until time.Time) error {
	if err := control.SetWriteDeadline(until); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
