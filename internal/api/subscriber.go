package api

import (
	"strconv"
	"strings"
	"sync"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// maxPending is how many bytes of events a subscriber may leave unread.
const maxPending = 4 << 20

// subscriber is the queue of one stream.
type subscriber struct {
	// includes reports whether the stream shows a cluster. It never blocks.
	includes func(nodepool.ClusterKey) bool
	// wake has a token while events are pending.
	wake chan struct{}

	mu sync.Mutex // guards the fields below
	// pending has events in the order of their arrival; one without text has been replaced. newest is the index of the
	// newest event of each topic.
	pending []event
	newest  map[topic]int
	bytes   int
	// ended is the reason why no more events follow; empty while they may.
	ended string
}

func newSubscriber(includes func(nodepool.ClusterKey) bool) *subscriber {
	return &subscriber{includes: includes, wake: make(chan struct{}, 1), newest: map[topic]int{}}
}

// put adds events. A new event replaces the pending one of its topic; the time does not depend on how many are pending.
func (s *subscriber) put(events ...event) {
	s.mu.Lock()
	for _, e := range events {
		if at, pending := s.newest[e.topic]; pending {
			s.bytes -= len(s.pending[at].text)
			s.pending[at].text = nil
		}
		s.append(e)
	}
	if len(s.pending) > 2*len(s.newest) {
		s.compact()
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

func (s *subscriber) append(e event) {
	s.newest[e.topic] = len(s.pending)
	s.pending = append(s.pending, e)
	s.bytes += len(e.text)
}

// compact removes the events that have been replaced.
func (s *subscriber) compact() {
	pending := s.pending
	s.reset()
	for _, e := range pending {
		if e.text != nil {
			s.append(e)
		}
	}
}

func (s *subscriber) reset() {
	s.pending, s.bytes = nil, 0
	clear(s.newest)
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

// take returns the pending events, and the reason if none follow.
func (s *subscriber) take() (events []event, ended string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compact()
	events = s.pending
	s.reset()
	return events, s.ended
}
