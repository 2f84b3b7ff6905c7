package rig

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Stage is one step in the life of demand and of the worker that serves it.
type Stage string

// The stages, in the order in which one worker passes them.
const (
	DemandSeen   Stage = "demand seen"    // the GCS reports it as pending
	GroupPatched Stage = "group patched"  // replicas of the RayCluster's group have changed
	PodCreated   Stage = "pod created"    // the operator has made the pod
	Scheduled    Stage = "scheduled"      // the scheduler has bound it to a node
	NodeAlive    Stage = "Ray node alive" // the GCS lists its Ray node
	WorkRan      Stage = "work ran"       // a task, an actor or a placement group has its place on the pod and runs
	NodeIdle     Stage = "idle"           // the GCS reports the Ray node as idle
	NodeBusy     Stage = "busy"           // the GCS reports the Ray node as running work
	Drained      Stage = "drained"        // the GCS reports the Ray node as draining or dead
	PodStopping  Stage = "pod stopping"   // the operator has deleted the pod, which may still end its processes
	PodGone      Stage = "pod gone"       // the pod is gone
	DemandGone   Stage = "demand gone"    // the GCS reports nothing pending any more
)

// Fact is an observation about one RayCluster.
type Fact struct {
	At    time.Time
	Stage Stage
	// Group and Pod are empty if the stage has none.
	Group, Pod string
	// Node is the ID of the Ray node in hex, of facts from the GCS.
	Node string
	// From and To are the replicas before and after, of GroupPatched.
	From, To int64
	// Detail is further text for people.
	Detail string
}

// Journal collects facts in the order in which they arrive. Use NewJournal to make one.
type Journal struct {
	report func(Fact)

	mu      sync.Mutex // guards facts and changed
	facts   []Fact
	changed chan struct{} // closed and replaced whenever a fact is added
}

// NewJournal returns an empty journal. It calls report, which may be nil, with every fact, one at a time.
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
	close(j.changed)
	j.changed = make(chan struct{})
	j.report(f)
}

// Facts returns all facts so far.
func (j *Journal) Facts() []Fact {
	facts, _ := j.read()
	return facts
}

func (j *Journal) read() ([]Fact, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.facts[:len(j.facts):len(j.facts)], j.changed
}

// Wait returns when done returns true for the facts so far. The error of a wait that ends early contains what.
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

// OfPod returns when the pod first reached the stage.
func OfPod(facts []Fact, pod string, stage Stage) (time.Time, bool) {
	f, ok := First(facts, func(f Fact) bool { return f.Pod == pod && f.Stage == stage })
	return f.At, ok
}

// Pods returns the pods of a group in the order of their creation; of all groups when group is empty.
func Pods(facts []Fact, group string) []string {
	var pods []string
	for _, f := range facts {
		if f.Stage == PodCreated && (group == "" || f.Group == group) {
			pods = append(pods, f.Pod)
		}
	}
	return pods
}

// Living returns the pods that were created and are not gone, in the order of their creation.
func Living(facts []Fact, group string) []string {
	var living []string
	for _, pod := range Pods(facts, group) {
		if _, gone := OfPod(facts, pod, PodGone); !gone {
			living = append(living, pod)
		}
	}
	return living
}
