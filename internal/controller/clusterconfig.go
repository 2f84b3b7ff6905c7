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

// clusterConfigs remembers the cluster config that this process sent to this Ray session. If the memory is lost, the
// config is sent once more.
type clusterConfigs struct {
	// sent is nil if this session has no config from this process, as far as is known.
	sent   *raydemand.ClusterConfig
	sentAt time.Time
	// unsupported: the head is older than the call.
	unsupported bool
	retry       backoff
}

// configTimeout bounds one report, because the next cycle waits for it. A healthy head answers in milliseconds. A slow
// head may still have stored the config; sending it again does no harm.
const configTimeout = 500 * time.Millisecond

// forget makes the next managed cycle report again: while a cluster is not managed, another process may write its
// cluster config.
func (k *clusterConfigs) forget() { k.sent = nil }

// reportClusterConfig sends Ray's libraries the nodes that the cluster could have, when they differ from what this Ray
// session has. Scaling never depends on it: it is the last step of a cycle, and its errors are only logged.
func (c *Controller) reportClusterConfig(ctx context.Context, r *record, o *outcome) {
	v, known := o.view, &r.configs
	if !c.kube.Leading() {
		known.forget()
		return
	}
	if !v.Live() || r.gcs.Ray == nil || known.unsupported || known.retry.resting(v.Now) ||
		v.Now.Sub(known.sentAt) < minReportInterval {
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
		return // the process ends
	}
	action := decision.Action{
		At:     started,
		Kind:   decision.ActionClusterConfig,
		Result: decision.ResultOK,
		Took:   c.config.Now().Sub(started),
	}
	switch key := v.Cluster.Key.String(); {
	case err == nil:
		known.sent, known.sentAt, known.retry = &config, v.Now, backoff{}
		c.config.Log.InfoContext(ctx, "reported the cluster config to Ray", "cluster", key, "groups",
			len(config.Groups))
	case errors.Is(err, raydemand.ErrUnsupported):
		known.unsupported = true
		c.config.Log.InfoContext(ctx, "the head accepts no cluster config; Ray 2.41 and later accept it", "cluster",
			key)
		return
	default:
		if known.retry.failures == 0 { // once, until it succeeds
			c.config.Log.WarnContext(ctx, "cannot report the cluster config to Ray", "cluster", key, "err", err)
		}
		known.retry.fail(v.Now)
		action.Result, action.Message = decision.ResultError, err.Error()
	}
	o.actions = append(o.actions, action)
}
