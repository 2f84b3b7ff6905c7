package engine

import (
	"iter"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// measurementsOf returns the measurements of a decision.
func measurementsOf(d *addon.Decision) telemetry.Cycle {
	c := telemetry.Cycle{
		Namespace: d.Cluster.Namespace, Cluster: d.Cluster.Name,
		At: d.At, Failed: d.Err != "", RayFailed: rayFailed(d), Truncated: truncated(d), Reverted: d.Reverted,
		SeenToPatched: d.SeenToPatched,
		State:         func() telemetry.State { return stateOf(d, time.Now()) },
	}
	if d.ObserveFailed {
		return c
	}
	c.Took, c.Planned, c.Waited = d.Took, d.Planned, d.Waited
	for _, a := range d.Actions {
		c.Actions = append(c.Actions, actionOf(d, a))
	}
	if d.RayErr == "" {
		c.IdleGPUs, c.Pods, c.Moments = unusedGPUs(d), podsOf(d), momentsOf(d)
	}
	return c
}

// truncated reports whether the reading of Ray lacks some of the demand.
func truncated(d *addon.Decision) bool {
	return !d.ObserveFailed && slices.ContainsFunc(d.Findings, func(f raydemand.Finding) bool {
		return f.Code == observe.FindingTruncated
	})
}

// rayFailed reports whether the GCS was called in this cycle and did not answer.
func rayFailed(d *addon.Decision) bool {
	return d.RayErr != "" && d.Mode != nodepool.Off && !d.ObserveFailed
}

// actionOf returns the measurements of an action, with its name and reason if it succeeded.
func actionOf(d *addon.Decision, a addon.Action) telemetry.Action {
	measured := telemetry.Action{Kind: a.Kind, Result: a.Result, At: a.At, Took: max(a.Took, time.Duration(0))}
	if a.Result != addon.ResultOK || a.ScalesNothing() {
		return measured
	}
	measured.Decision, measured.Reason = actionName(a), reasonOf(d, a)
	if a.Kind == addon.ActionPatch {
		measured.Group, measured.Pods = a.Group, (a.To-a.From)*hostsOf(d, a.Group)
	}
	if measured.Pods > 0 {
		measured.Grown = a.Group
	}
	return measured
}

// hostsOf returns the number of pods in a replica of a group.
func hostsOf(d *addon.Decision, group string) int {
	g, _ := d.Kube.Group(group)
	if g == nil {
		return 1
	}
	return max(1, g.NumOfHosts)
}

// reasonOf returns the code of the reason for an action: why its first pod leaves, otherwise why the group has its
// size.
func reasonOf(d *addon.Decision, a addon.Action) string {
	if a.Reason != "" {
		return a.Reason
	}
	if a.Kind == addon.ActionSync {
		return "num_gpus"
	}
	if a.Kind == addon.ActionIdle {
		return "idle_cluster"
	}
	for _, t := range d.Plan.Terminate {
		if slices.Contains(a.Pods, t.Pod) {
			return t.Reason
		}
	}
	for _, g := range d.Plan.Groups {
		if g.Name == a.Group && len(g.Reasons) > 0 {
			return g.Reasons[0].Code
		}
	}
	return "none"
}

// alive reports whether a node has joined Ray and is not leaving.
func alive(n *planner.Node) bool { return n.State == planner.Running || n.State == planner.Idle }

// unusedGPUs counts the GPUs that are free on workers that have joined Ray, by why they are unused.
func unusedGPUs(d *addon.Decision) map[string]float64 {
	unused := map[string]float64{}
	for cause, amount := range planner.UnusedGPUs(d.Snapshot, d.Plan) {
		unused[cause] = amount.Float()
	}
	return unused
}

// podsOf lists the starting pods and those with a live Ray node. It omits those that leave.
func podsOf(d *addon.Decision) iter.Seq[telemetry.Pod] {
	return func(yield func(telemetry.Pod) bool) {
		for i := range d.Snapshot.Nodes {
			n := &d.Snapshot.Nodes[i]
			if n.Expected || n.State == planner.Leaving {
				continue
			}
			if !yield(telemetry.Pod{Name: n.Pod, Group: n.Group, Alive: alive(n)}) {
				return
			}
		}
	}
}

// momentsOf looks up pods by name. It builds its index lazily, because most cycles look up none.
func momentsOf(d *addon.Decision) func(string) (created, scheduled time.Time) {
	var workers map[string]*nodepool.Worker
	return func(pod string) (created, scheduled time.Time) {
		if workers == nil {
			pods := d.Pods.List()
			workers = make(map[string]*nodepool.Worker, len(pods))
			for i := range pods {
				workers[pods[i].Pod] = &pods[i]
			}
		}
		if w := workers[pod]; w != nil {
			return w.CreatedAt, w.ScheduledAt
		}
		return time.Time{}, time.Time{}
	}
}
