package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// OwnedRequests tells owners what becomes of their requests.
type OwnedRequests interface {
	// Of lists the requests for a RayCluster, whether it is there or not.
	Of(key nodepool.ClusterKey) []nodepool.OwnedRequest
	// Tell writes the updates soon and waits for nothing. What cannot be written is dropped: it is found missing, and told again.
	Tell(updates []nodepool.OwnedUpdate)
}

// newsPause separates two writes of one request's status that differ in counts and sentences alone.
const newsPause = 5 * time.Second

// ownedNews remembers what was told of requests, by UID. It saves writes and repeated Events, and is ahead of what the objects say: a status is written
// after the cycle, and watches lag.
type ownedNews map[string]requestNews

type requestNews struct {
	// status is what was found last, at is when a status was last told; expired: an Event was recorded.
	status  nodepool.OwnedStatus
	at      time.Time
	expired bool
}

// of is a request with the status that was found of it last, the object's own where this process has found none.
func (n ownedNews) of(r *nodepool.OwnedRequest) nodepool.OwnedRequest {
	known := *r
	if status := n[r.UID].status; status.State != "" {
		known.Status = status
	}
	return known
}

// countedRequests are the requests of owners that hold now.
func countedRequests(cluster *nodepool.Cluster, news ownedNews, now time.Time) []raydemand.Owned {
	var owned []raydemand.Owned
	for i := range cluster.Owned {
		if r := &cluster.Owned[i]; r.Counts(cluster.UID, now) {
			made, known := r.Owned, news.of(r)
			made.SatisfiedSince = known.SatisfiedSince()
			owned = append(owned, made)
		}
	}
	return owned
}

// tellOwners tells every owner what becomes of his request, adopts objects that nobody owns, and lets those go whose lease has long been over.
// It does so in every mode that the RayCluster itself asks for: only scaling stops, and owners shall see that. While Ray does not answer nothing is
// known, and only leases run on.
func (c *Controller) tellOwners(ctx context.Context, r *record, o outcome) {
	v := &o.view
	if c.config.Owned == nil || c.config.ReadOnly || v.cluster.Deleting || c.byDefault(v) || len(v.cluster.Owned) == 0 {
		r.owned = nil
		return
	}
	plans := map[string]*planner.RequestPlan{}
	for i := range o.intent.plan.Requests {
		if plan := &o.intent.plan.Requests[i]; !plan.Plain && v.live() {
			plans[plan.ID] = plan
		}
	}
	news := ownedNews{}
	var updates []nodepool.OwnedUpdate
	for i := range v.cluster.Owned {
		request := &v.cluster.Owned[i]
		if request.Deleting || request.ClusterUID != "" && request.ClusterUID != v.cluster.UID {
			continue
		}
		told := r.owned[request.UID]
		if update, any := c.update(ctx, r, &told, v, request, plans[request.ID]); any {
			updates = append(updates, update)
		}
		news[request.UID] = told
	}
	r.owned = news
	if len(updates) > 0 {
		c.config.Owned.Tell(updates)
	}
}

// update is what is to be written to one request, if anything is.
func (c *Controller) update(ctx context.Context, r *record, told *requestNews, v *view, request *nodepool.OwnedRequest, plan *planner.RequestPlan) (nodepool.OwnedUpdate, bool) {
	u := nodepool.OwnedUpdate{Namespace: request.Cluster.Namespace, Name: request.ID, UID: request.UID, ResourceVersion: request.ResourceVersion}
	if request.ClusterUID == "" {
		u.Adopt = &nodepool.ClusterReference{Name: v.cluster.Key.Name, UID: v.cluster.UID}
	}
	told.expired = told.expired && request.Expired(v.now) // a renewed one may expire once more
	var status nodepool.OwnedStatus
	switch {
	case request.Unreadable != "":
		status = unreadable(request)
	case request.Expired(v.now):
		if goes := request.DeletionTime(); !goes.IsZero() && !v.now.Before(goes) {
			u.Delete = true
			return u, true
		}
		c.tellExpired(ctx, told, v, request)
		status = leaseOver(request)
	case request.Admission == nodepool.Refused:
		status = nodepool.OverMemory(request)
	case v.mode == nodepool.Managed && plan != nil:
		status = statusOf(plan, r.starts.expected(plan, v.now))
	case v.mode != nodepool.Managed && (plan != nil || v.mode == nodepool.Off):
		status = notScaled(plan, v)
	default:
		return u, u.Adopt != nil
	}
	known := r.owned.of(request)
	complete(&status, &known, v.now)
	told.status = status
	// What was found before may wait to be written still.
	again := !known.Status.SameOutcome(status)
	if again || !request.Status.SameOutcome(status) || !request.Status.Equal(status) && v.now.Sub(told.at) >= newsPause {
		told.at = v.now
		u.Status = &status
	}
	return u, u.Adopt != nil || u.Status != nil
}

// byDefault reports whether it is this process alone that does not manage the cluster. Another Heliostat may, and it is the one that writes to
// requests: what this one knows of a lease depends on its own clock and on how long it has run, and two minds would write against each other.
func (c *Controller) byDefault(v *view) bool {
	if v.mode == nodepool.Managed || v.cluster.Mode != "" || v.cluster.NamespaceMode != "" {
		return false
	}
	asked, _ := c.config.modes().Asked(v.cluster)
	return asked != nodepool.Managed
}

