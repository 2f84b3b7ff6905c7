package main

import (
	"encoding/json"
	"log/slog"

	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/internal/httpapi"
	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// aftermath is what decisions leave behind for callers of the REST API: the last ones, in shadow how
// they compare with somebody else's, and events for those who follow.
type aftermath struct {
	past   *controller.History
	shadow *controller.Shadow
	hub    *httpapi.Hub
	log    *slog.Logger
}

func newAftermath(log *slog.Logger) *aftermath {
	return &aftermath{past: controller.NewHistory(0, 0), shadow: controller.NewShadow(), hub: httpapi.NewHub(), log: log}
}

// published takes a decision that was carried out.
func (a *aftermath) published(d *controller.Decision) {
	if err := a.past.Observe(d); err != nil {
		a.log.Error("cannot remember a decision", "cluster", d.Cluster.String(), "err", err)
	}
	a.shadow.Observe(d)
	a.hub.Changed(d.Cluster)
}

// forgotten drops a cluster that is gone.
func (a *aftermath) forgotten(key nodepool.ClusterKey) {
	a.past.Forget(key)
	a.shadow.Forget(key)
	a.hub.Gone(key)
}

// Entries returns the last decisions about a cluster, newest first.
func (a *aftermath) Entries(key nodepool.ClusterKey) []apiv1.HistoryEntry {
	pasts := a.past.Pasts(key)
	entries := make([]apiv1.HistoryEntry, len(pasts))
	for i, past := range pasts {
		entries[i] = entryOf(past)
	}
	return entries
}

func entryOf(past controller.Past) apiv1.HistoryEntry {
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

// Past returns what a decision was made from and what it came to.
func (a *aftermath) Past(key nodepool.ClusterKey, id string) (snapshot, plan json.RawMessage, known bool, err error) {
	past, known := a.past.Past(key, id)
	if !known {
		return nil, nil, false, nil
	}
	document, err := past.Document()
	return document.Snapshot, document.Plan, true, err
}
