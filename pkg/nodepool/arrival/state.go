// Package arrival says where a starting worker is, and when it will be ready: the stage that it has reached, and the
// times that other workers of its group, or on its pool, took from there. It must not know Kubernetes objects, Ray or
// the clock, and it decides nothing.
package arrival

import (
	"cmp"
	"slices"
	"time"
)

// State is where one starting worker is and when it is expected. Its JSON form is part of snapshots.
type State struct {
	Stage Stage `json:"stage"`
	// Message adds what holds it up, for example ImagePullBackOff.
	Message string `json:"message,omitempty"`
	// Since is when the stage began; zero if unknown.
	Since time.Time `json:"since,omitzero"`
	// ExpectedAt is when half of such workers have joined Ray, LateAt when nine in ten have. Both are zero if too few
	// have been seen, or if nothing says that a node comes.
	ExpectedAt time.Time `json:"expectedAt,omitzero"`
	LateAt     time.Time `json:"lateAt,omitzero"`
}

// Pod is what is known of one worker pod. Times are zero if unknown.
type Pod struct {
	UID string
	// Pool is the pool of its node.
	Pool string
	// CreatedAt is when the pod was created, ScheduledAt when it got a node, StartedAt when its Ray container started,
	// ReadyAt when it became ready without a restart of its container.
	CreatedAt, ScheduledAt, StartedAt, ReadyAt time.Time
	// Gated: a scheduling gate holds it back. Placed: it has a node. Running: its Ray container runs. Joined: it
	// has joined Ray.
	Gated, Placed, Running, Joined bool
	// Waits is why its Ray container does not run yet, in the kubelet's words.
	Waits string
	// PromisedAt is when a node autoscaler reported that it adds a node for the pod, Refused its message if it cannot.
	PromisedAt time.Time
	Refused    string
}

// Machines are machines of one stage that are on their way and have room for Pods of a group. Pods and machines are
// not tied: the scheduler binds whichever pod comes first (docs/reference/facts.md#karpenter-nodeclaims).
type Machines struct {
	Pods  int
	Stage Stage
	// AskedAt is when the node autoscaler asked for them, Since when they reached the stage.
	AskedAt, Since time.Time
	// Lacks is what a ready node still lacks.
	Lacks string
}

// Group is a worker group with its pods, the machines on their way for them, furthest first, and the names of the
// pools that may hold them.
type Group struct {
	Name     string
	Pods     []Pod
	Machines []Machines
	Pools    []string
}

// States returns the states of the group's pods; those that have joined Ray have none and are nil. The machines that
// are furthest on count for the pods that wait longest, because the scheduler tries these first.
func (g Group) States(times Times) []*State {
	states := make([]*State, len(g.Pods))
	for i, p := range g.progress() {
		if p != nil {
			p.expect(&g.Pods[i], times)
			states[i] = &p.State
		}
	}
	return states
}

// progress is the state of one pod, and since when it waits for its node; zero if it has one, or if none comes.
type progress struct {
	State
	askedAt time.Time
}

// progress returns the progress of the group's pods; nil for those that have joined Ray.
func (g Group) progress() []*progress {
	all := make([]*progress, len(g.Pods))
	var unplaced []int
	for i := range g.Pods {
		switch p := &g.Pods[i]; {
		case p.Joined:
		case !p.Placed && !p.Gated:
			unplaced = append(unplaced, i)
		default:
			all[i] = &progress{State: p.state()}
		}
	}
	slices.SortStableFunc(unplaced, func(a, b int) int {
		return cmp.Or(g.Pods[a].CreatedAt.Compare(g.Pods[b].CreatedAt), cmp.Compare(g.Pods[a].UID, g.Pods[b].UID))
	})
	for _, machines := range g.Machines {
		for n := min(machines.Pods, len(unplaced)); n > 0; n-- {
			all[unplaced[0]] = machines.progress(&g.Pods[unplaced[0]])
			unplaced = unplaced[1:]
		}
	}
	for _, i := range unplaced {
		all[i] = g.Pods[i].withoutMachine()
	}
	return all
}

// state returns the state of a pod that needs no machine.
func (p *Pod) state() State {
	switch {
	case p.Gated:
		return State{Stage: Gated, Since: p.CreatedAt}
	case p.Running:
		return State{Stage: JoiningRay, Since: p.StartedAt}
	case p.Waits == "ContainerCreating", p.Waits == "PodInitializing":
		return State{Stage: Starting, Since: p.ScheduledAt}
	case p.Waits != "":
		return State{Stage: Starting, Since: p.ScheduledAt, Message: p.Waits}
	}
	return State{Stage: Bound, Since: p.ScheduledAt}
}

// progress returns that of a pod for which one of the machines has room. A machine that was requested before the pod
// existed counts as requested then.
func (m *Machines) progress(p *Pod) *progress {
	return &progress{State{Stage: m.Stage, Since: m.Since, Message: m.Lacks}, later(m.AskedAt, p.CreatedAt)}
}

// withoutMachine returns the progress of a pod without a node for which no machine is known. What a node autoscaler
// reports about it is all there is.
func (p *Pod) withoutMachine() *progress {
	switch {
	case !p.PromisedAt.IsZero():
		return &progress{State{Stage: NodeRequested, Since: p.PromisedAt}, later(p.PromisedAt, p.CreatedAt)}
	case p.Refused != "":
		return &progress{State: State{Stage: WaitsForNode, Since: p.CreatedAt, Message: p.Refused}}
	}
	return &progress{State{Stage: WaitsForNode, Since: p.CreatedAt}, p.CreatedAt}
}

// expect sets when the pod is expected: its node after the time that nodes take, and then the worker after the time
// that workers with a node take. The quantiles of a sum are not the sums of quantiles: these tend to be a little early
// for the median and late for nine in ten.
func (p *progress) expect(pod *Pod, times Times) {
	switch {
	case !times.Join.Known():
	case pod.Placed && !pod.ScheduledAt.IsZero():
		p.ExpectedAt, p.LateAt = times.Join.After(pod.ScheduledAt)
	case !p.askedAt.IsZero() && times.Node.Known():
		middle, late := times.Node.After(p.askedAt)
		p.ExpectedAt, _ = times.Join.After(middle)
		_, p.LateAt = times.Join.After(late)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
