package addon

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// OptIn says what Heliostat would do with a RayCluster that it does not manage, and how to let it.
type OptIn struct {
	// Waiting is a sentence about the launches for waiting demand; empty if none waits that Heliostat could serve.
	Waiting string
	// Allow says how to let Heliostat manage the RayCluster.
	Allow string
	// Obstacle is what would still prevent that after annotating the RayCluster with heliostat.dev/mode: managed. Its
	// code is empty if nothing would.
	Obstacle planner.Reason
	// Autoscaler says what the head pod has for an autoscaler, and whether the head restarts with Patch: the command
	// that turns in-tree autoscaling on with Heliostat's image; empty if it is.
	Autoscaler, Patch string
	// Changes are what Heliostat would do at once, and later to groups above their minimum.
	Changes []WouldChange
}

// WouldChange is one thing that Heliostat would do.
type WouldChange struct {
	// Action is one of the constants below.
	Action, Group string
	// Count is the number of pods, or of GPUs that it writes; Pods are their names if known.
	Count  string
	Pods   []string
	Reason string
}

// The actions of a WouldChange.
const (
	WouldLaunch  = "launch"
	WouldStop    = "stop"
	WouldNumGPUs = "numGpus"
	// WouldShrink: idle workers leave after the group's idle timeout.
	WouldShrink = "shrink"
)

// NewOptIn returns how to let Heliostat manage a RayCluster that it does not manage because of why.
func NewOptIn(cluster *nodepool.Cluster, why, obstacle planner.Reason) *OptIn {
	o := &OptIn{Obstacle: obstacle, Allow: allow(cluster.Key, why, obstacle)}
	o.Autoscaler, o.Patch = autoscaler(cluster)
	return o
}

// autoscaler tells apart the forms of docs/running.md#in-tree-autoscaling-stays-on.
func autoscaler(c *nodepool.Cluster) (says, patch string) {
	live := c.Head.Sidecar == nodepool.RaySidecar || c.Head.Sidecar == nodepool.UnknownSidecar
	switch {
	case live:
		says = "the container autoscaler of the head pod may scale. With the patch it is Heliostat's; the head " +
			"restarts, which ends its jobs"
	case c.InTreeAutoscaling && c.Head.Sidecar == nodepool.OurSidecar:
		return "in-tree autoscaling is on, with Heliostat's image, which leaves a managed RayCluster to the fleet", ""
	case c.InTreeAutoscaling:
		return "in-tree autoscaling is on, and no container of the head pod scales", ""
	default:
		says = "in-tree autoscaling is off, so lower numbers may end busy workers. The patch turns it on, and "
		if c.Owner.Kind == "RayService" || c.UpgradeStrategy == "Recreate" {
			says += "replaces the RayCluster"
		} else {
			says += "the head keeps running"
		}
	}
	object, spec := "raycluster "+c.Key.Name, "%s"
	if c.Owner.Kind == "RayService" {
		object, spec = "rayservice "+c.Owner.Name, `{"rayClusterConfig":%s}`
	}
	patch = fmt.Sprintf(`kubectl patch -n %s %s --type=merge -p '{"spec":`+spec+"}'", c.Key.Namespace, object,
		`{"enableInTreeAutoscaling":true,"autoscalerOptions":{"image":"registry.example/heliostat:0.1.0"}}`)
	if live {
		patch += " && kubectl delete pod -n " + c.Key.Namespace + " " + c.Head.Pod
	}
	return says + "; it needs the image of your Heliostat", patch
}

// Suppose adds what Heliostat would do with the plan.
func (o *OptIn) Suppose(snapshot planner.Snapshot, plan planner.Plan, numGPUs map[string]GroupNumGPUs) {
	o.Waiting = waitingSentence(plan)
	o.Changes = slices.Concat(wouldLaunch(plan), wouldStop(plan), wouldWrite(numGPUs), wouldShrink(snapshot, plan))
}

