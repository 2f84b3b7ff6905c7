package controller

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// soonest is the shortest pause between two reports: Ray's own autoscaler reports every 5 s, and its handler is better
// not called often (docs/reference/facts.md#autoscaler-report).
const soonest = time.Second

// reports remembers what Ray was told, so that it is told again on change, or after ReportEvery.
type reports struct {
	last   raydemand.Report
	sentAt time.Time
	since  map[string]time.Time // group → since when it has pods that do not exist yet
}

// report tells the GCS what is on its way, so that `ray status` shows the truth. A report that fails is sent again when
// the next is due; scaling does not depend on it.
func (c *Controller) report(ctx context.Context, r *record, o *outcome) {
	v := o.view
	if !v.live() || r.line.ray == nil || v.now.Sub(r.reports.sentAt) < soonest || !c.kube.Leading() {
		return
	}
	report := r.reports.make(v, o.intent.snapshot, o.intent.plan, r.breakers, r.shapes)
	if reflect.DeepEqual(report, r.reports.last) && v.now.Sub(r.reports.sentAt) < c.config.ReportEvery {
		return
	}
	r.reports.last, r.reports.sentAt = report, v.now
	ctx, cancel := context.WithTimeout(ctx, c.config.GCSTimeout)
	defer cancel()
	if err := r.line.ray.Report(ctx, report); err != nil {
		o.actions = append(o.actions, decision.Action{At: v.now, Kind: decision.ActionReport, Result: decision.ResultError, Message: err.Error()})
	}
}

func (r *reports) make(v view, snapshot planner.Snapshot, plan planner.Plan, b breakers, s shapes) raydemand.Report {
	var report raydemand.Report
	launching := map[string]int{}
	for _, n := range snapshot.Nodes {
		if n.Expected {
			launching[n.Group]++
		}
	}
	since := map[string]time.Time{}
	for _, group := range slices.Sorted(maps.Keys(launching)) {
		since[group] = earlier(r.since, group, v.now)
		report.Launching = append(report.Launching, raydemand.Launching{Group: group, Count: launching[group], Since: since[group]})
	}
	r.since = since
	for _, m := range v.members {
		if m.Node == nil && m.Counted() {
			report.Starting = append(report.Starting, raydemand.Starting{Pod: m.Pod, Group: m.Group, IP: m.IP, Details: podPhase(m.Worker)})
		}
	}
	for _, g := range v.cluster.Groups {
		if entry := b[g.Name]; entry != nil && entry.open(v.now) {
			report.Failed = append(report.Failed, raydemand.FailedLaunch{Group: g.Name, Count: 1, Reason: entry.reason,
				Start: entry.openUntil.Add(-entry.cooldown), Failed: entry.openUntil.Add(-entry.cooldown)})
		}
	}
	addImpossible(&report, plan, hopes{v, s})
	return report
}

// addImpossible reports only what no node and no group could ever hold, whatever its labels: Ray may cancel equal shapes,
// and compares no selectors (docs/reference/facts.md#infeasible-reports-cancel-work).
func addImpossible(report *raydemand.Report, plan planner.Plan, h hopes) {
	for _, u := range plan.InfeasibleRequests {
		if u.Reason.Code == planner.Impossible && !h.holds(u.Bundle) {
			report.InfeasibleRequests = append(report.InfeasibleRequests, u.Request)
		}
	}
	for _, u := range plan.InfeasibleGangRequests {
		if u.Reason.Code == planner.Impossible && !h.holdsGang(u.Gang) {
			report.InfeasibleGangs = append(report.InfeasibleGangs, u.Gang)
		}
	}
	for _, u := range plan.InfeasibleRequestResources {
		if u.Reason.Code == planner.Impossible && !h.holds(u.Bundle) {
			report.InfeasibleConstraint = append(report.InfeasibleConstraint, u.Request)
		}
	}
}

// hopes tells what may be held one day by a node that lives or one that a group could start, by amounts alone.
type hopes struct {
	view   view
	shapes shapes
}

func (h hopes) holds(want raydemand.Bundle) bool {
	return slices.ContainsFunc(h.view.state.Nodes, func(n raydemand.Node) bool {
		return n.Status != raydemand.Dead && n.Total.Fits(want)
	}) || slices.ContainsFunc(h.view.cluster.Groups, func(g nodepool.WorkerGroup) bool { return h.shapes.mayHold(g, want) })
}

func (h hopes) holdsGang(gang raydemand.Gang) bool {
	return slices.ContainsFunc(append([][]raydemand.Bundle{gang.Bundles}, gang.Fallbacks...), func(bundles []raydemand.Bundle) bool {
		if gang.Strategy == raydemand.StrictPack {
			all := raydemand.Bundle{}
			for _, b := range bundles {
				all.Add(b)
			}
			return h.holds(all)
		}
		return !slices.ContainsFunc(bundles, func(b raydemand.Bundle) bool { return !h.holds(b) })
	})
}

func podPhase(w nodepool.Worker) string {
	switch {
	case w.Unschedulable != "":
		return "Unschedulable: " + w.Unschedulable
	case w.Running:
		return "Running, Ray is starting"
	case !w.ScheduledAt.IsZero():
		return "ContainerCreating"
	}
	return "Pending"
}
