package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Times of a stream. A listener that takes nothing for as long as eventPatience is gone.
const (
	eventHeartbeat = 15 * time.Second
	eventLife      = 30 * time.Minute
	eventPatience  = 10 * time.Second
)

// FollowCluster serves GET …/rayclusters/{name}/events.
func (s *server) FollowCluster(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	key := nodepool.ClusterKey{Namespace: namespace, Name: name}
	if _, err := s.view(namespace, name); err != nil {
		s.fail(c, err)
		return
	}
	s.follow(c, audience{
		hears: func(other nodepool.ClusterKey) bool { return other == key },
		begins: func() []frame {
			view, there := s.Fleet.View(key)
			if !there {
				return nil
			}
			return s.Hub.present(view)
		},
		gains: func(bool) ([]frame, error) { return nil, nil },
	})
}

// FollowFleet serves GET /v1/events. What the caller may list is looked up when the stream begins, for each namespace that appears, and again
// with each heartbeat.
func (s *server) FollowFleet(c *gin.Context) {
	if err := s.notWhole(); err != nil {
		s.fail(c, err)
		return
	}
	seen, err := s.sightOf(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	s.follow(c, audience{
		hears: seen.hears, unsure: seen.unsure,
		begins: func() []frame { return seen.present(namespacesOf(s.heardViews(seen)), apiv1.EventStatus) },
		gains: func(all bool) ([]frame, error) {
			ask := seen.learn
			if all {
				ask = seen.renew
			}
			gained, err := ask()
			return seen.present(gained), err
		},
	})
}

// heardViews are the clusters that a stream may tell of.
func (s *server) heardViews(seen *sight) []View {
	return slices.DeleteFunc(slices.Clone(s.Fleet.Views()), func(view View) bool { return !seen.hears(view.Key) })
}

// audience is what one stream tells of.
type audience struct {
	// hears reports whether a change of the cluster is told. It never waits.
	hears func(nodepool.ClusterKey) bool
	// begins are the events that the stream begins with.
	begins func() []frame
	// unsure has a token while there is a cluster that nobody looked yet whether it is heard; nil where that cannot be.
	unsure <-chan struct{}
	// gains looks up rights, of what was not looked up yet or of all, and returns the events about what is heard of from now on.
	gains func(all bool) ([]frame, error)
}

// follow sends what is there now, and then what changes, until one of both ends.
func (s *server) follow(c *gin.Context, who audience) {
	if s.Hub == nil {
		s.fail(c, &problem{kind: unavailable, detail: "this process sends no events"})
		return
	}
	l := newListener(who.hears)
	if err := s.Hub.add(l); err != nil {
		s.fail(c, &problem{kind: unavailable, detail: err.Error()})
		return
	}
	defer s.Hub.remove(l)
	stream := stream{c: c, control: http.NewResponseController(c.Writer), patience: s.Hub.patience}
	stream.open()
	// What changes from here on waits in the listener, so nothing is missed between the two.
	if stream.send(who.begins()...) != nil {
		return
	}
	s.pump(c, who, l, &stream)
}

// pump sends what waits until the stream or the listener ends.
func (s *server) pump(c *gin.Context, who audience, l *listener, stream *stream) {
	heartbeat, life := time.NewTicker(s.Hub.heartbeat), time.NewTimer(s.Hub.life)
	defer heartbeat.Stop()
	defer life.Stop()
	for {
		select {
		case <-c.Request.Context().Done():
			return
		case <-life.C:
			l.end(fmt.Sprintf("streams last %v; begin anew", s.Hub.life))
		case <-heartbeat.C:
			gained, err := s.renewed(c, who)
			if err != nil {
				l.end(classify(err).detail)
			} else if stream.send(append(gained, frame{text: []byte(": keep-alive\n\n")})...) != nil {
				return
			}
		case <-who.unsure:
			gained, err := who.gains(false)
			if err != nil {
				l.end(classify(err).detail)
			} else if stream.send(gained...) != nil {
				return
			}
		case <-l.wake:
			frames, ended := l.take()
			if stream.send(frames...) != nil {
				return
			}
			if ended != "" {
				_ = stream.send(endFrame(ended)) // nobody may be there any more
				return
			}
		}
	}
}

// renewed asks again who the caller is and what it may hear of.
func (s *server) renewed(c *gin.Context, who audience) ([]frame, error) {
	if err := s.stillAllowed(c); err != nil {
		return nil, err
	}
	return who.gains(true)
}

// endFrame is the last event of a stream.
func endFrame(reason string) frame {
	text, _ := json.Marshal(map[string]string{"reason": reason}) // text can be encoded
	return frame{about: about{kind: apiv1.EventEnd}, text: []byte("event: " + apiv1.EventEnd + "\ndata: " + string(text) + "\n\n")}
}

// stream writes events to one connection.
type stream struct {
	c       *gin.Context
	control *http.ResponseController
	// patience is how long a reader may take nothing.
	patience time.Duration
}

// open begins the answer.
func (s *stream) open() {
	header := s.c.Writer.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // a proxy that gathers answers shall not
	s.c.Writer.WriteHeader(http.StatusOK)
}

// send writes events and flushes them. An ordinary answer has one limit for all of it; a stream has one for each time that it writes, and none
// while it does not: over HTTP/2 a limit ends a stream even then.
func (s *stream) send(frames ...frame) error {
	err := s.limit(time.Now().Add(s.patience))
	for _, f := range frames {
		if err == nil {
			_, err = s.c.Writer.Write(f.text)
		}
	}
	if err == nil {
		err = s.control.Flush()
	}
	return errors.Join(err, s.limit(time.Time{}))
}

// limit is until when what is written must have gone out; zero is no limit. What does not know limits has none.
func (s *stream) limit(until time.Time) error {
	if err := s.control.SetWriteDeadline(until); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
