package engine

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/mode"
	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
)

// TestDecisionsBecomeAHistory checks that the loop passes its decisions on, and what forgets them.
func TestDecisionsBecomeAHistory(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	for forecast, remembers := range map[string]bool{capacity.ForecastSuggest: true, string(apiv1.ForecastOff): false, "": false} {
		o := options{loop: controller.Config{Form: mode.Fleet}, forecast: forecast}
		tel, err := telemetry.Start(t.Context(), telemetry.Config{Registerer: prometheus.NewRegistry(),
			Getenv: func(string) string { return "" }, Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		o.passOn(quiet, tel)
		d := &decision.Decision{Cluster: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, Mode: nodepool.Managed,
			At:       time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC),
			Snapshot: planner.Snapshot{Groups: []planner.Group{{Name: "gpu", Max: 1}}}}
		o.loop.Published(d)
		if (o.outlook != nil) != remembers {
			t.Errorf("--forecast=%s: an outlook %t, want %t", forecast, o.outlook != nil, remembers)
		}
		if remembers {
			a := o.outlook.Of(d, d.At)
			if !a.From.Equal(d.At) || !strings.Contains(a.NotStored, "--lease-namespace") {
				t.Errorf("after a decision: %+v", a)
			}
		}
		for _, end := range []func(nodepool.ClusterKey){o.loop.Forgotten, o.loop.Released} {
			o.loop.Published(d)
			end(d.Cluster)
			if remembers && !o.outlook.Of(d, d.At).From.IsZero() {
				t.Error("a RayCluster that is gone is remembered")
			}
		}
	}
}
