package controller

import (
	"cmp"
	"context"
	"errors"
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

// configTimeout bounds one report, because the next cycle waits for it. A healthy head answers in milliseconds. A slow
// head may still have stored the config; sending it again does no harm.
const configTimeout = 500 * time.Millisecond

// reportClusterConfig sends Ray's libraries the nodes that the cluster could have, when they differ from what this Ray
// session has. Scaling never depends on it: it is the last step of a cycle, and its errors are only logged.
func (c *Controller) reportClusterConfig(ctx context.Context, r *record, o *addon.Cycle) {
	v, known := o.View, &r.configs
	if !c.kube.MayWrite(v.Cluster.Key) {
		known.forget()
		return
	}
	if !v.Live() || r.gcs.Ray == nil || known.unsupported || known.retry.Resting(v.Now) ||
		v.Now.Sub(known.sentAt) < minReportInterval {
		return
	}
	config := clusterConfigOf(v.Cluster, v.Head, r.memory.shapes)
	if known.sent != nil && reflect.DeepEqual(*known.sent, config) || !c.stillManaged(ctx, v.Cluster) {
		return
	}
	started := c.config.Now()
	limited, cancel := context.WithTimeout(ctx, min(c.config.GCSTimeout, configTimeout))
	defer cancel()
	err := r.gcs.Ray.ReportClusterConfig(limited, withAcceleratorTypes(config, v.Head))
	if err != nil && ctx.Err() != nil {
		return // the process ends
	}
	action := addon.Action{
		At:     started,
		Kind:   addon.ActionClusterConfig,
		Result: addon.ResultOK,
		Took:   c.config.Now().Sub(started),
	}
	switch key := v.Cluster.Key.String(); {
	case err == nil:
		known.sent, known.sentAt, known.retry = &config, v.Now, addon.Pause{}
		c.config.Log.InfoContext(ctx, "reported the cluster config to Ray", "cluster", key, "groups",
			len(config.Groups))
	case errors.Is(err, raydemand.ErrUnsupported):
		known.unsupported = true
		c.config.Log.InfoContext(ctx, "the head accepts no cluster config; Ray 2.41 and later accept it", "cluster",
			key)
		return
	default:
		if known.retry.Failures() == 0 { // once, until it succeeds
			c.config.Log.WarnContext(ctx, "cannot report the cluster config to Ray", "cluster", key, "err", err)
		}
		known.retry.Fail(v.Now)
		action.Result, action.Message = addon.ResultError, err.Error()
	}
	o.Actions = append(o.Actions, action)
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

// clusterConfigOf returns what the cluster could have by its spec: the head, and each worker group within its bounds.
// It does not consider whether nodes are available at present: a group that fails now may not fail in a minute.
//
// Ray Train refuses to start workers that need more than the config adds up to, so an incomplete config would be worse
// than none. While the CPUs of a node of some group are unknown, the config is empty, and Ray's libraries ignore it.
func clusterConfigOf(cluster nodepool.Cluster, head *raydemand.Node, shapes observe.Shapes) raydemand.ClusterConfig {
	config := raydemand.ClusterConfig{}
	if head != nil {
		config.Groups = append(config.Groups,
			raydemand.NodeGroup{Name: head.Group, Resources: observe.OwnResources(head.Total), Min: 1, Max: 1})
	}
	for _, g := range cluster.Groups {
		if g.Broken || g.Suspended || g.Max <= 0 {
			continue // it gets no nodes
		}
		resources := observe.WithCertainType(shapes.Of(g), g.Announces)
		if _, counted := resources[raydemand.CPU]; !counted {
			return raydemand.ClusterConfig{}
		}
		config.Groups = append(config.Groups, raydemand.NodeGroup{
			Name: g.Name, Resources: resources, Min: nodesOf(g, g.Min), Max: nodesOf(g, g.Max),
		})
	}
	return config
}

// withAcceleratorTypes returns the config as Ray's libraries need it: the nodes of a worker group with GPUs may be of
// any accelerator type, unless their nodes or a worker show it. Types are added only to what is sent: they are many,
// and two configs compare without them.
func withAcceleratorTypes(config raydemand.ClusterConfig, head *raydemand.Node) raydemand.ClusterConfig {
	config.Groups = slices.Clone(config.Groups)
	workers := config.Groups
	if head != nil && len(workers) > 0 {
		workers = workers[1:] // the head names its own type
	}
	for i := range workers {
		workers[i].Resources = workers[i].Resources.WithAnyAcceleratorType()
	}
	return config
}

// nodesOf returns how many Ray nodes the replicas of a group have.
func nodesOf(g nodepool.WorkerGroup, replicas int) int {
	if replicas >= nodepool.NoMaximum {
		return raydemand.Unlimited
	}
	return replicas * max(g.NumOfHosts, 1)
}
