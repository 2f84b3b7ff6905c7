package rig

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"
)

// Stage is one step in the lifecycle of demand and of the worker that serves it.
type Stage string

// The stages, in the order in which a worker reaches them.
const (
	DemandSeen   Stage = "demand seen"    // the GCS reports pending demand
	GroupPatched Stage = "group patched"  // the replicas of the RayCluster's group changed
	PodCreated   Stage = "pod created"    // the operator created the pod
	Scheduled    Stage = "scheduled"      // the scheduler bound the pod to a node
	NodeAlive    Stage = "Ray node alive" // the GCS lists its Ray node
	WorkRan      Stage = "work ran"       // a task, actor or placement group runs on the pod
	NodeIdle     Stage = "idle"           // the GCS reports the Ray node as idle
	NodeBusy     Stage = "busy"           // the GCS reports the Ray node as running work
	Drained      Stage = "drained"        // the GCS reports the Ray node as draining or dead
	PodFailed    Stage = "pod failed"     // the pod's processes have ended by themselves
	Named        Stage = "named"          // the RayCluster's workersToDelete has the pod
	PodStopping  Stage = "pod stopping"   // the operator deleted the pod, whose processes may still run
	PodGone      Stage = "pod gone"       // the pod is gone
	DemandGone   Stage = "demand gone"    // the GCS reports no more pending demand
)

// The stages of a machine that Karpenter launches, and of the guard that keeps Karpenter from a pod.
const (
	MachineLaunched Stage = "machine launched" // the NodeClaim is launched
	MachineReady    Stage = "machine ready"    // the Node is Ready
	MachineLeaving  Stage = "machine leaving"  // the Node has Karpenter's taint, or the NodeClaim is deleted
	MachineGone     Stage = "machine gone"     // the NodeClaim is gone
	Guarded         Stage = "guarded"          // the pod has karpenter.sh/do-not-disrupt: "true"
	Unguarded       Stage = "unguarded"        // the pod has it no more
)

// Fact is an observation about one RayCluster.
type Fact struct {
	At time.Time
	// NotBefore is when the GCS got the last question whose answer did not show the fact yet: the fact is younger. Only
	// facts from the GCS set it.
	NotBefore time.Time
	Stage     Stage
	// Group and Pod are empty if they do not apply to the stage.
	Group, Pod string
	// Machine is the name of the NodeClaim of a machine.
	Machine string
	// Node is the hex ID of the Ray node. Only facts from the GCS set it.
	Node string
	// From and To are the replicas before and after a change. Only GroupPatched sets them.
	From, To int64
	// Detail is additional text for a person.
	Detail string
}

// Journal collects facts in the order in which they arrive. Use NewJournal to create one.
type Journal struct {
	report func(Fact)

	mu       sync.Mutex // guards the rest
	facts    []Fact
	replicas map[string]int64 // of each group, as last seen
	changed  chan struct{}    // closed and replaced whenever a fact is added or replicas is replaced
}

// NewJournal returns an empty journal. It calls report, which may be nil, with each fact, one at a time.
func NewJournal(report func(Fact)) *Journal {
	if report == nil {
		report = func(Fact) {}
	}
	return &Journal{report: report, changed: make(chan struct{})}
}

// Add adds a fact.
func (j *Journal) Add(f Fact) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.facts = append(j.facts, f)
	j.wake()
	j.report(f)
}

func (j *Journal) wake() {
	close(j.changed)
	j.changed = make(chan struct{})
}

func (j *Journal) setReplicas(replicas map[string]int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.replicas = replicas
	j.wake()
}

// WaitReplicas returns when the journal has seen that the groups have the replicas of want.
func (j *Journal) WaitReplicas(ctx context.Context, want map[string]int64) error {
	return j.Wait(ctx, fmt.Sprintf("replicas %v", want), func([]Fact) bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		return maps.Equal(j.replicas, want)
	})
}

// Facts returns all facts recorded so far.
func (j *Journal) Facts() []Fact {
	facts, _ := j.read()
	return facts
}

func (j *Journal) read() ([]Fact, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.facts[:len(j.facts):len(j.facts)], j.changed
}

// Wait returns when done returns true for the facts so far. If the wait ends early, its error contains what.
func (j *Journal) Wait(ctx context.Context, what string, done func([]Fact) bool) error {
	for {
		facts, changed := j.read()
		if done(facts) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
		}
	}
}

// First returns the first fact for which is returns true.
func First(facts []Fact, is func(Fact) bool) (Fact, bool) {
	for _, f := range facts {
		if is(f) {
			return f, true
		}
	}
	return Fact{}, false
}

// OfPod returns the time when the pod first reached the stage.
func OfPod(facts []Fact, pod string, stage Stage) (time.Time, bool) {
	f, ok := First(facts, func(f Fact) bool { return f.Pod == pod && f.Stage == stage })
	return f.At, ok
}

// StoppedUndrained returns the pods of a group that were stopped although Ray had not drained them. That is certain
// only if the GCS was asked after the stop was seen, and showed the node as not drained: an answer may be late. A pod
// that gave up has nothing to drain.
func StoppedUndrained(facts []Fact, group string) (pods []string) {
	for _, pod := range Pods(facts, group) {
		stopped, ok := OfPod(facts, pod, PodStopping)
		if !ok || GaveUp(facts, pod) {
			continue
		}
		drained, ok := First(facts, func(f Fact) bool { return f.Pod == pod && f.Stage == Drained })
		if !ok || drained.NotBefore.After(stopped) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// GaveUp reports whether a pod failed before the GCS listed its Ray node. On a busy machine, a raylet may do that.
func GaveUp(facts []Fact, pod string) bool {
	_, failed := OfPod(facts, pod, PodFailed)
	_, joined := First(facts, func(f Fact) bool { return f.Pod == pod && f.Node != "" })
	return failed && !joined
}

// Pods returns the pods of a group in the order of their creation. If group is empty, it returns the pods of all
// groups.
func Pods(facts []Fact, group string) []string {
	var pods []string
	for _, f := range facts {
		if f.Stage == PodCreated && (group == "" || f.Group == group) {
			pods = append(pods, f.Pod)
		}
	}
	return pods
}

// Living returns the pods that were created and still exist, in the order of their creation.
func Living(facts []Fact, group string) []string {
	var living []string
	for _, pod := range Pods(facts, group) {
		if _, gone := OfPod(facts, pod, PodGone); !gone {
			living = append(living, pod)
		}
	}
	return living
}
