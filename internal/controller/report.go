package controller

import (
	"context"
	"errors"
	"reflect"
	"time"

	"heliostat.dev/heliostat/internal/addon"
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
