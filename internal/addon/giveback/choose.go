package giveback

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Input is everything that a choice depends on.
type Input struct {
	View *observe.View
	// Snapshot is that of the cycle.
	Snapshot *planner.Snapshot
	// Residents are the actors that have a place on a node.
	Residents []raydemand.Resident
	// UsedFor returns for how long a node has been in use without interruption.
	UsedFor func(raydemand.NodeID) time.Duration
	// Settled reports whether Ray has shown what it placed on the node of a worker.
	Settled func(observe.Member) bool
}

// unit is what leaves as a whole: a worker, or all hosts of a multi-host replica.
type unit struct {
	members []observe.Member
	gpus    int64
	why     string
	cost    cost
	work    []raydemand.Request
}

// cost is what the loss of workers costs. The first number that differs counts: workers with bundles of placement
// groups, workers whose work cannot move, workers whose work moves, and for how long they have worked.
type cost struct {
	grouped, ended, moved int
	worked                time.Duration
}

func (c cost) plus(o cost) cost {
	return cost{c.grouped + o.grouped, c.ended + o.ended, c.moved + o.moved, c.worked + o.worked}
}

func (c cost) compare(o cost) int {
	return cmp.Or(cmp.Compare(c.grouped, o.grouped), cmp.Compare(c.ended, o.ended), cmp.Compare(c.moved, o.moved),
		cmp.Compare(c.worked, o.worked))
}

// Choose returns the workers whose loss costs least and that have exactly the GPUs that are asked for. It returns
// giveback.ErrRefused with the reason if there are none.
func Choose(in Input, ask giveback.Ask) (giveback.Reservation, error) {
	groups, err := in.groups(ask)
	if err != nil {
		return giveback.Reservation{}, err
	}
	if why := in.waits(groups); why != "" {
		return giveback.Reservation{}, fmt.Errorf("%w: %s", giveback.ErrNotNow, why)
	}
	units, spare := in.units(ask, groups)
	for range mostTried {
		units = order(units, spare)
		chosen, gpus := cheapest(units, ask)
		switch {
		case gpus < ask.GPUs:
			return giveback.Reservation{}, refusal(units, ask)
		case len(chosen) > giveback.MaxWorkers:
			return giveback.Reservation{}, fmt.Errorf("%w: that takes %d workers; the limit is %d",
				giveback.ErrRefused, len(chosen), giveback.MaxWorkers)
		case in.moves(chosen):
			return in.reserve(ask, groups, chosen), nil
		}
		keep(units, chosen)
	}
	return giveback.Reservation{}, refusal(units, ask)
}

// Offers returns what another RayCluster could take, cheapest first. Of each group, all of it could go together.
func Offers(in Input) (all []giveback.Offer) {
	for i := range in.View.Cluster.Groups {
		g := &in.View.Cluster.Groups[i]
		ask := giveback.Ask{Group: g.Name, Taker: anyTaker}
		groups, err := in.groups(ask)
		if err != nil || g.Kind == nil || in.waits(groups) != "" {
			continue
		}
		units, spare := in.units(ask, groups)
		units = slices.DeleteFunc(order(units, spare), func(u unit) bool { return u.cost.ended > 0 })
		for _, u := range in.movable(units) {
			all = append(all, in.offer(g, &u))
		}
	}
	return all
}

// anyTaker is the taker of an offer.
const anyTaker = "any"

// movable returns the units without those whose work has no room while all of them are gone, the dearest first.
func (in *Input) movable(units []unit) []unit {
	for range mostTried {
		if in.moves(units) {
			return units
		}
		units = units[:len(units)-1]
	}
	return slices.DeleteFunc(units, func(u unit) bool { return u.cost.moved > 0 })
}

// offer converts a unit of a group.
func (in *Input) offer(g *nodepool.WorkerGroup, u *unit) giveback.Offer {
	o := giveback.Offer{Group: g.Name, GPUs: u.gpus, Why: u.why, Idle: u.cost == cost{}}
	for _, m := range u.members {
		o.Workers = append(o.Workers,
			giveback.OfferedWorker{Pod: m.Pod, Node: m.Worker.Node, Takes: g.Kind.Requests})
		since := m.StartedAt
		if since.IsZero() {
			since = in.View.Now // unknown, so it proves nothing
		}
		if since.After(o.Since) {
			o.Since = since
		}
	}
	return o
}

// mostTried bounds the plans of one choice.
const mostTried = 16

// keep counts the work that should have moved as work that cannot: there is no room for it.
func keep(units, chosen []unit) {
	for i := range units {
		u := &units[i]
		if u.cost.moved > 0 && slices.ContainsFunc(chosen, func(c unit) bool {
			return c.members[0].Pod == u.members[0].Pod
		}) {
			u.cost.ended, u.cost.moved, u.why = u.cost.ended+u.cost.moved, 0, u.why+", but nothing else has room"
		}
	}
}

