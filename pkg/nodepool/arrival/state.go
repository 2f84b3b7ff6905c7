// Package arrival says which stage a starting worker has reached. It must not know Kubernetes objects, Ray or the
// clock, and it decides nothing.
package arrival

import (
	"cmp"
	"slices"
	"time"
)

// State is where one starting worker is. Its JSON form is part of snapshots.
type State struct {
	Stage Stage `json:"stage"`
	// Message adds what holds it up, for example ImagePullBackOff.
	Message string `json:"message,omitempty"`
	// Since is when the stage began; zero if unknown.
	Since time.Time `json:"since,omitzero"`
}

// Pod is what is known of one worker pod. Times are zero if unknown.
type Pod struct {
	UID string
	// CreatedAt is when the pod was created, ScheduledAt when it got a node, StartedAt when its Ray container started.
	CreatedAt, ScheduledAt, StartedAt time.Time
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
	// Since is when they reached the stage.
	Since time.Time
	// Lacks is what a ready node still lacks.
	Lacks string
}

// States returns the states of the pods of a worker group; those that have joined Ray have none and are nil. machines
// are those on their way for the group, furthest first: they count for the pods that wait longest, because the
// scheduler tries these first.
func States(pods []Pod, machines []Machines) []*State {
	states := make([]*State, len(pods))
	var unplaced []int
	for i := range pods {
		switch p := &pods[i]; {
		case p.Joined:
		case !p.Placed && !p.Gated:
			unplaced = append(unplaced, i)
		default:
			states[i] = p.withoutMachine()
		}
	}
	slices.SortStableFunc(unplaced, func(a, b int) int {
		return cmp.Or(pods[a].CreatedAt.Compare(pods[b].CreatedAt), cmp.Compare(pods[a].UID, pods[b].UID))
	})
	for _, m := range machines {
		for n := min(m.Pods, len(unplaced)); n > 0; n-- {
			states[unplaced[0]] = &State{Stage: m.Stage, Since: m.Since, Message: m.Lacks}
			unplaced = unplaced[1:]
		}
	}
	for _, i := range unplaced {
		states[i] = pods[i].withoutMachine()
	}
	return states
}

// withoutMachine returns the state of a pod that has a node, or for which no machine is known. What a node autoscaler
// reports about the latter is all there is.
func (p *Pod) withoutMachine() *State {
	switch {
	case p.Gated:
		return &State{Stage: Gated, Since: p.CreatedAt}
	case p.Running:
		return &State{Stage: JoiningRay, Since: p.StartedAt}
	case p.Waits == "ContainerCreating", p.Waits == "PodInitializing":
		return &State{Stage: Starting, Since: p.ScheduledAt}
	case p.Waits != "":
		return &State{Stage: Starting, Since: p.ScheduledAt, Message: p.Waits}
	case p.Placed:
		return &State{Stage: Bound, Since: p.ScheduledAt}
	case !p.PromisedAt.IsZero():
		return &State{Stage: NodeRequested, Since: p.PromisedAt}
	}
	return &State{Stage: WaitsForNode, Since: p.CreatedAt, Message: p.Refused}
}
