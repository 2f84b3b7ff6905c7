package telemetry

import (
	"iter"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Cycle is the measurable result of one cycle on one RayCluster.
type Cycle struct {
	Namespace, Cluster string
	// At is the start of the cycle and Took its duration. Parts of it are Planned, which the planner used, and Waited,
	// for which plans waited for large plans of other RayClusters. All are zero if the RayCluster could not be read.
	At                    time.Time
	Took, Planned, Waited time.Duration
	// Failed is true if the RayCluster could not be read or patched. RayFailed is true if its GCS did not respond.
	Failed, RayFailed bool
	// Truncated is true if the reading of Ray lacks some of the demand, because there is too much of it.
	Truncated bool
	// Reverted is true if another field manager has changed replicas since Heliostat wrote them.
	Reverted bool
	// SeenToPatched is zero unless this cycle patched growth.
	SeenToPatched time.Duration
	Actions       []Action
	// IdleGPUs counts the GPUs of living workers that no work uses, by cause: codes, so that they are few. Ignore it if
	// RayFailed is true.
	IdleGPUs map[string]float64
	// Pods are the pending workers and the living ones; nil if RayFailed is true.
	Pods iter.Seq[Pod]
	// Moments returns the time of a pod's creation and the time of its binding to a node; zero if unknown. It is called
	// only for pending pods.
	Moments func(pod string) (created, scheduled time.Time)
	// Decision has the state after this cycle. Only collections read it, so the cost of a cycle does not depend on the
	// size of the state. Nil if there is none.
	Decision *addon.Decision
	// Costs returns what the RayCluster has spent since this process began, in Currency. It is called only during
	// collections. It is nil if nobody adds that up.
	Costs    func() []ledger.Row
	Currency string
}

// Action is one action. Kind is patch, drain, report, config, sync or guard. Result is ok, refused, conflict or error.
type Action struct {
	Kind, Result string
	At           time.Time
	Took         time.Duration
	// Decision is a code for a successful action, and Reason is the code of its reason. Both are empty if there was no
	// decision.
	Decision, Reason string
	// Group is the worker group that a patch changed, and Pods is the number of added pods, negative if the group
	// shrank. Grown is the name of a group that grew, or empty.
	Group, Grown string
	Pods         int
}

// Pod is one worker pod. Alive is true if its Ray node is alive.
type Pod struct {
	Name, Group string
	Alive       bool
}

// CycleOf returns the measurements of a decision.
func CycleOf(d *addon.Decision) Cycle {
	c := Cycle{
		Namespace: d.Cluster.Namespace, Cluster: d.Cluster.Name,
		At: d.At, Failed: d.Err != "", RayFailed: rayFailed(d), Truncated: truncated(d), Reverted: d.Reverted,
		SeenToPatched: d.SeenToPatched, Decision: d,
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
func actionOf(d *addon.Decision, a addon.Action) Action {
	measured := Action{Kind: a.Kind, Result: a.Result, At: a.At, Took: max(a.Took, time.Duration(0))}
	if a.Result != addon.ResultOK || a.ScalesNothing() {
		return measured
	}
	measured.Decision, measured.Reason = a.Name(), reasonOf(d, a)
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
func podsOf(d *addon.Decision) iter.Seq[Pod] {
	return func(yield func(Pod) bool) {
		for i := range d.Snapshot.Nodes {
			n := &d.Snapshot.Nodes[i]
			if n.Expected || n.State == planner.Leaving {
				continue
			}
			if !yield(Pod{Name: n.Pod, Group: n.Group, Alive: alive(n)}) {
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

// Notable reports whether a cycle changed something or failed.
func Notable(d *addon.Decision) bool {
	return len(d.Actions) > 0 || d.Err != "" || rayFailed(d)
}

// ReportOf returns the span's contents for a decision of a cycle that lasted from begun to ended. If the RayCluster
// could not be read, the decision is that of an earlier cycle, and this one only observed.
func ReportOf(d *addon.Decision, begun, ended time.Time) CycleReport {
	t := CycleReport{
		Cycle:    CycleOf(d),
		At:       d.At,
		Observed: d.Observed,
		Planned:  d.Planned,
		Waited:   d.Waited,
		Mode:     string(d.Mode),
		Err:      d.Err,
	}
	if d.ObserveFailed {
		t.At, t.Observed, t.Planned, t.Waited = begun, ended.Sub(begun), 0, 0
		return t
	}
	t.Applied = max(0, d.Took-d.Observed-d.Waited-d.Planned)
	if t.Err == "" && rayFailed(d) {
		t.Err = d.RayErr
	}
	t.Actions = d.Actions
	for _, a := range d.Actions {
		t.Reasons = append(t.Reasons, reasonOf(d, a))
	}
	slices.Sort(t.Reasons)
	t.Reasons = slices.Compact(t.Reasons)
	return t
}
