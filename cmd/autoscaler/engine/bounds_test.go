package engine

import (
	"log/slog"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// TestARecorderShowsHowMuchOfItsBoundsIsInUse: nothing at first, and more with each decision.
func TestARecorderShowsHowMuchOfItsBoundsIsInUse(t *testing.T) {
	r := newRecorder(slog.New(slog.DiscardHandler))
	if got := r.BoundsUsed(); got["history"] != 0 || got["streams"] != 0 || len(got) != 2 {
		t.Errorf("at first %v", got)
	}
	r.Publish(&addon.Decision{Cluster: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, At: time.Now(), Actions: []addon.Action{{Kind: addon.ActionPatch}}})
	if got := r.BoundsUsed(); got["history"] <= 0 || got["history"] >= 1 {
		t.Errorf("with one decision %v", got)
	}
}
