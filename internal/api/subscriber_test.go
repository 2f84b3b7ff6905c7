package api

import (
	"fmt"
	"slices"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestANewEventReplacesThePendingOneOfItsTopic(t *testing.T) {
	s := newSubscriber(nil)
	other := nodepool.ClusterKey{Name: "other"}
	s.put(event{topic: topic{busyKey, "plan"}, text: []byte("1")}, event{topic: topic{busyKey, "status"}, text: []byte("2")}, event{topic: topic{other, "plan"}, text: []byte("3")}, event{topic: topic{busyKey, "plan"}, text: []byte("44")})
	events, ended := s.take()
	var texts []string
	for _, f := range events {
		texts = append(texts, string(f.text))
	}
	if want := []string{"2", "3", "44"}; !slices.Equal(texts, want) || ended != "" || s.bytes != 0 {
		t.Errorf("%v %q, %d bytes; want %v", texts, ended, s.bytes, want)
	}
}

func TestAStreamWithTooManyPendingBytesEnds(t *testing.T) {
	s := newSubscriber(nil)
	large := make([]byte, maxPending/4)
	for i := range 6 {
		s.put(event{topic: topic{nodepool.ClusterKey{Name: fmt.Sprint(i)}, "plan"}, text: large})
	}
	if events, ended := s.take(); len(events) != 0 || ended != "too slow: more than 4 MiB of events are pending" || s.bytes != 0 {
		t.Errorf("%d events and %d bytes are pending: %q", len(events), s.bytes, ended)
	}
	if text := string(endEvent("too slow")); text != "event: end\ndata: {\"reason\":\"too slow\"}\n\n" {
		t.Errorf("the last event is %q", text)
	}
}

// For a reader that stopped reading, each change costs the same memory and time.
func TestReplacedEventsTakeNoMemory(t *testing.T) {
	s := newSubscriber(nil)
	const topics = 100
	for i := range 50 * topics {
		s.put(event{topic: topic{busyKey, fmt.Sprint(i % topics)}, text: []byte("x")})
		if len(s.pending) > 2*topics {
			t.Fatalf("%d events are pending after %d events on %d topics", len(s.pending), i+1, topics)
		}
	}
	if events, _ := s.take(); len(events) != topics || events[0].kind != "0" {
		t.Errorf("%d events are pending, the first about %q", len(events), events[0].kind)
	}
}

func BenchmarkPutForAReaderThatStoppedReading(b *testing.B) {
	s := newSubscriber(nil)
	events := make([]event, 3000)
	for i := range events {
		events[i] = event{topic: topic{nodepool.ClusterKey{Name: fmt.Sprint(i)}, "plan"}, text: []byte("x")}
	}
	for i := 0; b.Loop(); i++ {
		s.put(events[i%len(events)])
	}
}
