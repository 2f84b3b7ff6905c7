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
	if !v.Live() || r.gcs.Ray == nil || v.Now.Sub(r.reports.sentAt) < minReportInterval ||
		!c.kube.MayWrite(v.Cluster.Key) {
		return
	}
	report := r.memory.Report(v, &o.Intent)
	if reflect.DeepEqual(report, r.reports.last) && v.Now.Sub(r.reports.sentAt) < c.config.ReportEvery {
		return
	}
	r.reports.last, r.reports.sentAt = report, v.Now
	ctx, cancel := context.WithTimeout(ctx, c.config.GCSTimeout)
	defer cancel()
	if err := r.gcs.Ray.Report(ctx, report); err != nil {
		o.Actions = append(o.Actions,
			addon.Action{At: v.Now, Kind: addon.ActionReport, Result: addon.ResultError, Message: err.Error()})
	}
}

// composeReport returns what is on its way, what fails and what is impossible, and since when each group has pods that
// do not exist yet; before is what it returned last.
func composeReport(
	v observe.View,
	snapshot planner.Snapshot,
	plan planner.Plan,
	b observe.Breakers,
	s observe.Shapes,
	before map[string]time.Time,
) (report raydemand.Report, since map[string]time.Time) {
	launching := map[string]int{}
	for _, n := range snapshot.Nodes {
		if n.Expected {
			launching[n.Group]++
		}
	}
	since = map[string]time.Time{}
	for _, group := range slices.Sorted(maps.Keys(launching)) {
		since[group] = v.Now
		if at, known := before[group]; known {
			since[group] = at
		}
		report.Launching = append(report.Launching,
			raydemand.Launching{Group: group, Count: launching[group], Since: since[group]})
	}
	for _, m := range v.Members {
		if m.Node == nil && m.Counted() {
			report.Starting = append(report.Starting,
				raydemand.Starting{Pod: m.Pod, Group: m.Group, IP: m.IP, Details: podPhase(m.Worker)})
		}
	}
	for _, g := range v.Cluster.Groups {
		if entry := b[g.Name]; entry != nil && entry.Open(v.Now) {
			report.Failed = append(report.Failed, raydemand.FailedLaunch{Group: g.Name, Count: 1, Reason: entry.Reason,
				Start: entry.OpenUntil.Add(-entry.Cooldown), Failed: entry.OpenUntil.Add(-entry.Cooldown)})
		}
	}
	addImpossible(&report, plan, possible{v, s})
	return report, since
}

// addImpossible reports only what no node and no group could ever hold, whatever its labels: Ray may cancel equal
// shapes, and does not compare selectors (docs/reference/facts.md#infeasible-reports-cancel-work).
func addImpossible(report *raydemand.Report, plan planner.Plan, h possible) {
	for _, u := range plan.InfeasibleRequests {
		if u.Reason.Code == planner.Impossible && !u.Moving && !h.fits(u.Bundle) {
			report.InfeasibleRequests = append(report.InfeasibleRequests, u.Request)
		}
	}
	for _, u := range plan.InfeasibleGangRequests {
		if u.Reason.Code == planner.Impossible && !h.fitsGang(u.Gang) {
			report.InfeasibleGangs = append(report.InfeasibleGangs, u.Gang)
		}
	}
	for _, u := range plan.InfeasibleRequestResources {
		if u.Reason.Code == planner.Impossible && !h.fits(u.Bundle) {
			report.InfeasibleConstraint = append(report.InfeasibleConstraint, u.Request)
		}
	}
}

// possible says what a living node, or one that a group could start, may hold, by amounts alone.
type possible struct {
	view   observe.View
	shapes observe.Shapes
}

func (h possible) fits(want raydemand.Bundle) bool {
	return slices.ContainsFunc(h.view.State.Nodes, func(n raydemand.Node) bool {
		return n.Status != raydemand.Dead && n.Total.Fits(want)
	}) || slices.ContainsFunc(h.view.Cluster.Groups, func(g nodepool.WorkerGroup) bool {
		return h.shapes.MayHold(g, want)
	})
}

func (h possible) fitsGang(gang raydemand.Gang) bool {
	return slices.ContainsFunc(append([][]raydemand.Bundle{gang.Bundles}, gang.Fallbacks...),
		func(bundles []raydemand.Bundle) bool {
			if gang.Strategy == raydemand.StrictPack {
				all := raydemand.Bundle{}
				for _, b := range bundles {
					all.Add(b)
				}
				return h.fits(all)
			}
			return !slices.ContainsFunc(bundles, func(b raydemand.Bundle) bool { return !h.fits(b) })
		})
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
