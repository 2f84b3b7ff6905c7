// Package capacity carries out what the capacity policy of a RayCluster says beside warm workers, which the planner
// keeps: warm nodes, which a node autoscaler keeps ready for CapacityBuffers, and the end of a RayCluster without work,
// which is suspended or deleted. What the policy says at a moment is in pkg/nodepool/capacity. Anything unknown
// changes nothing. When an idle worker goes is the planner's decision (internal/planner/place/idle.go).
package capacity

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// NodesDecision is what one cycle does about warm nodes.
type NodesDecision struct {
	Plans    []capacity.NodesPlan
	Changes  []nodepool.BufferChange
	Findings []raydemand.Finding
}

// Seen is what a decision is made from.
type Seen struct {
	Now      time.Time
	Cluster  *nodepool.Cluster
	Snapshot *planner.Snapshot
	Plan     *planner.Plan
}

// decide decides for a RayCluster that is managed. While the buffers are unknown, nothing changes.
func decide(s Seen) NodesDecision {
	var d NodesDecision
	cluster := s.Cluster
	groups := groupsOf(s)
	var policy *capacity.Policy
	if cluster.Policy != nil {
		policy = &cluster.Policy.Policy
		d.Plans = policy.PlanNodes(capacity.NodesWanted{At: s.Now, Groups: groups,
			Unavailable: unavailable(cluster)})
		d.Findings = findings(cluster, policy, d.Plans)
	}
	known := cluster.Buffers
	if known == nil || known.Unread+known.Missing != "" {
		return d
	}
	pods := capacity.NodePods(d.Plans, groups)
	for i := range cluster.Groups {
		name := cluster.Groups[i].Name
		if pods[name] == 0 {
			continue
		}
		want := nodepool.Buffer{Name: nameOf(cluster.UID, name), Group: name, Pods: pods[name],
			Template: known.Templates[name]}
		if is := known.Of(name); is == nil || is.Name != want.Name || is.Pods != want.Pods || want.Template == "" ||
			is.Template != want.Template {
			d.change(cluster, nodepool.BufferChange{Buffer: want})
		}
	}
	for _, b := range known.List {
		if !b.Deleting && (pods[b.Group] == 0 || b.Name != nameOf(cluster.UID, b.Group)) {
			d.change(cluster, nodepool.BufferChange{Buffer: b, Remove: true})
		}
	}
	return d
}

// handBack removes all buffers of a RayCluster that is no longer managed, or that is suspended.
func handBack(cluster *nodepool.Cluster) []nodepool.BufferChange {
	var d NodesDecision
	if cluster.Buffers == nil || cluster.Buffers.Missing != "" {
		return nil
	}
	for _, b := range cluster.Buffers.List {
		if !b.Deleting {
			d.change(cluster, nodepool.BufferChange{Buffer: b, Remove: true})
		}
	}
	return d.Changes
}

// leftOver reports the buffers of a RayCluster that this process may not write to: their nodes cost money, and nothing
// changes them.
func leftOver(cluster *nodepool.Cluster) (all []raydemand.Finding) {
	if cluster.Buffers == nil {
		return nil
	}
	for _, b := range cluster.Buffers.List {
		all = append(all, raydemand.Finding{Code: capacity.FindingNodesLeft, Severity: raydemand.Warning,
			Object: fmt.Sprintf("CapacityBuffer %s/%s", cluster.Key.Namespace, b.Name), Seen: "group " + b.Group,
			Why: "Heliostat made it while it managed the RayCluster, which it does not now: the nodes stay, and cost " +
				"money",
			Fix: "delete it, or let Heliostat manage the RayCluster (annotation heliostat.dev/mode: managed)"})
	}
	return all
}

func (d *NodesDecision) change(cluster *nodepool.Cluster, change nodepool.BufferChange) {
	change.Cluster, change.UID = cluster.Key, cluster.UID
	d.Changes = append(d.Changes, change)
}

// nameOf returns the name of the buffer of a group. It is always the same, so that a process that did not see its own
// write makes no second one.
func nameOf(uid, group string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s", uid, group))
	return "heliostat-nodes-" + hex.EncodeToString(sum[:8])
}

// unavailable says why no node can be asked for.
func unavailable(cluster *nodepool.Cluster) string {
	switch {
	case cluster.Buffers == nil:
		return capacity.NodesOff
	case cluster.Buffers.Missing != "":
		return cluster.Buffers.Missing
	case cluster.Queue.Queued():
		return "Kueue admits the RayCluster's workers, and no quota covers nodes without workers"
	}
	return cluster.Buffers.Unread
}

// groupsOf returns the groups as package capacity knows them.
func groupsOf(s Seen) map[string]capacity.NodeGroup {
	groups := map[string]capacity.NodeGroup{}
	for i := range s.Snapshot.Groups {
		g := &s.Snapshot.Groups[i]
		spec, known := s.Cluster.Group(g.Name)
		if !known {
			continue
		}
		made := capacity.NodeGroup{Hosts: int64(max(g.NumOfHosts, 1)), Max: int64(g.Max),
			Wanted: int64(spec.Goal())}
		planned := func(p planner.GroupPlan) bool { return p.Name == g.Name }
		if at := slices.IndexFunc(s.Plan.Groups, planned); at >= 0 {
			made.Wanted = (int64(s.Plan.Groups[at].Desired) + made.Hosts - 1) / made.Hosts
		}
		switch {
		case spec.Broken:
			made.Closed = "the group cannot be planned"
		case spec.Suspended:
			made.Closed = "the group is suspended"
		}
		if room, known := s.Cluster.RoomFor(spec); known {
			made.Room = &room
		}
		if s.Cluster.Buffers != nil {
			if b := s.Cluster.Buffers.Of(g.Name); b != nil {
				made.Provided, made.Answer = b.Provided, b.Answer
			}
		}
		groups[g.Name] = made
	}
	return groups
}

// findings reports entries that can have no effect.
func findings(
	cluster *nodepool.Cluster, policy *capacity.Policy, plans []capacity.NodesPlan,
) (all []raydemand.Finding) {
	for i := range plans {
		row := &plans[i]
		if row.Code == capacity.NodesNoGroup {
			all = append(all, capacity.GroupUnknown(cluster.Policy.Source, row.Name, row.Group, capacity.NoNodes))
		}
	}
	why := unavailable(cluster)
	if why == "" || cluster.Buffers != nil && why == cluster.Buffers.Unread || len(policy.KeepWarmNodes) == 0 {
		return all
	}
	fix := capacity.NodesOn
	switch {
	case cluster.Buffers != nil && cluster.Buffers.Missing != "":
		fix = "let your node autoscaler serve CapacityBuffers (Karpenter: feature gate CapacityBuffer and its " +
			"CustomResourceDefinition; GKE: see docs/reference/capacity.md), and grant Heliostat its rights on them"
	case cluster.Buffers != nil:
		fix = "remove keepWarmNodes, or take the RayCluster out of its queue"
	}
	return append(all, capacity.NodesUnused(cluster.Policy.Source, why, fix))
}

// described says what a change does.
func described(change nodepool.BufferChange) string {
	if change.Remove {
		return "remove CapacityBuffer " + change.Buffer.Name
	}
	return fmt.Sprintf("CapacityBuffer %s: nodes for %d pods of group %s", change.Buffer.Name, change.Buffer.Pods,
		change.Buffer.Group)
}
