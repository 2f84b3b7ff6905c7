package planner

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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

// PlainRequest is, as Question.Request, what calls of request_resources ask for that have no owner: the one made over REST and
// the one made from within Ray.
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
	return fmt.Sprintf("%s: %q: want %s", e.Kind, e.Name, oneOfNames(e.Known))
}

// oneOfNames lists the first of the names that would do.
func oneOfNames(names []string) string {
	const most = 8
	switch {
	case len(names) == 0:
		return "one that the snapshot has; it has none"
	case len(names) > most:
		return fmt.Sprintf("one that the snapshot has: %s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return "one that the snapshot has: " + strings.Join(names, ", ")
}

// ErrBrokenOff says that nobody waited for an answer until it was there.
var ErrBrokenOff = errors.New("broken off before the answer was complete")

// Explain plans the snapshot and answers one question about the plan. It gives up soon after stop is closed, with ErrBrokenOff; a nil stop never ends
// it. It fails with ErrQuestion, and with an *UnknownError.
func Explain(stop <-chan struct{}, s Snapshot, policy Policy, q Question) (e Explanation, err error) {
	if !unlessBrokenOff(func() { e, err = asking{policy, stop}.answer(s, q) }) {
		return Explanation{}, ErrBrokenOff
	}
	return e, err
}

func (a asking) answer(s Snapshot, q Question) (Explanation, error) {
	asked := 0
	for _, set := range []bool{q.Demand != nil, q.AskedGang != nil, q.Group != "", q.Pod != "", q.Gang != "", q.Request != ""} {
		if set {
			asked++
		}
	}
	if asked != 1 {
		return Explanation{}, ErrQuestion
	}
	if q.Demand != nil {
		return cutToMost(a.demand(s, *q.Demand)), nil
	}
	if q.AskedGang != nil {
		return cutToMost(a.gangLike(s, *q.AskedGang)), nil
	}
	about := q.about(&s)
	e, known := a.explain(s, about)
	if !known {
		about.Known = q.Known(&s)
		return Explanation{}, &about
	}
	return cutToMost(e), nil
}

// explain answers a question by name. It reports false when the snapshot has nothing of that name.
func (a asking) explain(s Snapshot, about UnknownError) (Explanation, bool) {
	switch about.Kind {
	case "group":
		return a.group(s, about.Name)
	case "pod":
		return a.pod(s, about.Name)
	case "gang":
		return a.gang(s, about.Name)
	}
	return a.request(s, about.Name)
}

// mostDetails bounds the details of an answer: thousands of shapes times a hundred groups are read by nobody.
const mostDetails = 1000

func cutToMost(e Explanation) Explanation {
	if n := len(e.Details); n > mostDetails {
		e.Details = e.Details[:mostDetails]
		e.Message += fmt.Sprintf("; told below of the first %d of %d", mostDetails, n)
	}
	return e
}

// Known are the names, sorted, that a snapshot has of what a question names, be it a group, a pod, a gang or a request.
func (q Question) Known(s *Snapshot) []string { return slices.Sorted(slices.Values(q.about(s).Known)) }

// about is what a question names, with all names of its kind that a snapshot has.
func (q Question) about(s *Snapshot) UnknownError {
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

// gang explains what becomes of one placement group, and what each group has to do with each of its bundles. It reports
// false when no gang of that id waits in the snapshot.
func (a asking) gang(s Snapshot, id string) (Explanation, bool) {
	p, given, out := a.decide(&s)
	at := slices.IndexFunc(p.gangs, func(g *gang) bool { return g.ID == id })
	if at < 0 {
		return Explanation{}, false
	}
	return p.explainGang(p.gangs[at], given, &out), true
}

func (r *reporter) explainGang(g *gang, given []int64, out *outcome) Explanation {
	unmet := r.unmetReasons(given, out).gangs[g.number]
	summary := gangSummary(g, fatesIn(out), unmet)
	e := Explanation{About: strings.TrimSpace("gang " + g.ID), Reason: Reason{summary.verdict(), r.tally(&summary)}, Details: []Detail{}}
	if unmet != nil {
		e.Message += ": " + unmet.Message
	}
	for k, o := range g.options {
		e.Details = append(e.Details, r.itemDetails(choiceOf(k, len(g.options)), o.items, given, out)...)
	}
	return e
}

// request explains what becomes of an owned request, or of what has no owner. It reports false when nothing is asked for by
// that name.
func (a asking) request(s Snapshot, name string) (Explanation, bool) {
	p, given, out := a.decide(&s)
	if at := slices.IndexFunc(s.OwnedRequests, func(o raydemand.Owned) bool { return o.ID == name }); at >= 0 {
		return p.explainOwned(&s.OwnedRequests[at], given, &out), true
	}
	if name != PlainRequest || len(s.Constraint)+len(s.KeptResources) == 0 {
		return Explanation{}, false
	}
	return p.explainPlain(given, &out), true
}

// explainOwned says what becomes of a request as its status does, and why each group serves its bundles or not.
func (r *reporter) explainOwned(owned *raydemand.Owned, given []int64, out *outcome) Explanation {
	e := Explanation{About: "request " + owned.ID, Details: []Detail{}}
	for _, row := range r.report(given, *out).Requests {
		if row.ID == owned.ID && !row.Plain {
			e.Reason = Reason{row.Reason.Code, fmt.Sprintf("%s: %d of %d bundles are served, %d wait: %s", row.State, row.Served, row.Asked, row.Waiting, row.Reason.Message)}
			for _, g := range row.Groups {
				e.Details = append(e.Details, Detail{"pods of group " + g.Name, Reason{FateServed, fmt.Sprintf("%d serve it, %d of them on their way", g.Pods, g.Waiting)}})
			}
		}
	}
	items := r.items(owned.Requests)
	for i, it := range items {
		for _, c := range r.claims {
			if at := slices.IndexFunc(c.items, func(planned *item) bool { return planned.key == it.key }); at >= 0 {
				items[i] = c.items[at] // what the plan made of it, together with equal bundles of others
			}
		}
	}
	e.Details = append(e.Details, r.itemDetails("", items, given, out)...)
	return e
}

// explainPlain explains what has no owner; over REST it is planned together with what owners ask for.
func (r *reporter) explainPlain(given []int64, out *outcome) Explanation {
	fates, unmet := fatesIn(out), r.unmetReasons(given, out)
	var all DemandSummary
	var why []string
	e := Explanation{About: "request " + PlainRequest, Details: []Detail{}}
	for i, c := range r.claims {
		left := out.leftOf(i, c)
		for k, it := range c.items {
			reason := reasonAt(unmet.claims[i], k)
			all.Join(summaryOf(KindRequestResources, it, fates[it], left[k], reason.Code))
			if reason.Message != "" {
				why = append(why, c.purpose+": "+reason.Message)
			}
		}
		e.Details = append(e.Details, r.itemDetails(c.purpose, c.items, given, out)...)
	}
	e.Code, e.Message = all.verdict(), r.tally(&all)
	if text := listed(why); text != "" {
		e.Message += ": " + text
	}
	return e
}

// itemDetails says of each group what it has to do with each item.
func (r *reporter) itemDetails(prefix string, items []*item, given []int64, out *outcome) []Detail {
	var details []Detail
	for _, it := range items {
		about := strings.TrimPrefix(prefix+", "+counted(it), ", ")
		for i := range r.groups {
			details = append(details, Detail{about + ": group " + r.groups[i].Name, r.groupVerdict(i, it, given, out)})
		}
	}
	return details
}
