package gcs

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// headResource is a resource that only the head has. headGroup is the node type of the head under KubeRay. A dead head
// has only headGroup.
const (
	headResource = "node:__internal_head__"
	headGroup    = "headgroup"
)

func (d *decoder) nodes(
	wire []*autoscalerpb.NodeState, labels map[raydemand.NodeID]map[string]string,
) []raydemand.Node {
	nodes := make([]raydemand.Node, 0, len(wire))
	seen := make(map[raydemand.NodeID]bool, len(wire))
	for _, n := range wire {
		id, err := raydemand.ParseNodeID(n.GetNodeId())
		if err != nil {
			d.badValue("Ray node "+n.GetInstanceId(), "node_states.node_id", err.Error(), "the node is left out")
			continue
		}
		if seen[id] {
			d.badValue(fmt.Sprintf("Ray node %s (%s)", id, n.GetInstanceId()), "node_states.node_id", "listed twice",
				"only the first entry counts: its capacity is there once")
			continue
		}
		seen[id] = true
		nodes = append(nodes, d.node(id, n, labels[id]))
	}
	slices.SortFunc(nodes, func(a, b raydemand.Node) int {
		return cmp.Or(strings.Compare(a.Instance, b.Instance), bytes.Compare(a.ID[:], b.ID[:]))
	})
	return nodes
}

func (d *decoder) node(id raydemand.NodeID, n *autoscalerpb.NodeState, labels map[string]string) raydemand.Node {
	if len(n.GetLabels()) > 0 {
		labels = d.sharedLabels(n.GetLabels())
	}
	object := func() string { return fmt.Sprintf("Ray node %s (%s)", id, n.GetInstanceId()) }
	node := raydemand.Node{
		ID:           id,
		Instance:     n.GetInstanceId(),
		Group:        d.shared(n.GetRayNodeTypeName()),
		Status:       d.status(object, n.GetStatus()),
		Available:    d.nodeResources(object, "available_resources", n.GetAvailableResources()),
		Total:        d.nodeResources(object, "total_resources", n.GetTotalResources()),
		Labels:       labels,
		PlacedLabels: n.GetDynamicLabels(),
		IP:           n.GetNodeIpAddress(),
		Activity:     activity(n.GetNodeActivity()),
	}
	if maps.Equal(node.Available, node.Total) { // Equal would drop zeros, and an implicit resource without one is 1
		node.Available = node.Total // most nodes of a cluster at rest: nothing changes a bundle
	}
	node.Head = node.Group == headGroup || node.Total[headResource] > 0
	if node.Status == raydemand.Idle {
		node.Idle = milliseconds(n.GetIdleDurationMs())
	}
	return node
}

func (d *decoder) status(object func() string, s autoscalerpb.NodeStatus) raydemand.NodeStatus {
	switch s {
	case autoscalerpb.NodeStatus_RUNNING:
		return raydemand.Running
	case autoscalerpb.NodeStatus_IDLE:
		return raydemand.Idle
	case autoscalerpb.NodeStatus_DRAINING:
		return raydemand.Draining
	case autoscalerpb.NodeStatus_DEAD:
		return raydemand.Dead
	}
	d.badValue(object(), "node_states.status", fmt.Sprintf("%d", s), "the node counts as neither idle nor gone")
	return raydemand.Unspecified
}

// nodeResources returns resources without those of placement groups. No pending bundle can request them, and the
// available resources already exclude the CPUs and GPUs that they use. A negative available amount becomes 0.
func (d *decoder) nodeResources(object func() string, field string, wire map[string]float64) raydemand.Bundle {
	bundle := make(raydemand.Bundle, len(wire))
	for _, name := range slices.Sorted(maps.Keys(wire)) {
		if isPlacementGroupResource(name) {
			continue
		}
		amount, err := raydemand.FromFloat(wire[name])
		if err != nil || amount < 0 {
			d.badValue(object(), fmt.Sprintf("node_states.%s[%q]", field, name), fmt.Sprint(wire[name]),
				"it counts as none")
			amount = 0
		}
		bundle[d.shared(name)] = amount
	}
	return bundle
}

// sharedLabels returns labels whose texts the nodes share.
func (d *decoder) sharedLabels(labels map[string]string) map[string]string {
	kept := make(map[string]string, len(labels))
	for key, value := range labels {
		kept[d.shared(key)] = d.shared(value)
	}
	return kept
}

// shared returns an equal text that the nodes of the state share, because most names and values are the same on all.
func (d *decoder) shared(text string) string {
	if known, is := d.texts[text]; is {
		return known
	}
	if d.texts == nil {
		d.texts = map[string]string{}
	}
	d.texts[text] = text
	return text
}

// activity returns why a node is busy without the resources of placement groups: each comes with the resource that it
// is a part of.
func activity(wire []string) []string {
	return slices.DeleteFunc(slices.Clone(wire), func(text string) bool {
		resource, inUse := raydemand.ActiveResource(text)
		return inUse && isPlacementGroupResource(resource)
	})
}

// milliseconds converts ms to a duration without overflow. A negative value becomes 0.
func milliseconds(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}
