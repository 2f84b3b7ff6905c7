package api

import (
	"hash/maphash"
	"strconv"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// subject is the start of each event.
type subject struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// state is the state of a cluster in events. Equal sums mean no change: they leave out ages and the sentences with
// seconds in them, which differ after every decision.
type state struct {
	summary            apiv1.ClusterSummary
	demandSum, planSum uint64
	demand             apiv1.DemandEvent
	plan               apiv1.PlanEvent
}

// sums returns the parts of a state that a comparison with the next one needs.
func (s state) sums() state {
	s.demand, s.plan = apiv1.DemandEvent{}, apiv1.PlanEvent{}
	return s
}

func stateOf(v View, now time.Time) state {
	cluster := v.Cluster(now)
	s := state{
		summary: v.Summary(now),
		demand: apiv1.DemandEvent{
			Namespace: v.Key.Namespace,
			Name:      v.Key.Name,
			Demand:    cluster.Demand,
			Requested: cluster.Requested,
		},
		plan: apiv1.PlanEvent{
			Namespace: v.Key.Namespace,
			Name:      v.Key.Name,
			LastCycle: cluster.LastCycle,
			Groups:    cluster.Groups,
			Summary:   cluster.Summary,
			Unmet:     cluster.Unmet,
			Findings:  cluster.Findings,
			Decisions: cluster.Decisions,
		},
	}
	s.summary.LastCycle, s.summary.DataAgeSeconds = nil, nil
	s.demandSum, s.planSum = sumOfDemand(s.demand), sumOfPlan(s.plan, v)
	return s
}

// seed is the seed of all sums of this process.
var seed = maphash.MakeSeed()

// digest is a hash of the values whose changes matter.
type digest struct{ maphash.Hash }

func newDigest() *digest {
	d := &digest{}
	d.SetSeed(seed)
	return d
}

func (d *digest) add(parts ...string) {
	for _, part := range parts {
		_, _ = d.WriteString(part) // never returns an error
		_ = d.WriteByte(0)
	}
}

func (d *digest) count(numbers ...int64) {
	for _, n := range numbers {
		d.add(strconv.FormatInt(n, 10))
	}
}

func (d *digest) requests(requests []raydemand.Request) {
	d.count(int64(len(requests)))
	for _, r := range requests {
		d.shape(r.Bundle, r.Selectors, r.Slice)
		d.count(r.Count)
	}
}

// shape adds exactly what one bundle requests.
func (d *digest) shape(bundle raydemand.Bundle, selectors []raydemand.Selector, slice *raydemand.SliceRequirement) {
	d.add(bundle.String())
	d.count(int64(len(selectors)))
	for _, selector := range selectors {
		d.add(selector.String())
	}
	if slice != nil {
		d.add(slice.String())
	}
}

func (d *digest) reasons(reasons ...planner.Reason) {
	for _, r := range reasons {
		d.add(r.Code)
	}
}

func sumOfDemand(e apiv1.DemandEvent) uint64 {
	d := newDigest()
	d.requests(e.Demand.Requests)
	d.requests(e.Demand.RequestResources)
	d.requests(e.Requested)
	for _, g := range e.Demand.Gangs {
		d.add(g.ID, string(g.Strategy))
		d.count(int64(len(g.Bundles)))
	}
	return d.Sum64()
}

// outcomes adds the state of requests in the plan, and in their status, which follows later. A renewed lease is not a
// change.
func (d *digest) outcomes(v View) {
	d.count(int64(len(v.Plan.Requests)), int64(len(v.Owned)))
	for _, r := range v.Plan.Requests {
		d.add(r.ID, r.Owner, string(r.State), r.Reason.Code)
	}
	for i := range v.Owned {
		r := &v.Owned[i]
		d.add(r.ID, r.Owner, r.Status.ObservedRequest, string(r.Status.State), r.Status.Code)
		d.count(int64(r.Priority), int64(len(r.Status.Pods)))
	}
}

func sumOfPlan(e apiv1.PlanEvent, v View) uint64 {
	d := newDigest()
	d.outcomes(v)
	for _, g := range e.Groups {
		d.add(g.Name, strconv.FormatBool(g.Closed == ""), g.NumGpus.Sync.Code)
		d.count(
			int64(g.Current), int64(g.Desired), int64(g.Min), int64(g.Max), int64(g.Ready), int64(g.Idle),
			int64(g.Starting), int64(g.Leaving),
		)
		d.reasons(g.Reasons...)
	}
	for _, s := range e.Summary {
		d.add(string(s.Kind), strconv.FormatBool(s.OverREST))
		d.shape(s.Resources, s.Selectors, s.Slice)
		if s.Gang != nil {
			d.add(s.Gang.ID, string(s.Gang.Strategy))
		}
		d.count(
			s.Asked, s.Served, s.Waiting, s.Launching, s.Impossible, s.Trying, s.PoolPromised, s.Capped, s.Closed,
			s.CoolingDown,
		)
	}
	for _, u := range e.Unmet {
		d.count(u.Count)
		d.reasons(u.Reason)
	}
	for _, f := range e.Findings {
		d.add(f.Code, f.Object, f.Field)
	}
	d.count(int64(len(e.Decisions)))
	if len(e.Decisions) > 0 {
		d.add(e.Decisions[0].At.Format(time.RFC3339Nano), e.Decisions[0].Action, e.Decisions[0].Group)
	}
	return d.Sum64()
}
