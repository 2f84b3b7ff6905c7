package engine

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// apiServerSaying answers reads of the RayCluster ml/llm with these modes, one after the other; "error" fails. The last
// one stays.
func apiServerSaying(t *testing.T, modes ...string) (config *rest.Config, reads *int) {
	t.Helper()
	reads = new(int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := modes[min(*reads, len(modes)-1)]
		*reads++
		if r.URL.Path != "/apis/ray.io/v1/namespaces/ml/rayclusters/llm" || !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
			t.Errorf("it reads %s as %s", r.URL, r.Header.Get("Accept"))
		}
		if said == "error" {
			http.Error(w, "down", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "llm", "namespace": "ml",
			"annotations": {"heliostat.dev/mode": %q}}}`, said)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}, reads
}

var llm = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}

// A parked sidecar stays parked while it cannot read. From the start, what it cannot read does not park it: the engine
// waits for the API server.
func TestASidecarWaitsWhileTheFleetManagesItsRayCluster(t *testing.T) {
	for name, c := range map[string]struct {
		modes []string
		reads int
	}{
		"not given to the fleet":     {[]string{""}, 1},
		"only planned for":           {[]string{"shadow"}, 1},
		"unknown from the start":     {[]string{"error", "managed"}, 1},
		"given to it and taken back": {[]string{"managed", "error", "managed", ""}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			config, reads := apiServerSaying(t, c.modes...)
			var log bytes.Buffer
			must(t, waitWhileParked(t.Context(), config, llm, time.Millisecond, slog.New(slog.NewTextHandler(&log, nil))))
			if *reads != c.reads || strings.Count(log.String(), "parked") != min(c.reads-1, 1) {
				t.Errorf("%d reads, want %d:\n%s", *reads, c.reads, &log)
			}
		})
	}
}

func TestASidecarEndsItsEngineWhenTheFleetManagesItsRayCluster(t *testing.T) {
	for code, parks := range map[string]bool{addon.Parked: true, addon.AsAsked: false, addon.SidecarAlive: false} {
		for _, key := range []*nodepool.ClusterKey{&llm, nil} {
			var err error
			o := options{park: func() { err = errParked }}
			o.kube.Single = key
			o.parkIf(&addon.Decision{Why: planner.Reason{Code: code}})
			if errors.Is(err, errParked) != (parks && key != nil) {
				t.Errorf("%s, RayCluster %v: %v", code, key, err)
			}
		}
	}
}
