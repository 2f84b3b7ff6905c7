package engine

import (
	"encoding/json"
	"log/slog"

	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Recorder records decisions for callers of the REST API: the history, the comparison with another writer in shadow
// mode, and events for callers that watch a cluster.
type Recorder struct {
	past   *History
	shadow *Shadow
	Hub    *api.Hub
	log    *slog.Logger
}

// newRecorder returns a Recorder without decisions.
func newRecorder(log *slog.Logger) *Recorder {
	return &Recorder{
		past:   newHistory(0, 0),
		shadow: newShadow(),
		Hub:    api.NewHub(api.HubConfig{}),
		log:    log,
	}
}

// Publish records a decision that was carried out.
func (r *Recorder) Publish(d *decision.Decision) {
	if err := r.past.Observe(d); err != nil {
		r.log.Error("cannot record a decision in the history", "cluster", d.Cluster.String(), "err", err)
	}
	r.shadow.Observe(d)
	r.Hub.Changed(d.Cluster)
}

// Forget drops a cluster that no longer exists.
func (r *Recorder) Forget(key nodepool.ClusterKey) {
	r.past.Forget(key)
	r.shadow.Forget(key)
	r.Hub.Gone(key)
}

// Release drops a cluster that another replica decides about.
func (r *Recorder) Release(key nodepool.ClusterKey) {
	r.past.Forget(key)
	r.shadow.Forget(key)
	r.Hub.Moved(key)
}

// Entries returns the last decisions about a cluster, newest first.
func (r *Recorder) Entries(key nodepool.ClusterKey) []apiv1.HistoryEntry {
	pasts := r.past.Entries(key)
	entries := make([]apiv1.HistoryEntry, len(pasts))
	for i, past := range pasts {
		entries[i] = entryOf(past)
	}
	return entries
}

func entryOf(past HistoryEntry) apiv1.HistoryEntry {
	entry := apiv1.HistoryEntry{
		ID: past.ID, At: past.At.UTC(), Mode: past.Mode, Unmet: past.Unmet, Error: past.Err,
		Decisions: []apiv1.Decision{}, Groups: []apiv1.HistoryGroup{},
	}
	for _, action := range past.Actions {
		entry.Decisions = append(entry.Decisions, changeOf(action))
	}
	for _, g := range past.Groups {
		entry.Groups = append(entry.Groups, apiv1.HistoryGroup{
			Name: g.Name, Current: g.Current, Desired: g.Desired, Reasons: append([]planner.Reason{}, g.Reasons...),
		})
	}
	return entry
}

// Past returns the snapshot and the plan of a decision.
func (r *Recorder) Past(key nodepool.ClusterKey, id string) (snapshot, plan json.RawMessage, known bool, err error) {
	past, known := r.past.Entry(key, id)
	if !known {
		return nil, nil, false, nil
	}
	document, err := past.Source()
	return document.Snapshot, document.Plan, true, err
}

// BoundsUsed returns how much of each bound of the recorder is in use, from 0 to 1.
func (r *Recorder) BoundsUsed() map[string]float64 {
	return map[string]float64{"history": r.past.Used(), "streams": r.Hub.Used()}
}
