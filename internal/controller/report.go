package controller

import (
	"context"
	"reflect"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// soonest is the shortest pause between two reports: Ray's own autoscaler reports every 5 s, and its handler is better
// not called often (reference/ray-gcs-wire.md 4.8).
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
	report := r.reports.make(v, o.intent, r.breakers)
	if reflect.DeepEqual(report, r.reports.last) && v.now.Sub(r.reports.sentAt) < c.config.ReportEvery {
		return
	}
	r.reports.last, r.reports.sentAt = report, v.now
	ctx, cancel := context.WithTimeout(ctx, c.config.GCSTimeout)
	defer cancel()
	if err := r.line.ray.Report(ctx, report); err != nil {
		o.actions = append(o.actions, Action{At: v.now, Kind: ActionReport, Result: ResultError, Message: err.Error()})
	}
}

func (r *reports) make(v view, i intent, b breakers) raydemand.Report {
	var report raydemand.Report
	launching := map[string]int{}
	for _, n := range i.snapshot.Nodes {
		if n.Expected {
			launching[n.Group]++
		}
	}
	since := map[string]time.Time{}
	for _, group := range sortedKeys(launching) {
		since[group] = earlier(r.since, group, v.now)
		report.Launching = append(report.Launching, raydemand.Launching{Group: group, Count: launching[group], Since: since[group]})
	}
	r.since = since
	for _, m := range v.members {
		if m.Node == nil && m.counted() {
			report.Starting = append(report.Starting, raydemand.Starting{Pod: m.Pod, Group: m.Group, IP: m.IP, Details: podPhase(m.Worker)})
		}
	}
	for _, g := range v.cluster.Groups {
		if entry := b[g.Name]; entry != nil && entry.open(v.now) {
			report.Failed = append(report.Failed, raydemand.FailedLaunch{Group: g.Name, Count: 1, Reason: entry.reason,
				Start: entry.openUntil.Add(-entry.cooldown), Failed: entry.openUntil.Add(-entry.cooldown)})
		}
	}
	addImpossible(&report, i.plan)
	return report
}

// addImpossible reports only what no group could ever serve: Ray may cancel equal shapes (reference/ray-gcs-wire.md 4.8).
func addImpossible(report *raydemand.Report, plan planner.Plan) {
	for _, u := range plan.InfeasibleRequests {
		if u.Reason.Code == planner.Impossible {
			report.InfeasibleRequests = append(report.InfeasibleRequests, u.Request)
		}
	}
	for _, u := range plan.InfeasibleGangRequests {
		if u.Reason.Code == planner.Impossible {
			report.InfeasibleGangs = append(report.InfeasibleGangs, u.Gang)
		}
	}
	for _, u := range plan.InfeasibleRequestResources {
		if u.Reason.Code == planner.Impossible {
			report.InfeasibleConstraint = append(report.InfeasibleConstraint, u.Request)
		}
	}
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
