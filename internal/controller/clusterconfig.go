package controller

import (
	"context"
	"errors"
	"reflect"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/pkg/nodepool"
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
	retry       patchBackoff
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
	if !v.live() || r.line.ray == nil || known.unsupported || known.retry.resting(v.now) || v.now.Sub(known.sentAt) < soonest {
		return
	}
	config := clusterConfig(v.cluster, v.head, r.shapes)
	if known.sent != nil && reflect.DeepEqual(*known.sent, config) || !c.stillManaged(ctx, v.cluster) {
		return
	}
	started := c.config.Now()
	limited, cancel := context.WithTimeout(ctx, min(c.config.GCSTimeout, configTimeout))
	defer cancel()
	err := r.line.ray.ReportClusterConfig(limited, config)
	if err != nil && ctx.Err() != nil {
		return // an end that was asked for
	}
	action := decision.Action{At: started, Kind: decision.ActionClusterConfig, Result: decision.ResultOK, Took: c.config.Now().Sub(started)}
	switch key := v.cluster.Key.String(); {
	case err == nil:
		known.sent, known.sentAt, known.retry = &config, v.now, patchBackoff{}
		c.config.Log.InfoContext(ctx, "reported the cluster config to Ray", "cluster", key, "groups", len(config.Groups))
	case errors.Is(err, raydemand.ErrUnsupported):
		known.unsupported = true
		c.config.Log.InfoContext(ctx, "the head takes no cluster config; Ray 2.41 and later do", "cluster", key)
		return
	default:
		if known.retry.failures == 0 { // once, until it succeeds
			c.config.Log.WarnContext(ctx, "cluster config not reported", "cluster", key, "err", err)
		}
		known.retry.fail(v.now)
		action.Result, action.Message = decision.ResultError, err.Error()
	}
	o.actions = append(o.actions, action)
}

// clusterConfig is what the cluster could have by its spec: the head, and each worker group within its bounds. Whether
// nodes can be had at present is left out: a group that fails now may not in a minute.
//
// Ray Train refuses to start workers that need more than the config adds up to. So half a config would be worse than
// none: while it is not known how many CPUs a node of some group has, the config is empty, which Ray's libraries
// ignore.
func clusterConfig(cluster nodepool.Cluster, head *raydemand.Node, shapes shapes) raydemand.ClusterConfig {
	config := raydemand.ClusterConfig{}
	if head != nil {
		config.Groups = append(config.Groups, raydemand.NodeGroup{Name: head.Group, Resources: ownResources(head.Total), Min: 1, Max: 1})
	}
	for _, g := range cluster.Groups {
		if g.Broken || g.Suspended || g.Max <= 0 {
			continue // it gets no nodes
		}
		resources := shapes.of(g)
		if _, counted := resources[raydemand.CPU]; !counted {
			return raydemand.ClusterConfig{}
		}
		config.Groups = append(config.Groups, raydemand.NodeGroup{
			Name: g.Name, Resources: resources.WithAnyAcceleratorType(), Min: nodesOf(g, g.Min), Max: nodesOf(g, g.Max),
		})
	}
	return config
}

// nodesOf is how many Ray nodes the replicas of a group have.
func nodesOf(g nodepool.WorkerGroup, replicas int) int {
	if replicas >= nodepool.NoMaximum {
		return raydemand.Unlimited
	}
	return replicas * max(g.NumOfHosts, 1)
}