// allow returns how to let Heliostat scale the RayCluster. An obstacle says itself how to remove it.
func allow(key nodepool.ClusterKey, why, obstacle planner.Reason) string {
	switch code := why.Code; {
	case code != AsAsked && code != NotAsked:
		return why.Message
	case obstacle.Code != "":
		return "`autoscaler manage " + key.String() + "` is not enough: " + obstacle.Message
	}
	return fmt.Sprintf(
		"to let Heliostat scale it: `autoscaler manage %s`, or annotate it, or Namespace %s, with "+
			"heliostat.dev/mode: managed",
		key,
		key.Namespace,
	)
}

// mostWaitingGroups bounds the groups that the sentence names.
const mostWaitingGroups = 3

// waitingSentence returns what would be launched for waiting demand.
func waitingSentence(plan planner.Plan) string {
	if !slices.ContainsFunc(plan.Summary, func(d planner.DemandSummary) bool { return d.Launching > 0 }) {
		return ""
	}
	var parts []string
	for _, change := range wouldLaunch(plan) {
		parts = append(parts, fmt.Sprintf("%s × %s", change.Count, change.Group))
	}
	if more := len(parts) - mostWaitingGroups; more > 0 {
		parts = append(parts[:mostWaitingGroups], fmt.Sprintf("pods of %d more groups", more))
	}
	return "demand is waiting, and Heliostat would launch " + strings.Join(parts, ", ")
}

func wouldLaunch(plan planner.Plan) []WouldChange {
	var changes []WouldChange
	for _, g := range plan.Groups {
		if n := plan.Launch[g.Name]; n > 0 {
			var reason string
			if len(g.Reasons) > 0 {
				reason = g.Reasons[0].Message
			}
			changes = append(changes,
				WouldChange{Action: WouldLaunch, Group: g.Name, Count: fmt.Sprint(n), Reason: reason})
		}
	}
	return changes
}

// wouldStop groups the pods of a group that would be stopped for the same reason.
func wouldStop(plan planner.Plan) []WouldChange {
	var changes []WouldChange
	at := map[[2]string]int{}
	for _, t := range plan.Terminate {
		kind := [2]string{t.Group, t.Reason}
		i, known := at[kind]
		if !known {
			i, at[kind] = len(changes), len(changes)
			changes = append(changes,
				WouldChange{Action: WouldStop, Group: t.Group, Reason: cmp.Or(t.Message, t.Reason) + t.Parting()})
		}
		changes[i].Pods = append(changes[i].Pods, t.Pod)
		changes[i].Count = fmt.Sprint(len(changes[i].Pods))
	}
	return changes
}

func wouldWrite(numGPUs map[string]GroupNumGPUs) []WouldChange {
	var changes []WouldChange
	for _, group := range slices.Sorted(maps.Keys(numGPUs)) {
		if n := numGPUs[group]; n.IfManaged {
			changes = append(changes, WouldChange{Action: WouldNumGPUs, Group: group, Count: n.Reported.String(),
				Reason: "annotation heliostat.dev/num-gpus-sync: " + string(n.Mode) + "; " + n.Sources.Reported})
		}
	}
	return changes
}

// wouldShrink lists groups that have more workers than their minimum; KubeRay's minimum is 0 if none is set.
func wouldShrink(snapshot planner.Snapshot, plan planner.Plan) []WouldChange {
	timeouts := map[string]*float64{}
	for _, g := range snapshot.Groups {
		timeouts[g.Name] = cmp.Or(g.IdleTimeoutSeconds, snapshot.IdleTimeoutSeconds)
	}
	var changes []WouldChange
	for _, g := range plan.Groups {
		if timeout := timeouts[g.Name]; timeout != nil && g.Current > g.Min {
			changes = append(changes, WouldChange{
				Action: WouldShrink,
				Group:  g.Name,
				Count:  fmt.Sprint(g.Current - g.Min),
				Reason: fmt.Sprintf("workers that are idle for %s are removed, down to minReplicas: %d of %d pods",
					planner.Span(*timeout), g.Min, g.Current),
			})
		}
	}
	return changes
}