// waits returns why the GPUs of a worker that goes would not be free: pods that wait for a node would take them. It is
// also unknown then how many pods the groups are going to have.
func (in *Input) waits(groups map[string]int64) string {
	var pods int64
	for i := range in.Snapshot.Nodes {
		if n := &in.Snapshot.Nodes[i]; groups[n.Group] > 0 && n.KubeNode == "" &&
			(n.State == planner.Pending || n.State == planner.AllocationTimeout) {
			pods++
		}
	}
	if pods == 0 {
		return ""
	}
	return planner.Pods(pods) + " without a node would take the GPUs; wait until none of these groups has any"
}

// groups returns how many GPUs a pod has of each group that an ask concerns.
func (in *Input) groups(ask giveback.Ask) (map[string]int64, error) {
	groups := map[string]int64{}
	var names []string
	for i := range in.Snapshot.Groups {
		g := &in.Snapshot.Groups[i]
		gpus := g.Resources[raydemand.GPU]
		names = append(names, g.Name)
		whole := int64(gpus / raydemand.One)
		switch {
		case gpus <= 0 || !in.concerns(ask, g):
		case raydemand.Whole(whole) != gpus:
			return nil, fmt.Errorf("%w: a worker of group %s has %s GPUs; only whole GPUs can be given back",
				giveback.ErrRefused, g.Name, gpus)
		default:
			groups[g.Name] = whole
		}
	}
	if len(groups) > 0 {
		return groups, nil
	}
	if ask.Group != "" && !slices.Contains(names, ask.Group) {
		return nil, fmt.Errorf("%w: the RayCluster has no group %q; it has %s", giveback.ErrRefused, ask.Group,
			strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("%w: no worker of %s has whole GPUs", giveback.ErrRefused, ask.From())
}

// concerns reports whether pods of a group may have what an ask wants.
func (in *Input) concerns(ask giveback.Ask, g *planner.Group) bool {
	if ask.Group != "" {
		return g.Name == ask.Group
	}
	known, _ := in.View.Cluster.Group(g.Name)
	return slices.ContainsFunc(in.View.Members, func(m observe.Member) bool {
		return m.Group == g.Name && m.Pool == ask.Pool
	}) || slices.ContainsFunc(known.PoolPods, func(p landing.PoolPods) bool { return p.Pool == ask.Pool })
}

// units returns what may leave, with what its loss costs, and how many replicas of each group the minimum lets go.
func (in *Input) units(ask giveback.Ask, groups map[string]int64) (all []unit, spare map[string]int) {
	residents := addon.ByNode(in.Residents)
	spare = map[string]int{}
	whole := map[string]*unit{}
	for i := range in.View.Cluster.Groups {
		g := &in.View.Cluster.Groups[i]
		spare[g.Name] = min(g.Replicas, g.Max) - g.Min
	}
	var keys []string
	broken := map[string]bool{}
	for _, m := range in.View.Members {
		key := m.Group + "/" + cmp.Or(m.Replica, m.Pod)
		u := whole[key]
		if u == nil {
			u = &unit{}
			whole[key] = u
			keys = append(keys, key)
		}
		gpus := groups[m.Group]
		switch ends := m.Going.Ends() || m.Joined() && m.Node.Status == raydemand.Draining; {
		case ends && m.Counted() && !broken[key]:
			spare[m.Group]-- // replicas still counts it
			fallthrough
		case ends, gpus == 0, !m.Counted(), !m.Joined(), differs(m, gpus),
			!observe.Deletable(in.View.Cluster, m.Worker),
			ask.Pool != "" && m.Pool != ask.Pool, ask.Pods != nil && !slices.Contains(ask.Pods, m.Pod):
			broken[key] = true
		default:
			in.add(u, m, gpus, residents[m.Node.ID], ask.Taker != "")
		}
	}
	for _, key := range keys {
		if !broken[key] {
			all = append(all, *whole[key])
		}
	}
	in.keepRoom(all)
	return all, spare
}

// differs reports whether the Ray node of a worker has another number of GPUs than its group, for example since the
// template changed. A reservation counts by group, so more GPUs would go than are asked for, or fewer.
func differs(m observe.Member, gpus int64) bool {
	return m.Joined() && m.Node.Total[raydemand.GPU] != raydemand.Whole(gpus)
}

// order returns the units with the cheapest first, and of each group as many as the minimum lets go.
func order(units []unit, spare map[string]int) []unit {
	units, left := slices.Clone(units), maps.Clone(spare)
	slices.SortStableFunc(units, func(a, b unit) int { return a.cost.compare(b.cost) })
	return slices.DeleteFunc(units, func(u unit) bool {
		group := u.members[0].Group
		left[group]--
		return left[group] < 0
	})
}

// add adds a worker, and what its loss costs if a person asks or if another RayCluster takes it. A task that holds no
// resources, or that waits in ray.get, may run beside an actor, and Ray does not show it. A person decides about that
// when asking; nobody looks when it is taken, so the RayCluster must have allowed that such workers end.
func (in *Input) add(u *unit, m observe.Member, gpus int64, residents []*raydemand.Resident, taken bool) {
	u.members, u.gpus = append(u.members, m), u.gpus+gpus
	work, moves := addon.MovableWork(m.Node, residents)
	one, why := cost{worked: in.UsedFor(m.Node.ID)}, ""
	switch grouped := slices.ContainsFunc(residents, func(r *raydemand.Resident) bool { return r.Grouped }); {
	case m.Guard.By() == nodepool.GuardedByUser: // also if it is idle
		one.ended, why = 1, "its user keeps it from being evicted"
	case m.Node.Status == raydemand.Idle && !in.Settled(m):
		one.ended, why = 1, "idle for less than "+observe.PlacedShown.String()+", so work may just be placed there"
	case m.Node.Status == raydemand.Idle:
		one, why = cost{}, "idle"
	case grouped || len(m.Node.PlacedLabels) > 0:
		one.grouped, one.ended, why = 1, 1, "it has bundles of a placement group"
	case moves && taken && work.Actors > 0 && !in.View.Cluster.Consolidate.Allows(work.Needs):
		one.ended, why = 1, "actors are taken only with "+nodepool.ConsolidateAnnotation+": restartable"
	case moves && addon.Plain(m.Node):
		one.moved, u.work = 1, append(u.work, work.Requests...)
		why = fmt.Sprintf("%d replicas of Serve and %d actors move", work.Replicas, work.Actors)
	default:
		one.ended, why = 1, "tasks run there, or actors that do not restart"
	}
	if one.compare(cost{grouped: u.cost.grouped, ended: u.cost.ended, moved: u.cost.moved}) > 0 || u.why == "" {
		u.why = why
	}
	u.cost = u.cost.plus(one)
}

// cheapest returns units that have as many of the GPUs that are asked for as possible, and no more: it takes the
// cheapest first, or the largest first if that has more. Without force, it leaves out units whose work cannot move.
func cheapest(units []unit, ask giveback.Ask) (chosen []unit, gpus int64) {
	units = slices.DeleteFunc(slices.Clone(units), func(u unit) bool { return u.cost.ended > 0 && !ask.Force })
	for range 2 {
		var some []unit
		var sum int64
		for _, u := range units {
			if sum+u.gpus <= ask.GPUs {
				some, sum = append(some, u), sum+u.gpus
			}
		}
		if sum > gpus {
			chosen, gpus = some, sum
		}
		slices.SortStableFunc(units, func(a, b unit) int { return cmp.Compare(b.gpus, a.gpus) })
	}
	return chosen, gpus
}

// reserve returns the reservation of what is chosen.
func (in *Input) reserve(ask giveback.Ask, groups map[string]int64, chosen []unit) giveback.Reservation {
	r := giveback.Reservation{Ask: ask, Deadline: in.View.Now.Add(ask.Within()).UTC().Truncate(time.Second),
		PodGPUs: groups, Workers: []giveback.Worker{}}
	for _, m := range in.View.Members {
		if m.Counted() {
			r.Hold += groups[m.Group]
		}
	}
	r.Hold -= ask.GPUs
	for _, u := range chosen {
		for _, m := range u.members {
			r.Workers = append(r.Workers, giveback.Worker{Pod: m.Pod, UID: m.UID, Group: m.Group,
				GPUs: groups[m.Group], Why: u.why})
		}
	}
	return r
}

// refusal says why an ask cannot be met, and what can be.
func refusal(units []unit, ask giveback.Ask) error {
	most := func(force bool) int64 {
		ask.Force = force
		_, gpus := cheapest(units, ask)
		return gpus
	}
	force := ask.Force
	text := fmt.Sprintf("%s of %s cannot be given back", giveback.GPUs(ask.GPUs), ask.From())
	switch {
	case len(units) == 0:
		text += ": no worker can leave that is above minReplicas, has joined Ray and has the GPUs of its group; " +
			"lower minReplicas if fewer may stay"
	case force:
		text += "; " + giveback.GPUs(most(true)) + " can"
	default:
		forced := giveback.GPUs(most(true))
		if most(true) == ask.GPUs {
			forced = "all"
		}
		text += fmt.Sprintf("; %s can, without ending work that cannot move; with force %s can",
			giveback.GPUs(most(false)), forced)
	}
	var stay []string
	for i := range units {
		if u := &units[i]; u.cost.ended > 0 && !force && len(stay) < mostNamed {
			stay = append(stay, u.members[0].Pod+": "+u.why)
		}
	}
	if len(stay) > 0 {
		text += " (" + strings.Join(stay, "; ") + ")"
	}
	return fmt.Errorf("%w: %s", giveback.ErrRefused, text)
}

// mostNamed bounds the workers that a refusal names.
const mostNamed = 5
