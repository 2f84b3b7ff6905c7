package capacity

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Unwritten is the code of a finding: a CapacityBuffer or its PodTemplate cannot be written.
const Unwritten = "warm-nodes-unwritten"

// keepNodes keeps nodes without workers ready, as the policy wants.
func (f *feature) keepNodes(ctx context.Context, o *addon.Cycle) {
	changes := f.nodeChanges(o)
	f.nodes.Round(ctx, f.loop, o, len(changes), func(at int) (addon.Action, error) {
		change := changes[at]
		message := fmt.Sprintf("CapacityBuffer %s: nodes for %d pods of group %s", change.Buffer.Name,
			change.Buffer.Pods, change.Buffer.Group)
		if change.Remove {
			message = "remove CapacityBuffer " + change.Buffer.Name
		}
		return addon.Action{Kind: addon.ActionNodes, Group: change.Buffer.Group, Message: message},
			f.writer.KeepNodes(ctx, change)
	})
	if err := f.nodes.Err; err != nil {
		o.Open = true
		o.Findings = append(o.Findings, raydemand.Finding{
			Code: Unwritten, Severity: raydemand.Error, Object: "RayCluster " + o.View.Cluster.Key.String(),
			Why: err.Error(),
			Fix: "grant Heliostat its rights on capacitybuffers and podtemplates in namespace " +
				o.View.Cluster.Key.Namespace + " (chart value warmNodes: true), or correct what the error says",
		})
	}
}

// nodeChanges says what becomes of the entries of the policy, and returns the changes of buffers that follow: those
// first that remove one, whose nodes cost money. While the buffers are unknown, nothing changes.
func (f *feature) nodeChanges(o *addon.Cycle) (changes []nodepool.BufferChange) {
	cluster, why := &o.View.Cluster, o.View.Why.Code
	pods := plan(o)
	switch {
	case o.View.Mode == nodepool.Managed:
		f.managed = true
	case why == addon.Suspended, f.managed && (why == addon.QueuedByKueue || why == addon.ElasticQueuedByKueue ||
		addon.HandedBack(cluster, o.View.Mode, o.View.Why)):
		clear(pods)
	default:
		o.Findings = append(o.Findings, leftOver(cluster)...)
		return nil
	}
	known := cluster.Buffers
	if o.Withheld || known == nil || known.Missing != "" || known.Unread != "" {
		return nil
	}
	change := func(b nodepool.Buffer, remove bool) {
		changes = append(changes,
			nodepool.BufferChange{Cluster: cluster.Key, UID: cluster.UID, Buffer: b, Remove: remove})
	}
	for _, b := range known.List {
		if !b.Deleting && (pods[b.Group] == 0 || b.Name != nameOf(cluster.UID, b.Group)) {
			change(b, true)
		}
	}
	for i := range cluster.Groups {
		name := cluster.Groups[i].Name
		want := nodepool.Buffer{Name: nameOf(cluster.UID, name), Group: name, Pods: pods[name],
			Template: known.Templates[name]}
		if is := known.Of(name); want.Pods > 0 && (is == nil || is.Name != want.Name || is.Pods != want.Pods ||
			want.Template == "" || is.Template != want.Template) {
			change(want, false)
		}
	}
	return changes
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

// nameOf returns the name of the buffer of a group. It is always the same, so that a process that did not see its own
// write makes no second one.
func nameOf(uid, group string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s", uid, group))
	return "heliostat-nodes-" + hex.EncodeToString(sum[:8])
}

// plan says what becomes of each entry with a count above 0, and reports entries that can have no effect. It returns by
// group for how many pods nodes are asked for: no more than the group may still launch, whatever the entries add up to.
// The first entries come first.
func plan(o *addon.Cycle) map[string]int64 {
	cluster, pods := &o.View.Cluster, map[string]int64{}
	if cluster.Policy == nil {
		return pods
	}
	unavailable, fix := unavailable(cluster)
	if fix != "" && len(cluster.Policy.KeepWarmNodes) > 0 {
		o.Findings = append(o.Findings, raydemand.Finding{Code: capacity.FindingNodesUnused,
			Severity: raydemand.Warning, Object: cluster.Policy.Source, Field: "keepWarmNodes",
			Why: unavailable + ", so " + capacity.NoNodes, Fix: fix})
	}
	for _, row := range cluster.Policy.WarmNodesAt(o.View.Now) {
		group, known := cluster.Group(row.Group)
		why := unavailable
		switch {
		case !known:
			row.Code, why = capacity.NodesNoGroup, fmt.Sprintf("there is no worker group %q", row.Group)
			o.Findings = append(o.Findings,
				capacity.GroupUnknown(cluster.Policy.Source, row.Name, row.Group, capacity.NoNodes))
		case unavailable != "":
			row.Code = capacity.NodesUnavailable
		case group.Broken:
			row.Code, why = capacity.NodesUnavailable, "the group cannot be planned"
		case group.Suspended:
			row.Code, why = capacity.NodesUnavailable, "the group is suspended"
		default:
			hosts, wanted := int64(max(group.NumOfHosts, 1)), int64(group.Goal())
			planned := func(p planner.GroupPlan) bool { return p.Name == row.Group }
			if at := slices.IndexFunc(o.Intent.Plan.Groups, planned); at >= 0 {
				wanted = (int64(o.Intent.Plan.Groups[at].Desired) + hosts - 1) / hosts
			}
			row.Asked = min(row.Count, max(int64(group.Max)-wanted-pods[row.Group]/hosts, 0))
			pods[row.Group] += row.Asked * hosts
			buffer := cmp.Or(cluster.Buffers.Of(row.Group), &nodepool.Buffer{})
			if row.Asked < row.Count {
				row.Code = capacity.NodesAtMax
				why = fmt.Sprintf("the group has or launches %d of at most %d workers", wanted, group.Max)
			} else if !buffer.Provided {
				row.Code, why = capacity.NodesWaiting, "the node autoscaler has not answered"
				if buffer.Answer != "" {
					why = "the node autoscaler says " + buffer.Answer
				}
			}
		}
		row.Message = fmt.Sprintf("nodes for %d of %d workers of group %s", row.Asked, row.Count, row.Group)
		if row.Schedule != "" {
			row.Message += ", by the schedule " + row.Schedule
		}
		if why != "" {
			row.Message += ": " + why
		}
		o.WarmNodes = append(o.WarmNodes, row)
	}
	return pods
}

// unavailable says why no node can be asked for, and what would change that unless it ends by itself; empty if nodes
// can be asked for.
func unavailable(cluster *nodepool.Cluster) (why, fix string) {
	switch {
	case cluster.Buffers == nil:
		return "this Heliostat asks for no nodes without workers",
			"serve with --warm-nodes (chart value warmNodes: true), or remove keepWarmNodes"
	case cluster.Buffers.Missing != "":
		return cluster.Buffers.Missing, "let your node autoscaler serve CapacityBuffers (Karpenter: feature gate " +
			"CapacityBuffer and its CustomResourceDefinition; GKE: see docs/reference/capacity.md), and grant " +
			"Heliostat its rights on them"
	case cluster.Queue.Queued():
		return "Kueue admits the RayCluster's workers, and no quota covers nodes without workers",
			"remove keepWarmNodes, or take the RayCluster out of its queue"
	}
	return cluster.Buffers.Unread, ""
}
