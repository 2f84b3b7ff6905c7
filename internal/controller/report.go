package controller

import (
	"context"
	"reflect"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/rayreport"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// minReportInterval is the shortest pause between two reports: Ray's own autoscaler reports every 5 s, and its handler
// should not be called often (docs/reference/facts.md#autoscaler-report).
const minReportInterval = time.Second

// reports remembers the last report to Ray: it is sent again when it changes, or after ReportEvery.
type reports struct {
	last   raydemand.Report
	sentAt time.Time
	since  map[string]time.Time // group → since when it has pods that do not exist yet
}

// report sends the GCS what is on its way, so that `ray status` is correct. A report that fails is sent again when the
// next one is due; scaling does not depend on it.
func (c *Controller) report(ctx context.Context, r *record, o *outcome) {
	v := o.view
	if !v.Live() || r.gcs.Ray == nil || v.Now.Sub(r.reports.sentAt) < minReportInterval || !c.kube.Leading() {
		return
	}
	report, since := rayreport.Compose(v, o.intent.snapshot, o.intent.plan, r.breakers, r.shapes, r.reports.since)
	r.reports.since = since
	if reflect.DeepEqual(report, r.reports.last) && v.Now.Sub(r.reports.sentAt) < c.config.ReportEvery {
		return
	}
	r.reports.last, r.reports.sentAt = report, v.Now
	ctx, cancel := context.WithTimeout(ctx, c.config.GCSTimeout)
	defer cancel()
	if err := r.gcs.Ray.Report(ctx, report); err != nil {
		o.actions = append(o.actions,
			decision.Action{At: v.Now, Kind: decision.ActionReport, Result: decision.ResultError, Message: err.Error()})
	}
}
