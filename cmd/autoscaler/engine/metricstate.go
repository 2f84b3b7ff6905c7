package engine

import (
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// stateOf returns the state of a RayCluster after a decision, at now.
func stateOf(d *addon.Decision, now time.Time) telemetry.State {
	s := telemetry.State{
		Managed: d.Mode == nodepool.Managed, DataAge: d.Age(now),
		Unmet: unmetOf(d.Plan), Going: goingOf(d.Snapshot), Guarded: guardedOf(d.Snapshot), Ray: raysOwn(d),
	}
	if d.Mode == nodepool.Off {
		s.DataAge = -1 // Ray is not read
	}
	s.Demand, s.Requested = demandOf(d.Plan.Summary)
	s.Requests = requestsOf(d)
	ready, known := map[string]int{}, map[string]*planner.Group{}
	for i := range d.Snapshot.Nodes {
		if n := &d.Snapshot.Nodes[i]; alive(n) {
			ready[n.Group]++
		}
	}
	for i := range d.Snapshot.Groups {
		known[d.Snapshot.Groups[i].Name] = &d.Snapshot.Groups[i]
	}
	for _, g := range d.Plan.Groups {
		group := telemetry.Group{
			Name:    g.Name,
			Current: g.Current,
			Desired: g.Desired,
			Ready:   ready[g.Name],
			Min:     g.Min,
			Max:     g.Max,
		}
		if asked, there := d.Kube.Group(g.Name); there {
			group.Asked = asked.Goal() * asked.NumOfHosts
		}
		if n, synced := d.NumGPUs[g.Name]; synced {
			group.NumGPUsMismatch, group.NumGPUs = n.Mismatch, columnsOf(n)
		}
		if g := known[g.Name]; g != nil {
			group.Cooldown = time.Duration(g.CoolingSeconds * float64(time.Second))
			group.Slice, group.Pools = sliceOf(g.Slice), poolsOf(g.Pools)
		}
		s.Groups = append(s.Groups, group)
	}
	return s
}

// sliceOf returns what one GPU of a group is.
func sliceOf(slice *planner.Slice) *telemetry.Slice {
	if slice == nil {
		return nil
	}
	exported := &telemetry.Slice{
		Kind:      string(slice.Kind),
		Profile:   slice.Profile,
		Isolation: string(slice.Isolation),
		Compute:   slice.ComputeFraction,
	}
	if slice.MemoryMiB != nil {
		exported.MemoryBytes = new(float64(*slice.MemoryMiB) * (1 << 20))
	}
	return exported
}

// poolsOf returns the pools that a group's pods can be scheduled to.
func poolsOf(pools []planner.GroupPool) []telemetry.Pool {
	var exported []telemetry.Pool
	for _, pool := range pools {
		one := telemetry.Pool{Name: pool.Name, Limit: pool.MaxPods}
		for _, cards := range pool.Cards {
			one.Cards = addCards(one.Cards, cards)
		}
		exported = append(exported, one)
	}
	return exported
}

// addCards merges cards of the same product.
func addCards(all []telemetry.Cards, cards sharing.CutCards) []telemetry.Cards {
	at := slices.IndexFunc(all, func(c telemetry.Cards) bool { return c.Product == cards.Product })
	if at < 0 {
		at, all = len(all), append(all, telemetry.Cards{Product: cards.Product, Busy: new(int64)})
	}
	of := &all[at]
	of.All += cards.Count
	if len(cards.Cut) > 0 {
		of.Cut += cards.Count
	}
	if of.Busy == nil || cards.Busy == nil {
		of.Busy = nil
	} else {
		*of.Busy += *cards.Busy
	}
	return all
}

// columnsOf returns the known numbers of GPUs.
func columnsOf(n addon.GroupNumGPUs) map[string]float64 {
	columns := map[string]float64{}
	for column, amount := range map[string]*raydemand.Amount{
		"declared": n.Declared, "derived": n.Derived, "reported": n.Reported, "ray": n.Ray,
	} {
		if amount != nil {
			columns[column] = amount.Float()
		}
	}
	return columns
}

// guardedOf counts the pods that node autoscalers do not evict, by whose guard they have; nil if there are none.
func guardedOf(s planner.Snapshot) map[string]int64 {
	var guarded map[string]int64
	count := func(n *planner.Node) {
		if n.Guard != "" {
			if guarded == nil {
				guarded = map[string]int64{}
			}
			guarded[n.Guard]++
		}
	}
	if s.Head != nil {
		count(s.Head)
	}
	for i := range s.Nodes {
		count(&s.Nodes[i])
	}
	return guarded
}

// goingOf counts the workers whose machine is about to go, by sign.
func goingOf(s planner.Snapshot) map[string]int64 {
	var going map[string]int64
	for i := range s.Nodes {
		if notice := s.Nodes[i].Going; notice != nil {
			if going == nil {
				going = map[string]int64{}
			}
			going[string(notice.Sign)]++
		}
	}
	return going
}

// unmetOf counts unserved demand by the code of its reason.
func unmetOf(p planner.Plan) map[string]int64 {
	unmet := map[string]int64{}
	for _, u := range slices.Concat(p.InfeasibleRequests, p.InfeasibleRequestResources) {
		unmet[u.Reason.Code] += u.Count
	}
	for _, u := range p.InfeasibleGangRequests {
		unmet[u.Reason.Code]++
	}
	return unmet
}

// demandOf sums pending demand by resource and state, and the bundles of request_resources by state.
func demandOf(summary []planner.DemandSummary) (demand map[string]map[string]float64, requested map[string]int64) {
	demand, requested = map[string]map[string]float64{}, map[string]int64{}
	for _, d := range summary {
		for state, count := range outcomesOf(d) {
			switch {
			case count == 0:
			case d.Kind == planner.KindRequestResources:
				requested[state] += count
			case d.Gang != nil:
				for _, bundle := range d.Gang.Bundles {
					addDemand(demand, bundle, state, count)
				}
			default:
				addDemand(demand, d.Resources, state, count)
			}
		}
	}
	return demand, requested
}

// requestsOf counts the requests of owners by state. Plans do not contain those with an expired lease.
func requestsOf(d *addon.Decision) map[string]int64 {
	requests := map[string]int64{}
	for i := range d.Plan.Requests {
		if r := &d.Plan.Requests[i]; !r.Plain {
			requests[strings.ToLower(string(r.State))]++
		}
	}
	for i := range d.Kube.Owned {
		if r := &d.Kube.Owned[i]; !r.Deleting && r.Unreadable == "" && !r.Counts(d.UID, d.At) {
			requests[strings.ToLower(string(raydemand.RequestExpired))]++
		}
	}
	return requests
}

// outcomesOf counts the outcomes of one demand.
func outcomesOf(d planner.DemandSummary) map[string]int64 {
	return map[string]int64{
		"served":             d.Served,
		"waiting":            d.Waiting,
		"launching":          d.Launching,
		planner.Impossible:   d.Impossible,
		planner.Trying:       d.Trying,
		planner.PoolPromised: d.PoolPromised,
		planner.Capped:       d.Capped,
		planner.Closed:       d.Closed,
		planner.CoolingDown:  d.CoolingDown,
	}
}

func addDemand(demand map[string]map[string]float64, bundle raydemand.Bundle, state string, count int64) {
	for resource, amount := range bundle {
		if demand[resource] == nil {
			demand[resource] = map[string]float64{}
		}
		demand[resource][state] += amount.Float() * float64(count)
	}
}

// raysOwn counts nodes and their resources as Ray's autoscaler does, including the head.
func raysOwn(d *addon.Decision) telemetry.Ray {
	ray := telemetry.Ray{Session: d.Session, Nodes: map[string]telemetry.NodeCounts{},
		ClusterResources: map[string]float64{}, PendingResources: map[string]float64{}}
	for _, g := range d.Snapshot.Groups {
		ray.Nodes[g.Name] = telemetry.NodeCounts{}
	}
	add := func(n *planner.Node) {
		counts, resources := ray.Nodes[n.Group], map[string]float64(nil)
		switch {
		case alive(n):
			counts.Active++
			resources = ray.ClusterResources
		case n.State == planner.Pending:
			counts.Pending++
			resources = ray.PendingResources
		case n.State == planner.Leaving:
			counts.Failed++
		}
		ray.Nodes[n.Group] = counts
		if resources != nil {
			for name, amount := range n.Total {
				resources[name] += amount.Float()
			}
		}
	}
	if d.Snapshot.Head != nil {
		add(d.Snapshot.Head)
	}
	for i := range d.Snapshot.Nodes {
		add(&d.Snapshot.Nodes[i])
	}
	return ray
}

// costsOf returns what a RayCluster has spent since this process began.
func costsOf(rows []ledger.Row, currency string) []telemetry.Cost {
	costs := make([]telemetry.Cost, len(rows))
	for i, r := range rows {
		costs[i] = telemetry.Cost{Group: r.Group, Owner: r.Owner, Job: r.Job, Cause: string(r.Cause),
			Currency: currency, PodSeconds: r.PodSeconds, GPUSeconds: r.GPUSeconds, Money: r.Money}
	}
	return costs
}
