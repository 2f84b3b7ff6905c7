package controller

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// minReportInterval is the shortest pause between two reports: Ray's own autoscaler reports every 5 s, and its handler
// should not be called often (docs/reference/facts.md#autoscaler-report).
const minReportInterval = time.Second

// report sends the GCS what is on its way, so that `ray status` is correct. A report that fails is sent again when the
// next one is due; scaling does not depend on it.
func (c *Controller) report(ctx context.Context, r *record, o *addon.Cycle) {
	v := o.View
	if !v.Live() || r.gcs.Ray == nil || v.Now.Sub(r.reportedAt) < minReportInterval ||
		!c.kube.MayWrite(v.Cluster.Key) {
		return
	}
	report := r.memory.Report(v, &o.Intent.Snapshot)
	if reflect.DeepEqual(report, r.lastReport) && v.Now.Sub(r.reportedAt) < c.config.ReportEvery {
		return
	}
	r.lastReport, r.reportedAt = report, v.Now
	ctx, cancel := context.WithTimeout(ctx, c.config.GCSTimeout)
	defer cancel()
	if err := r.gcs.Ray.Report(ctx, report); err != nil {
		o.Actions = append(o.Actions,
			addon.Action{At: v.Now, Kind: addon.ActionReport, Result: addon.ResultError, Message: err.Error()})
	}
}

// Report composes what is reported to Ray of a decision: what is on its way and what fails. It remembers since when
// pods are on their way.
//
// Demand that no group can serve is no part of it: Ray may cancel tasks of an equal shape, and does not compare
// selectors (docs/reference/facts.md#infeasible-reports-cancel-work).
func (m *memory) Report(v observe.View, snapshot *planner.Snapshot) (report raydemand.Report) {
	launching := map[string]int{}
	for _, n := range snapshot.Nodes {
		if n.Expected {
			launching[n.Group]++
		}
	}
	since := map[string]time.Time{}
	for _, group := range slices.Sorted(maps.Keys(launching)) {
		since[group] = v.Now
		if at, known := m.launching[group]; known {
			since[group] = at
		}
		report.Launching = append(report.Launching,
			raydemand.Launching{Group: group, Count: launching[group], Since: since[group]})
	}
	for _, w := range v.Members {
		if w.Node == nil && w.Counted() {
			report.Starting = append(report.Starting,
				raydemand.Starting{Pod: w.Pod, Group: w.Group, IP: w.IP, Details: podPhase(w.Worker)})
		}
	}
	for _, g := range v.Cluster.Groups {
		if entry := m.breakers[g.Name]; entry != nil && entry.Open(v.Now) {
			report.Failed = append(report.Failed, raydemand.FailedLaunch{Group: g.Name, Reason: entry.Reason,
				At: entry.OpenUntil.Add(-entry.Cooldown)})
		}
	}
	m.launching = since
	return report
}

func podPhase(w *nodepool.Worker) string {
	switch {
	case w.Unschedulable != "" || w.GangHeld != "":
		return "Unschedulable: " + cmp.Or(w.Unschedulable, w.GangHeld)
	case w.Running:
		return "Running, Ray is starting"
	case !w.ScheduledAt.IsZero():
		return "ContainerCreating"
	}
	return "Pending"
}
