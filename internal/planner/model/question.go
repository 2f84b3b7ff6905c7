package model

import (
	"errors"
	"fmt"
	"slices"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Question is a question for Explain. Exactly one field is set.
type Question struct {
	// Demand is the request of a task or bundle. Group is the name of a worker group, Pod the name of a pod, Gang the
	// ID of a placement group.
	Demand           *raydemand.Request
	Group, Pod, Gang string
	// AskedGang is the request of a placement group, whether one is waiting for it or not. Its ID does not matter.
	AskedGang *raydemand.Gang
	// Request is the ID of an owned request, or PlainRequest.
	Request string
}

// PlainRequest is the Question.Request for calls of request_resources without an owner, over REST and from within Ray.
const PlainRequest = "request_resources"

// ErrQuestion reports that a Question names nothing, or several things.
var ErrQuestion = errors.New("want a question about exactly one thing")

// UnknownError reports that a snapshot does not have the object of a Question.
type UnknownError struct {
	// Kind is group, pod, gang or request.
	Kind, Name string
	// Known lists the possible names, sorted.
	Known []string
}

// Error returns the kind, the name, and the first of the possible names.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("%s: %q: want %s", e.Kind, e.Name, OneOf(e.Known))
}

// Known returns the sorted names of a snapshot's objects of the question's kind: groups, pods, gangs or requests.
func (q Question) Known(s *Snapshot) []string { return slices.Sorted(slices.Values(q.About(s).Known)) }

// About returns the object of a question, with all names of its kind in a snapshot.
func (q Question) About(s *Snapshot) UnknownError {
	switch {
	case q.Group != "":
		e := UnknownError{Kind: "group", Name: q.Group}
		for i := range s.Groups {
			e.Known = append(e.Known, s.Groups[i].Name)
		}
		return e
	case q.Pod != "":
		e := UnknownError{Kind: "pod", Name: q.Pod}
		for i := range s.Nodes {
			e.Known = append(e.Known, s.Nodes[i].Pod)
		}
		return e
	case q.Gang != "":
		e := UnknownError{Kind: "gang", Name: q.Gang}
		for i := range s.Gangs {
			if s.Gangs[i].ID != "" && len(s.Gangs[i].Bundles) > 0 {
				e.Known = append(e.Known, s.Gangs[i].ID)
			}
		}
		return e
	}
	return UnknownError{Kind: "request", Name: q.Request, Known: requestNames(s)}
}

// requestNames lists the possible values of Question.Request.
func requestNames(s *Snapshot) []string {
	var names []string
	if len(s.Constraint)+len(s.KeptResources) > 0 {
		names = append(names, PlainRequest)
	}
	for i := range s.OwnedRequests {
		names = append(names, s.OwnedRequests[i].ID)
	}
	return names
}

// Explanation says what a plan does with one demand, group or pod, and why.
type Explanation struct {
	About string `json:"about"`
	Reason
	// Details cover each group, demand and pod that was considered.
	Details []Detail `json:"details"`
}

// Detail is one object that was considered.
type Detail struct {
	About string `json:"about"`
	Reason
}

// Add adds a detail.
func (e *Explanation) Add(about string, r Reason) { e.Details = append(e.Details, Detail{about, r}) }

// The disposition of demand, in addition to the codes of unmet demand.
const (
	DispositionServed    = "served"    // fits on running nodes
	DispositionWaiting   = "waiting"   // counts on pods that were requested earlier
	DispositionLaunching = "launching" // counts on pods that the plan launches
)

// The state of a pod, in addition to the codes of a termination.
const (
	PodBusy    = "busy"       // has work
	PodIdle    = "idle_stays" // is idle and stays for now
	PodPending = "on_the_way" // has not joined Ray yet
	PodLeaving = "leaving"    // is draining or being deleted
	PodGivenUp = "given_up"   // did not join in time and does not count
	PodRemoved = "group_gone" // its group is not in the snapshot
	PodHead    = "head"       // serves demand and is never stopped
	PodRoom    = "room"       // how many more bundles it has room for
)

// What keeps a pod busy that runs nothing, in addition to CodeHoldsObjects and CodeReserved.
const (
	PodArguments   = "awaits_arguments" // a task waits on it for its arguments
	PodUnexplained = "unexplained"      // Ray reports a cause that Heliostat does not know
)
