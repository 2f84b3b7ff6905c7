package controller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// optIn returns how to let Heliostat manage a RayCluster that it does not manage because of why. obstacle is what would
// still prevent that with the annotation heliostat.dev/mode: managed.
func optIn(cluster *nodepool.Cluster, why, obstacle planner.Reason) *apiv1.OptIn {
	o := &apiv1.OptIn{Allow: allow(cluster.Key, why, obstacle), Changes: []apiv1.WouldChange{}}
	if obstacle.Code != "" {
		o.Obstacle = &obstacle
	}
	o.Autoscaler, o.Patch = autoscaler(cluster)
	return o
}

// autoscaler tells apart the forms of docs/running.md#in-tree-autoscaling-stays-on.
func autoscaler(c *nodepool.Cluster) (says, patch string) {
	live := c.Head.Sidecar == nodepool.RaySidecar || c.Head.Sidecar == nodepool.UnknownSidecar
	replaces := c.Owner.Kind == "RayService" || c.UpgradeStrategy == "Recreate"
	switch {
	case live && replaces:
		says = "the container autoscaler of the head pod may scale. With the patch it is Heliostat's, and the " +
			"RayCluster is replaced"
	case live:
		says = "the container autoscaler of the head pod may scale. With the patch it is Heliostat's; the head " +
			"restarts, which ends its jobs"
	case c.InTreeAutoscaling && c.Head.Sidecar == nodepool.OurSidecar:
		return "in-tree autoscaling is on, with Heliostat's image, which leaves a managed RayCluster to the fleet", ""
	case c.InTreeAutoscaling:
		return "in-tree autoscaling is on, and no container of the head pod scales", ""
	case c.Queue.Refusal() != "" || slices.ContainsFunc(c.Groups,
		func(g nodepool.WorkerGroup) bool { return g.Suspended }):
		return "in-tree autoscaling is off, so lower numbers may end busy workers. It cannot be turned on now: Kueue " +
			"wants an elastic RayCluster for it, and the operator none with a suspended group", ""
	default:
		says = "in-tree autoscaling is off, so lower numbers may end busy workers. The patch turns it on, and "
		if replaces {
			says += "replaces the RayCluster"
		} else {
			says += "the head keeps running"
		}
	}
	object, spec := "raycluster "+c.Key.Name, "%s"
	if c.Owner.Kind == "RayService" {
		object, spec = "rayservice "+c.Owner.Name, `{"rayClusterConfig":%s}`
	}
	// The shell refuses the command as long as the variable is not set.
	patch = fmt.Sprintf(`kubectl patch -n %s %s --type=merge -p '{"spec":`+spec+"}'", c.Key.Namespace, object,
		`{"enableInTreeAutoscaling":true,"autoscalerOptions":{"image":"'"${HELIOSTAT_IMAGE:?}"'"}}`)
	if live && !replaces {
		patch += " && kubectl delete pod -n " + c.Key.Namespace + " " + c.Head.Pod
	}
	return says + "; HELIOSTAT_IMAGE is the image of your Heliostat", patch
}

// addChanges adds what Heliostat would do with the plan.
func addChanges(
	o *apiv1.OptIn, snapshot planner.Snapshot, plan planner.Plan, numGPUs map[string]addon.GroupNumGPUs,
) {
	o.Waiting = waitingSentence(plan)
	o.Changes = slices.Concat(o.Changes, wouldLaunch(plan), wouldStop(plan), wouldWrite(numGPUs),
		wouldShrink(snapshot, plan))
}

// allow returns how to let Heliostat scale the RayCluster. An obstacle says itself how to remove it.
func allow(key nodepool.ClusterKey, why, obstacle planner.Reason) string {
	switch code := why.Code; {
	case code != addon.AsAsked && code != addon.NotAsked:
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

func wouldLaunch(plan planner.Plan) []apiv1.WouldChange {
	var changes []apiv1.WouldChange
	for _, g := range plan.Groups {
		if n := plan.Launch[g.Name]; n > 0 {
			change := apiv1.WouldChange{Action: "launch", Group: g.Name, Pods: []string{}, Count: fmt.Sprint(n)}
			if len(g.Reasons) > 0 {
				change.Reason = g.Reasons[0].Message
			}
			changes = append(changes, change)
		}
	}
	return changes
}

// wouldStop groups the pods of a group that would be stopped for the same reason.
func wouldStop(plan planner.Plan) []apiv1.WouldChange {
	var changes []apiv1.WouldChange
	at := map[[2]string]int{}
	for _, t := range plan.Terminate {
		kind := [2]string{t.Group, t.Reason}
		i, known := at[kind]
		if !known {
			i, at[kind] = len(changes), len(changes)
			changes = append(changes,
				apiv1.WouldChange{Action: "stop", Group: t.Group, Reason: cmp.Or(t.Message, t.Reason) + t.Parting()})
		}
		changes[i].Pods = append(changes[i].Pods, t.Pod)
		changes[i].Count = fmt.Sprint(len(changes[i].Pods))
	}
	return changes
}

func wouldWrite(numGPUs map[string]addon.GroupNumGPUs) []apiv1.WouldChange {
	var changes []apiv1.WouldChange
	for _, group := range slices.Sorted(maps.Keys(numGPUs)) {
		if n := numGPUs[group]; n.IfManaged {
			changes = append(changes, apiv1.WouldChange{Action: "numGpus", Group: group, Pods: []string{},
				Count:  n.Reported.String(),
				Reason: "annotation heliostat.dev/num-gpus-sync: " + string(n.Mode) + "; " + n.Sources.Reported})
		}
	}
	return changes
}

// wouldShrink lists groups that have more workers than their minimum; KubeRay's minimum is 0 if none is set.
func wouldShrink(snapshot planner.Snapshot, plan planner.Plan) []apiv1.WouldChange {
	timeouts := map[string]*float64{}
	for _, g := range snapshot.Groups {
		timeouts[g.Name] = cmp.Or(g.IdleTimeoutSeconds, snapshot.IdleTimeoutSeconds)
	}
	var changes []apiv1.WouldChange
	for _, g := range plan.Groups {
		if timeout := timeouts[g.Name]; timeout != nil && g.Current > g.Min {
			changes = append(changes, apiv1.WouldChange{
				Action: "shrink",
				Group:  g.Name,
				Pods:   []string{},
				Count:  fmt.Sprint(g.Current - g.Min),
				Reason: fmt.Sprintf("workers that are idle for %s are removed, down to minReplicas: %d of %d pods",
					planner.Span(*timeout), g.Min, g.Current),
			})
		}
	}
	return changes
}