// notScaled is what a plan that is not carried out says of a request, nil where there is none: nothing is on its way.
func notScaled(plan *planner.RequestPlan, v *view) nodepool.OwnedStatus {
	if plan != nil && plan.State != raydemand.RequestWaiting {
		return statusOf(plan, time.Time{})
	}
	return nodepool.OwnedStatus{State: raydemand.RequestWaiting, Code: raydemand.CodeNotScaled,
		Message: "nothing is launched for it, because the RayCluster is not scaled now: " + v.why.Message}
}

func unreadable(request *nodepool.OwnedRequest) nodepool.OwnedStatus {
	return nodepool.OwnedStatus{State: raydemand.RequestImpossible, Code: raydemand.CodeUnreadable, Message: request.Unreadable}
}

func leaseOver(request *nodepool.OwnedRequest) nodepool.OwnedStatus {
	return nodepool.OwnedStatus{State: raydemand.RequestExpired, Code: raydemand.CodeLeaseOver,
		Message: fmt.Sprintf("its lease of %s was over at %s; it does not count until it is renewed", planner.Span(float64(request.LeaseSeconds)), request.ExpiresAt().UTC().Format(time.RFC3339))}
}

func (c *Controller) tellExpired(ctx context.Context, told *requestNews, v *view, request *nodepool.OwnedRequest) {
	known := request.Status.State == raydemand.RequestExpired && request.Status.ObservedRequest == request.Fingerprint()
	before := told.expired
	told.expired = true
	if known || before {
		return
	}
	message := fmt.Sprintf("request %s of %s: its lease of %d s is over, so what only it held is released", request.ID, request.Owner, request.LeaseSeconds)
	c.config.Log.InfoContext(ctx, "request expired", "cluster", v.cluster.Key.String(), "request", request.ID, "owner", request.Owner)
	c.kube.Event(v.cluster, true, EventRequestExpired, message)
}

// complete adds what a status says of the request that it is about, and since when: since before where the request's own said the same.
func complete(s *nodepool.OwnedStatus, request *nodepool.OwnedRequest, now time.Time) {
	before := &request.Status
	now = now.UTC().Truncate(time.Second) // the precision that the API server keeps
	s.ObservedRequest, s.ObservedGeneration = request.Fingerprint(), request.Generation
	since := func(known time.Time, same bool) time.Time {
		if same && !known.IsZero() {
			return known
		}
		return now
	}
	anew := s.State == raydemand.RequestExpired && !request.ReportedExpired() // it may have been renewed between two looks
	s.Since = since(before.Since, before.State == s.State && before.ObservedRequest == s.ObservedRequest && !anew)
	is := func(state raydemand.RequestState) bool { return (before.State == state) == (s.State == state) }
	s.SatisfiedSince = since(before.SatisfiedSince, is(raydemand.RequestSatisfied))
	s.ExpiredSince = since(before.ExpiredSince, is(raydemand.RequestExpired))
	s.ExpectedAt = s.ExpectedAt.UTC().Truncate(time.Second)
}

// statusOf is what a plan says of a request.
func statusOf(plan *planner.RequestPlan, expected time.Time) nodepool.OwnedStatus {
	s := nodepool.OwnedStatus{State: plan.State, Code: plan.Reason.Code, Message: plan.Reason.Message, Pods: plan.Pods, ExpectedAt: expected}
	for _, g := range plan.Groups {
		if g.Name != "" { // the head is no group's
			s.Groups = append(s.Groups, nodepool.OwnedGroup{Name: g.Name, Pods: int32(g.Pods)})
		}
	}
	return s
}

// mostStarts is how many starts of pods are remembered for each group.
const mostStarts = 20

// startTimes remembers how long pods took from their creation until they had joined Ray, the latest of each group last.
type startTimes struct {
	took map[string][]time.Duration
	// waits are the pods that have not joined yet, by UID, and joined those that have: in a new session of Ray they join anew.
	waits, joined map[string]bool
}

// observe takes one complete reading in.
func (s *startTimes) observe(now time.Time, members []membership.Member) {
	waits, joined := map[string]bool{}, map[string]bool{}
	for _, m := range members {
		joined[m.UID] = s.joined[m.UID] || m.Joined()
		switch {
		case !m.Joined():
			waits[m.UID] = !joined[m.UID]
		case s.waits[m.UID] && !m.CreatedAt.IsZero():
			if s.took == nil {
				s.took = map[string][]time.Duration{}
			}
			took := append(s.took[m.Group], now.Sub(m.CreatedAt))
			s.took[m.Group] = slices.Clone(took[max(0, len(took)-mostStarts):])
		}
	}
	s.waits, s.joined = waits, joined
}

// expected is when the last pod that a request waits for may have joined: as long after it was asked for as half of the group's last pods took, or, if
// that is over, as the slowest of them took. Zero where that is not known, or over too.
func (s *startTimes) expected(plan *planner.RequestPlan, now time.Time) (at time.Time) {
	if plan.State != raydemand.RequestWaiting {
		return time.Time{}
	}
	for _, g := range plan.Groups {
		if g.Waiting == 0 {
			continue
		}
		took := slices.Sorted(slices.Values(s.took[g.Name]))
		if len(took) == 0 {
			return time.Time{}
		}
		asked := g.Since
		if asked.IsZero() {
			asked = now
		}
		joined := asked.Add(took[len(took)/2])
		if joined.Before(now) {
			joined = asked.Add(took[len(took)-1])
		}
		if joined.Before(now) {
			return time.Time{}
		}
		if joined.After(at) {
			at = joined
		}
	}
	return at
}
