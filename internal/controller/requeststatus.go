package controller

import (
	"fmt"
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// statusPause separates two writes of one request's status that differ only in counts and messages.
const statusPause = 5 * time.Second

// reportedStatuses remembers the status last reported for each request, by UID. It saves writes and repeated Events. It
// is ahead of the objects: a status is written after the cycle, and watches lag.
type reportedStatuses map[string]reportedStatus

type reportedStatus struct {
	// status is what was last found, at is when a status was last reported.
	status nodepool.OwnedStatus
	at     time.Time
}

// of returns a request with the status last found of it, or the object's own if this process has found none.
func (n reportedStatuses) of(r *nodepool.OwnedRequest) nodepool.OwnedRequest {
	known := *r
	if status := n[r.UID].status; status.State != "" {
		known.Status = status
	}
	return known
}

// countedRequests returns the requests that count now.
func countedRequests(cluster *nodepool.Cluster, next reportedStatuses, now time.Time) []raydemand.Owned {
	var owned []raydemand.Owned
	for i := range cluster.Owned {
		if r := &cluster.Owned[i]; r.Counts(cluster.UID, now) {
			made, known := r.Owned, next.of(r)
			made.SatisfiedSince = known.SatisfiedSince()
			owned = append(owned, made)
		}
	}
	return owned
}

// requestUpdates returns what to write to requests, what is now reported of each, and the requests whose lease was
// first seen to be over. known is what was reported before.
func requestUpdates(v *observe.View, plan planner.Plan, known reportedStatuses) (
	updates []nodepool.OwnedUpdate, next reportedStatuses, expired []*nodepool.OwnedRequest,
) {
	plans := map[string]*planner.RequestPlan{}
	for i := range plan.Requests {
		if plan := &plan.Requests[i]; !plan.Plain && v.Live() {
			plans[plan.ID] = plan
		}
	}
	next = reportedStatuses{}
	for i := range v.Cluster.Owned {
		request := &v.Cluster.Owned[i]
		if request.Deleting || request.ClusterUID != "" && request.ClusterUID != v.Cluster.UID {
			continue
		}
		reported, before := known[request.UID], known.of(request)
		if update, any := requestUpdate(before, &reported, v, request, plans[request.ID]); any {
			updates = append(updates, update)
		}
		if reported.status.State == raydemand.RequestExpired && before.Status.State != raydemand.RequestExpired {
			expired = append(expired, request)
		}
		next[request.UID] = reported
	}
	return updates, next, expired
}

// requestUpdate returns what to write to one request, if anything.
func requestUpdate(
	known nodepool.OwnedRequest,
	reported *reportedStatus,
	v *observe.View,
	request *nodepool.OwnedRequest,
	plan *planner.RequestPlan,
) (nodepool.OwnedUpdate, bool) {
	u := nodepool.OwnedUpdate{Namespace: request.Cluster.Namespace, Name: request.ID, UID: request.UID,
		ResourceVersion: request.ResourceVersion}
	if request.ClusterUID == "" {
		u.Adopt = &nodepool.ClusterReference{Name: v.Cluster.Key.Name, UID: v.Cluster.UID}
	}
	status, excluded := request.Excluded()
	switch {
	case excluded:
	case request.Expired(v.Now):
		if goes := request.DeletionTime(); !goes.IsZero() && !v.Now.Before(goes) {
			u.Delete = true
			return u, true
		}
		status = leaseOver(request)
	case v.Mode == nodepool.Managed && plan != nil:
		status = requestStatusOf(plan)
	case v.Mode != nodepool.Managed && (plan != nil || v.Mode == nodepool.Off):
		status = notScaled(plan, v)
	default:
		return u, u.Adopt != nil
	}
	completeStatus(&status, &known, v.Now)
	reported.status = status
	// An earlier status may not be written yet.
	again := !known.Status.SameOutcome(status)
	if again || !request.Status.SameOutcome(status) ||
		!request.Status.Equal(status) && v.Now.Sub(reported.at) >= statusPause {
		reported.at = v.Now
		u.Status = &status
	}
	return u, u.Adopt != nil || u.Status != nil
}

// notScaled returns the status of a request in a plan that is not carried out; plan may be nil. Nothing is on its way.
func notScaled(plan *planner.RequestPlan, v *observe.View) nodepool.OwnedStatus {
	if plan != nil && plan.State != raydemand.RequestWaiting {
		return requestStatusOf(plan)
	}
	return nodepool.OwnedStatus{State: raydemand.RequestWaiting, Code: raydemand.CodeNotScaled,
		Message: "nothing is launched for it, because the RayCluster is not scaled now: " + v.Why.Message}
}

func leaseOver(request *nodepool.OwnedRequest) nodepool.OwnedStatus {
	return nodepool.OwnedStatus{
		State: raydemand.RequestExpired,
		Code:  raydemand.CodeLeaseOver,
		Message: fmt.Sprintf("its lease of %s ended at %s; it does not count until it is renewed",
			planner.Span(float64(request.LeaseSeconds)), request.ExpiresAt().UTC().Format(time.RFC3339)),
	}
}

// completeStatus adds the request that a status is about, and since when the status holds: since before if the
// request's own says the same.
func completeStatus(s *nodepool.OwnedStatus, request *nodepool.OwnedRequest, now time.Time) {
	before := &request.Status
	now = now.UTC().Truncate(time.Second) // the precision that the API server stores
	s.ObservedRequest, s.ObservedGeneration = request.Fingerprint(), request.Generation
	since := func(known time.Time, same bool) time.Time {
		if same && !known.IsZero() {
			return known
		}
		return now
	}
	// it may have been renewed between two observations
	anew := s.State == raydemand.RequestExpired && !request.ReportedExpired()
	s.Since = since(before.Since, before.State == s.State && before.ObservedRequest == s.ObservedRequest && !anew)
	is := func(state raydemand.RequestState) bool { return (before.State == state) == (s.State == state) }
	s.SatisfiedSince = since(before.SatisfiedSince, is(raydemand.RequestSatisfied))
	s.ExpiredSince = since(before.ExpiredSince, is(raydemand.RequestExpired))
}

// requestStatusOf returns the status that follows from a plan.
func requestStatusOf(plan *planner.RequestPlan) nodepool.OwnedStatus {
	s := nodepool.OwnedStatus{
		State:   plan.State,
		Code:    plan.Reason.Code,
		Message: plan.Reason.Message,
		Pods:    plan.Pods,
	}
	for _, g := range plan.Groups {
		if g.Name != "" { // the head belongs to no group
			s.Groups = append(s.Groups, nodepool.OwnedGroup{Name: g.Name, Pods: int32(g.Pods)})
		}
	}
	return s
}
