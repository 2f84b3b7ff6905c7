package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// fleetStream follows a growing fleet as a caller with these rights.
func fleetStream(t *testing.T, heartbeat time.Duration, allowed func(access.Right) bool, views ...View) (*growingFleet, *Hub, <-chan apiv1.Event) {
	t.Helper()
	fleet := &growingFleet{views: fakeFleet{}}
	for _, view := range views {
		fleet.add(view)
	}
	hub := NewHub(HubConfig{Interval: -1, Heartbeat: heartbeat})
	rights := &fakeAccess{allowed: func(_ access.Caller, right access.Right) bool { return allowed(right) }}
	w := newFixture(t)
	server, err := NewServer(Config{Fleet: fleet, Requests: w.requests, Access: rights, Hub: hub})
	if err != nil {
		t.Fatal(err)
	}
	running := httptest.NewUnstartedServer(nil)
	running.Config = server
	running.Start()
	t.Cleanup(running.Close)
	t.Cleanup(hub.Close)
	caller, err := apiv1.NewClient(running.URL, &http.Client{Transport: bearer{}})
	if err != nil {
		t.Fatal(err)
	}
	received, _ := heard(t, caller, nodepool.ClusterKey{})
	return fleet, hub, received
}

// bearer adds the token ada.
type bearer struct{}

func (bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer ada")
	return http.DefaultTransport.RoundTrip(r)
}

func viewOf(namespace, name string) View {
	view := busy()
	view.Cluster = nodepool.ClusterKey{Namespace: namespace, Name: name}
	return view
}

func subjectOf(t *testing.T, event apiv1.Event) string {
	t.Helper()
	var of struct{ Namespace, Name string }
	if err := json.Unmarshal(event.Data, &of); err != nil {
		t.Fatal(err)
	}
	return event.Kind + " " + of.Namespace + "/" + of.Name
}

func TestAFleetStreamShowsNewNamespaces(t *testing.T) {
	for name, allowed := range map[string]func(access.Right) bool{
		"who may list everywhere":         func(access.Right) bool { return true },
		"who may list the new namespace":  func(right access.Right) bool { return slices.Contains([]string{"ml", "new"}, right.Namespace) },
		"who may list it by its own name": func(right access.Right) bool { return right.Namespace != "" && right.Namespace != "hidden" },
	} {
		t.Run(name, func(t *testing.T) {
			fleet, hub, received := fleetStream(t, time.Hour, allowed, viewOf("ml", "llm"))
			if got := subjectOf(t, next(t, received)); got != "status ml/llm" {
				t.Fatalf("it begins with %s", got)
			}
			fleet.add(viewOf("new", "young"))
			hub.Changed(nodepool.ClusterKey{Namespace: "new", Name: "young"})
			if got := subjectOf(t, next(t, received)); got != "status new/young" {
				t.Errorf("of the new namespace %s is heard", got)
			}
		})
	}
}

func TestAFleetStreamHidesForbiddenNamespaces(t *testing.T) {
	fleet, hub, received := fleetStream(t, time.Hour, func(right access.Right) bool { return right.Namespace == "ml" }, viewOf("ml", "llm"))
	next(t, received)
	fleet.add(viewOf("hidden", "secret"))
	hub.Changed(nodepool.ClusterKey{Namespace: "hidden", Name: "secret"})
	fleet.add(viewOf("ml", "second"))
	hub.Changed(nodepool.ClusterKey{Namespace: "ml", Name: "second"})
	if got := subjectOf(t, next(t, received)); got != "status ml/second" {
		t.Errorf("%s is heard", got)
	}
}

// A short heartbeat saves the test from waiting. A revoked right takes effect with the next heartbeat.
func TestAFleetStreamHidesNamespacesAfterTheRightIsRevoked(t *testing.T) {
	var revoked atomic.Bool
	asked := make(chan struct{}, 1)
	allowed := func(right access.Right) bool {
		if revoked.Load() && right.Namespace == "ml" {
			select {
			case asked <- struct{}{}:
			default:
			}
		}
		return right.Namespace == "other" || right.Namespace == "ml" && !revoked.Load()
	}
	_, hub, received := fleetStream(t, time.Millisecond, allowed, viewOf("ml", "llm"), viewOf("other", "llm"))
	next(t, received)
	next(t, received)
	revoked.Store(true)
	<-asked // the review of one heartbeat
	<-asked // the review of the next one, so the first is complete
	hub.Changed(llm)
	hub.Changed(nodepool.ClusterKey{Namespace: "other", Name: "llm"})
	for range 3 {
		if got := subjectOf(t, next(t, received)); got[len(got)-len("other/llm"):] != "other/llm" {
			t.Errorf("%s is heard after the right was taken away", got)
		}
	}
}
