package telemetry

import (
	"slices"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Notable reports whether a cycle changed something or failed.
func Notable(d *addon.Decision) bool {
	return len(d.Actions) > 0 || d.Err != "" || rayFailed(d)
}

// rayFailed reports whether the GCS was called in this cycle and did not answer.
func rayFailed(d *addon.Decision) bool {
	return d.RayErr != "" && d.Mode != nodepool.Off && !d.ObserveFailed
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

// grew reports whether an action is a patch that made a group larger.
func grew(a addon.Action) bool {
	return a.Kind == addon.ActionPatch && a.Result == addon.ResultOK && a.To > a.From
}

// alive reports whether a node has joined Ray and is not leaving.
func alive(n *planner.Node) bool { return n.State == planner.Running || n.State == planner.Idle }
