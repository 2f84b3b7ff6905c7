package api

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// oneCluster is a fleet of one cluster, which tests change.
type oneCluster struct {
	mu   sync.Mutex // guards view
	view View
}

func (f *oneCluster) set(view View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view = view
}

func (f *oneCluster) Views() []View {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []View{f.view}
}

func (f *oneCluster) View(key nodepool.ClusterKey) (View, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view, f.view.Cluster == key
}

func TestAHubWithoutSubscribersStoresNothing(t *testing.T) {
	h := NewHub(HubConfig{Interval: -1})
	h.SetFleet(&oneCluster{view: busy()})
	h.Changed(busyKey)
	if len(h.changed) != 0 || h.done != nil {
		t.Error("the hub stores changes without a subscriber")
	}
	s := newSubscriber(func(nodepool.ClusterKey) bool { return true })
	if err := h.add(s); err != nil {
		t.Fatal(err)
	}
	h.Changed(busyKey)
	<-s.wake
	h.remove(s)
	<-h.done
	if len(h.sent) != 0 {
		t.Error("the hub stores what it sent after the last subscriber left")
	}
	if n := testing.AllocsPerRun(100, func() { h.Changed(busyKey) }); n != 0 {
		t.Errorf("a decision without subscribers makes %v allocations", n)
	}
}

func TestTheHubRefusesTooManySubscribers(t *testing.T) {
	h := NewHub(HubConfig{Interval: -1})
	for range maxSubscribers {
		h.subscribers[newSubscriber(nil)] = true
	}
	if err := h.add(newSubscriber(nil)); !errors.Is(err, errFull) {
		t.Errorf("%v", err)
	}
}

// The time from one decision until 1000 subscribers have its events.
func BenchmarkHubWith1000Subscribers(b *testing.B) {
	fleet := &oneCluster{}
	h := NewHub(HubConfig{Interval: -1})
	h.SetFleet(fleet)
	defer h.Close()
	subscribers := make([]*subscriber, 1000)
	for i := range subscribers {
		subscribers[i] = newSubscriber(func(key nodepool.ClusterKey) bool { return key == busyKey })
		if err := h.add(subscribers[i]); err != nil {
			b.Fatal(err)
		}
	}
	view, desired := busy(), 0
	b.ReportAllocs()
	for b.Loop() {
		desired++
		view.Plan.Groups = slices.Clone(view.Plan.Groups)
		view.Plan.Groups[0].Desired = desired
		fleet.set(view)
		h.Changed(busyKey)
		for _, s := range subscribers {
			<-s.wake
			s.take()
		}
	}
}

func BenchmarkHubWithoutSubscribers(b *testing.B) {
	h := NewHub(HubConfig{Interval: -1})
	b.ReportAllocs()
	for b.Loop() {
		h.Changed(busyKey)
	}
}

// Ages, and sentences with seconds in them, differ after every decision.
func TestTheSameDecisionASecondLaterIsNotAChange(t *testing.T) {
	h := NewHub(HubConfig{})
	h.SetFleet(&oneCluster{view: busy()})
	if events := h.changes(busy()); len(events) != 3 {
		t.Errorf("the first decision has %d events", len(events))
	}
	later := busy()
	later.At, later.Read = busyNoon, addon.ReadAt(busyNoon)
	later.Plan.Groups = slices.Clone(later.Plan.Groups)
	later.Plan.Groups[0].Reasons = []planner.Reason{{Code: planner.Capped, Message: "the same, one second later"}}
	if events := h.changes(later); len(events) != 0 {
		t.Errorf("%d events: %s", len(events), events[0].text)
	}
}

func TestAStreamEndsIfItsReaderStopsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHub(HubConfig{})
		h.SetFleet(&oneCluster{view: busy()})
		network := servingInMemory(t, func(w http.ResponseWriter, r *http.Request) {
			_ = h.FollowCluster(w, r, busyKey, func() error { return nil })
		})
		connection, err := network.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		if _, err := io.WriteString(connection, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(streamTimeout - time.Second)
		if n := h.subscribed.Load(); n != 1 {
			t.Errorf("%d subscribers before the timeout", n)
		}
		time.Sleep(2 * time.Second)
		if h.subscribed.Load() != 0 {
			t.Error("the stream goes on after the timeout")
		}
	})
}
