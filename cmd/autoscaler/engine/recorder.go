package engine

import (
	"log/slog"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Recorder records decisions for callers of the REST API: the history, and events for callers that watch a cluster.
type Recorder struct {
	past *History
	Hub  *api.Hub
	log  *slog.Logger
}

// newRecorder returns a Recorder without decisions.
func newRecorder(log *slog.Logger) *Recorder {
	return &Recorder{past: newHistory(0, 0), Hub: api.NewHub(), log: log}
}

// Publish records a decision that was carried out.
func (r *Recorder) Publish(d *addon.Decision) {
	if err := r.past.Observe(d); err != nil {
		r.log.Error("cannot record a decision in the history", "cluster", d.Cluster.String(), "err", err)
	}
	r.Hub.Changed(d.Cluster)
}

// Forget drops a cluster that no longer exists.
func (r *Recorder) Forget(key nodepool.ClusterKey) {
	r.past.Forget(key)
	r.Hub.Changed(key)
}

// Release drops a cluster that another replica decides about.
func (r *Recorder) Release(key nodepool.ClusterKey) {
	r.past.Forget(key)
	r.Hub.Moved(key)
}

// BoundsUsed returns how much of each bound of the recorder is in use, from 0 to 1.
func (r *Recorder) BoundsUsed() map[string]float64 {
	return map[string]float64{"history": r.past.Used()}
}
