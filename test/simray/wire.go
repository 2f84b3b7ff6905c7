package simray

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// shapeCap and gangCap are Ray's limits on the lists in a state. The head silently omits the rest.
const (
	shapeCap = 100
	gangCap  = 1000
)

// state builds the reply and increments the version on each call, as Ray does.
func (c *cluster) state(now time.Time) *autoscalerpb.ClusterResourceState {
	c.version++
	state := &autoscalerpb.ClusterResourceState{ClusterResourceStateVersion: c.version, ClusterSessionName: c.session}
	for _, dead := range []bool{false, true} {
		for _, n := range c.nodes {
			if n.dead == dead {
				state.NodeStates = append(state.NodeStates, c.nodeState(n, now))
			}
		}
	}
	state.PendingResourceRequests = c.pending(now)
	state.PendingGangResourceRequests = c.pendingGangs()
	if c.constraint != nil {
		state.ClusterResourceConstraints = []*autoscalerpb.ClusterResourceConstraint{c.constraint}
	}
	return state
}

func (c *cluster) nodeState(n *node, now time.Time) *autoscalerpb.NodeState {
	state := &autoscalerpb.NodeState{
		NodeId: n.id[:], InstanceId: n.Instance, RayNodeTypeName: n.Group, NodeIpAddress: n.IP,
		NodeStateVersion: c.version,
	}
	if n.dead {
		state.Status = autoscalerpb.NodeStatus_DEAD
		return state
	}
	state.Status, state.IdleDurationMs = n.status(now)
	state.AvailableResources, state.TotalResources = wireBundle(n.free), wireBundle(n.Resources)
	state.NodeActivity = n.activity
	if c.options.Version.hasLabels() {
		state.Labels = n.Labels
	}
	for _, w := range c.work {
		if w.gangID != "" && !w.over {
			addPlaced(state, w, n)
		}
	}
	return state
}

func (n *node) status(now time.Time) (autoscalerpb.NodeStatus, int64) {
	idle := now.Sub(n.idleSince).Milliseconds()
	switch {
	case n.drain != autoscalerpb.DrainNodeReason_DRAIN_NODE_REASON_UNSPECIFIED:
		return autoscalerpb.NodeStatus_DRAINING, 0
	case n.busy() || idle <= 0:
		return autoscalerpb.NodeStatus_RUNNING, 0
	}
	return autoscalerpb.NodeStatus_IDLE, idle
}

// addPlaced adds the bundles of a placement group to the state of their node: the label, and the generated resource
// names.
func addPlaced(state *autoscalerpb.NodeState, w *work, n *node) {
	for i, p := range w.parts {
		if p.on != n {
			continue
		}
		if state.DynamicLabels == nil {
			state.DynamicLabels = map[string]string{}
		}
		state.DynamicLabels["_PG_"+w.gangID] = ""
		for _, resources := range []map[string]float64{state.TotalResources, state.AvailableResources} {
			for name, amount := range p.bundle {
				resources[name+"_group_"+w.gangID] += amount.Float()
				resources[fmt.Sprintf("%s_group_%d_%s", name, i, w.gangID)] = amount.Float()
			}
			resources["bundle_group_"+w.gangID] = 1000
		}
	}
}

// pending lists pending tasks by shape and selectors. Ray sends the values of in(a,b) in random order, and each order
// counts as a separate shape. Here the order depends on the id of the task, so the result is reproducible.
func (c *cluster) pending(now time.Time) []*autoscalerpb.ResourceRequestByCount {
	var entries []*autoscalerpb.ResourceRequestByCount
	index := map[string]*autoscalerpb.ResourceRequestByCount{}
	for _, w := range c.work {
		if w.over || w.gangID != "" || !w.waiting() || now.Sub(w.submitted) < c.options.ShowAfter {
			continue
		}
		request := wireRequest(w.task.Bundle)
		request.LabelSelectors = wireSelectors(c.options.Version.wireSelectors(w.task.Selectors), int(w.id))
		key := wireKey(request)
		if entry := index[key]; entry != nil {
			entry.Count++
			continue
		}
		if len(entries) == shapeCap {
			continue
		}
		index[key] = &autoscalerpb.ResourceRequestByCount{Request: request, Count: 1}
		entries = append(entries, index[key])
	}
	return entries
}

