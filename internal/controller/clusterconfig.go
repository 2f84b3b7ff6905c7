package controller

import (
	"context"
	"errors"
	"reflect"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/rayreport"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// clusterConfigs remembers which cluster config this Ray session has from this process. A lost memory costs one more
// report.
type clusterConfigs struct {
	// sent is nil while this session has none from us, as far as we know.
	sent   *raydemand.ClusterConfig
	sentAt time.Time
	// unsupported says that the head of this session is older than the call.
	unsupported bool
	retry       backoff
}

// configTimeout bounds one report: the next decision about the RayCluster waits for it, and a head that takes part in
// scaling answers in milliseconds. A head that is late may still have taken the config, so another try does no harm.
const configTimeout = 500 * time.Millisecond

// forget makes the next managed cycle report again: while a cluster is not managed, anybody may write its cluster
// config.
func (k *clusterConfigs) forget() { k.sent = nil }

// reportClusterConfig tells Ray's libraries which nodes the cluster could have, whenever that differs from what this
// Ray session was told last. Scaling never depends on it: it is the last step of a cycle, and its errors stay its own.
func (c *Controller) reportClusterConfig(ctx context.Context, r *record, o *outcome) {
	v, known := o.view, &r.configs
	if !c.kube.Leading() {
		known.forget()
		return
	}
	if !v.Live() || r.gcs.Ray == nil || known.unsupported || known.retry.resting(v.Now) || v.Now.Sub(known.sentAt) < minReportInterval {
		return
	}
	config := rayreport.ClusterConfig(v.Cluster, v.Head, r.shapes)
	if known.sent != nil && reflect.DeepEqual(*known.sent, config) || !c.stillManaged(ctx, v.Cluster) {
		return
	}
	started := c.config.Now()
	limited, cancel := context.WithTimeout(ctx, min(c.config.GCSTimeout, configTimeout))
	defer cancel()
	err := r.gcs.Ray.ReportClusterConfig(limited, rayreport.WithAcceleratorTypes(config, v.Head))
	if err != nil && ctx.Err() != nil {
		return // an end that was asked for
	}
	action := decision.Action{At: started, Kind: decision.ActionClusterConfig, Result: decision.ResultOK, Took: c.config.Now().Sub(started)}
	switch key := v.Cluster.Key.String(); {
	case err == nil:
		known.sent, known.sentAt, known.retry = &config, v.Now, backoff{}
		c.config.Log.InfoContext(ctx, "reported the cluster config to Ray", "cluster", key, "groups", len(config.Groups))
	case errors.Is(err, raydemand.ErrUnsupported):
		known.unsupported = true
		c.config.Log.InfoContext(ctx, "the head takes no cluster config; Ray 2.41 and later do", "cluster", key)
		return
	default:
		if known.retry.failures == 0 { // once, until it succeeds
			c.config.Log.WarnContext(ctx, "cluster config not reported", "cluster", key, "err", err)
		}
		known.retry.fail(v.Now)
		action.Result, action.Message = decision.ResultError, err.Error()
	}
	o.actions = append(o.actions, action)
}
