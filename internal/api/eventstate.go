package api

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// state is the state of a cluster in events. Equal sums mean no change: they leave out ages and the sentences with
// seconds in them, which differ after every decision.
type state struct {
	summary            apiv1.ClusterSummary
	demandSum, planSum uint64
	demand             apiv1.DemandEvent
	plan               apiv1.PlanEvent
}

// sentEvents is what a stream has sent.
type sentEvents struct {
	// last is the state that was sent last, without its contents; nil if there is none, or if the cluster was gone.
	last *state
	gone bool
	ids  int
}

// changes returns the events about a cluster whose content differs from what was sent last.
func (e *sentEvents) changes(fleet Fleet, key nodepool.ClusterKey) (texts [][]byte) {
	add := func(kind string, data any) {
		e.ids++
		text, _ := json.Marshal(data) // all parts of events have an encoding
		texts = append(texts, fmt.Appendf(nil, "id: %d\nevent: %s\ndata: %s\n\n", e.ids, kind, text))
	}
	view, exists := fleet.View(key)
	if !exists {
		if !e.gone {
			add(apiv1.EventGone, map[string]string{"namespace": key.Namespace, "name": key.Name})
		}
		e.last, e.gone = nil, true
		return texts
	}
	at := time.Now()
	now, before := stateOf(view, at), e.last
	if before == nil || before.summary != now.summary {
		add(apiv1.EventStatus, view.Summary(at))
	}
	if before == nil || before.demandSum != now.demandSum {
		add(apiv1.EventDemand, now.demand)
	}
	if before == nil || before.planSum != now.planSum {
		add(apiv1.EventPlan, now.plan)
	}
	now.demand, now.plan = apiv1.DemandEvent{}, apiv1.PlanEvent{}
	e.last, e.gone = &now, false
	return texts
}

func stateOf(v View, now time.Time) state {
	cluster := v.Status(now)
	s := state{
		summary: v.Summary(now),
		demand: apiv1.DemandEvent{
			Namespace: v.Cluster.Namespace,
			Name:      v.Cluster.Name,
			Demand:    cluster.Demand,
			Requested: cluster.Requested,
		},
		plan: apiv1.PlanEvent{
			Namespace: v.Cluster.Namespace,
			Name:      v.Cluster.Name,
			LastCycle: cluster.LastCycle,
			Groups:    cluster.Groups,
			Summary:   cluster.Summary,
			Unmet:     cluster.Unmet,
			Findings:  cluster.Findings,
			Decisions: cluster.Decisions,
		},
	}
	s.summary.LastCycle, s.summary.DataAgeSeconds = nil, nil
	s.demandSum, s.planSum = sumOf(s.demand.Demand, s.demand.Requested), sumOfPlan(s.plan, v)
	return s
}

// seed is the seed of all sums of this process.
var seed = maphash.MakeSeed()

// sumOf returns a hash of values.
func sumOf(parts ...any) uint64 {
	text, _ := json.Marshal(parts) // all parts of events have an encoding
	return maphash.Bytes(seed, text)
}

// sumOfPlan returns a hash of the state of requests in the plan, of their status, which follows later, and of what the
// event says without its sentences. A renewed lease is not a change.
func sumOfPlan(e apiv1.PlanEvent, v View) uint64 {
	var parts []any
	add := func(more ...any) { parts = append(parts, more) }
	for _, r := range v.Plan.Requests {
		add(r.ID, r.Owner, r.State, r.Reason.Code)
	}
	for i := range v.Kube.Owned {
		r := &v.Kube.Owned[i]
		add(r.ID, r.Owner, r.Status.ObservedRequest, r.Status.State, r.Status.Code, r.Priority, len(r.Status.Pods))
	}
	for _, g := range e.Groups {
		add(g.Name, g.Closed == "", g.NumGpus.Sync.Code, g.Current, g.Desired, g.Min, g.Max, g.Ready, g.Idle,
			g.Starting, g.Leaving)
		for _, r := range g.Reasons {
			add(r.Code)
		}
	}
	for _, s := range e.Summary {
		s.WaitingSince = time.Time{}
		add(s)
	}
	for _, u := range e.Unmet {
		add(u.Count, u.Reason.Code)
	}
	for _, f := range e.Findings {
		add(f.Code, f.Object, f.Field)
	}
	if add(len(e.Decisions)); len(e.Decisions) > 0 {
		add(e.Decisions[0].At, e.Decisions[0].Action, e.Decisions[0].Group)
	}
	return sumOf(parts...)
}