func (c *cluster) pendingGangs() []*autoscalerpb.GangResourceRequest {
	var gangs []*autoscalerpb.GangResourceRequest
	for _, w := range c.work {
		if !w.over && w.gangID != "" && w.waiting() && len(gangs) < gangCap {
			gangs = append(gangs, c.wireGang(w))
		}
	}
	return gangs
}

func (c *cluster) wireGang(w *work) *autoscalerpb.GangResourceRequest {
	strategy, life := w.gang.Strategy, "PENDING"
	if w.gang.TopologyLabel != "" {
		strategy = raydemand.Pack
	}
	gang := &autoscalerpb.GangResourceRequest{}
	selected := &autoscalerpb.BundleSelector{}
	for _, p := range w.parts {
		if p.on != nil {
			life = "RESCHEDULING"
			continue
		}
		plain := wireRequest(p.bundle)
		switch strategy {
		case raydemand.StrictPack:
			affinity := &autoscalerpb.AffinityConstraint{LabelName: "_PG_" + w.gangID}
			plain.PlacementConstraints = []*autoscalerpb.PlacementConstraint{{Affinity: affinity}}
		case raydemand.StrictSpread:
			antiAffinity := &autoscalerpb.AntiAffinityConstraint{LabelName: "_PG_" + w.gangID}
			plain.PlacementConstraints = []*autoscalerpb.PlacementConstraint{{AntiAffinity: antiAffinity}}
		}
		gang.Requests = append(gang.Requests, plain)
		constrained := proto.CloneOf(plain)
		constrained.LabelSelectors = wireSelectors(p.selector, 0)
		selected.ResourceRequests = append(selected.ResourceRequests, constrained)
	}
	gang.Details = fmt.Sprintf("%s:%s|%s", w.gangID, strategy, life)
	if label := w.gang.TopologyLabel; label != "" {
		locality := &autoscalerpb.LocalityConstraint{
			LabelName: label, PlacementStrategy: raypb.PlacementStrategy_STRICT_PACK,
		}
		selected.LocalityRequirement = &autoscalerpb.LocalityRequirement{LocalityConstraint: locality}
	}
	if c.options.Version.hasLabels() {
		gang.BundleSelectors = []*autoscalerpb.BundleSelector{selected}
	}
	return gang
}

func wireRequest(bundle raydemand.Bundle) *autoscalerpb.ResourceRequest {
	return &autoscalerpb.ResourceRequest{ResourcesBundle: wireBundle(bundle)}
}

// wireBundle omits zero amounts, as Ray does.
func wireBundle(bundle raydemand.Bundle) map[string]float64 {
	resources := make(map[string]float64, len(bundle))
	for name, amount := range bundle {
		if amount != 0 {
			resources[name] = amount.Float()
		}
	}
	return resources
}

func wireSelectors(selectors []raydemand.Selector, turn int) []*raypb.LabelSelector {
	var wire []*raypb.LabelSelector
	for _, s := range selectors {
		selector := &raypb.LabelSelector{}
		for _, constraint := range s {
			values := slices.Clone(constraint.Values)
			if len(values) > 1 {
				at := turn % len(values)
				values = slices.Concat(values[at:], values[:at])
			}
			selector.LabelConstraints = append(selector.LabelConstraints, &raypb.LabelSelectorConstraint{
				LabelKey: constraint.Key, Operator: raypb.LabelSelectorOperator(constraint.Op), LabelValues: values,
			})
		}
		wire = append(wire, selector)
	}
	return wire
}

func wireKey(request *autoscalerpb.ResourceRequest) string {
	bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
	if err != nil {
		panic("marshaling a request: " + err.Error()) // strings come from tests and are valid UTF-8
	}
	return string(bytes)
}
