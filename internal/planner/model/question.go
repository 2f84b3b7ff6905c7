package model

import (
	"errors"
	"fmt"
	"slices"

	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Question is what Explain is asked; exactly one field is set.
type Question struct {
	// Demand is what a task or bundle asks for, Group a worker group's name, Pod a pod's, Gang a placement group's id.
	Demand           *raydemand.Request
	Group, Pod, Gang string
	// AskedGang is what a placement group asks for, whether one waits for it or not; its ID does not matter.
	AskedGang *raydemand.Gang
	// Request is the id of an owned request, or PlainRequest.
	Request string
}

// PlainRequest is, as Question.Request, what calls of request_resources ask for that have no owner: the one made over
// REST and the one made from within Ray.
const PlainRequest = "request_resources"

// ErrQuestion says that a Question asks for nothing, or for several things.
var ErrQuestion = errors.New("exactly one thing is asked")

// UnknownError says that a snapshot has not what a Question asks for.
type UnknownError struct {
	// Kind is group, pod, gang or request.
	Kind, Name string
	// Known are the names that would do, sorted.
	Known []string
}

// Error names the kind, the name and the first of the names that would do.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("%s: %q: want %s", e.Kind, e.Name, phrase.OneOf(e.Known))
}

// ErrBrokenOff says that nobody waited for an answer until it was there.
var ErrBrokenOff = errors.New("broken off before the answer was complete")

// Known are the names, sorted, that a snapshot has of what a question names, be it a group, a pod, a gang or a request.
func (q Question) Known(s *Snapshot) []string { return slices.Sorted(slices.Values(q.About(s).Known)) }

// About is what a question names, with all names of its kind that a snapshot has.
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
			if s.Gangs[i].ID != "" {
				e.Known = append(e.Known, s.Gangs[i].ID)
			}
		}
		return e
	}
	return UnknownError{Kind: "request", Name: q.Request, Known: standingRequests(s)}
}

// standingRequests are the names that asking.request knows.
func standingRequests(s *Snapshot) []string {
	var names []string
	if len(s.Constraint)+len(s.KeptResources) > 0 {
		names = append(names, PlainRequest)
	}
	for i := range s.OwnedRequests {
		names = append(names, s.OwnedRequests[i].ID)
	}
	return names
}
