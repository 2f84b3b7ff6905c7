package why

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/place"
)

// reasons explains one group's row: what it launches or why it does not, then the pods on their way, those that stop,
// the idle worker that stays and is closest to being stopped, those that stay until their replacements have joined, and
// those that would be idle but for one thing that uses none of their resources.
func (d *decision) reasons(i int) (all []model.Reason) {
	g, stops, last := &d.Groups[i], -1, -1
	var since time.Time
	var idle, held int64
	busy := map[string]int64{}
	for at := range d.Nodes {
		switch n := &d.Nodes[at]; {
		case n.GroupIndex != i:
			continue
		case n.Stop != "":
			if stops < 0 {
				stops = at
			}
			continue
		case n.State == model.Pending:
			since = model.Earliest(since, n.Since)
		case n.State == model.Idle:
			if idle++; last < 0 || n.IdleSeconds > d.Nodes[last].IdleSeconds {
				last = at
			}
		case n.State == model.Running && len(n.Activity) > 0 && !n.PlainlyBusy():
			busy[n.Busy()[0].Code]++
		}
		if d.out.Stays[at] == place.HeldOver {
			held++
		}
	}
	add := func(is bool, s sentence, args ...any) {
		if is {
			all = append(all, s.with(args...))
		}
	}
	launch := d.launchReason(i)
	all = append(all, launch)
	if d.given[i] > 0 && d.HeldOf(i) == 0 {
		if short := d.minimumReason(i); said(short) {
			all = append(all, short)
		}
	}
	coming := ""
	if g.NodesComing > 0 {
		coming = fmt.Sprintf("; Karpenter has launched nodes for %d of them", g.NodesComing)
	}
	add(g.Pending() > 0, notJoined, model.Pods(g.Pending()), model.OneOrMany(g.Pending(), "has", "have"),
		d.lasting(", the oldest for ", since), coming)
	if launch.Code != model.CodeTrying && launch.Code != model.CodePoolCeiling {
		if g.Trying() && g.Blocked == "" {
			all = append(all, triedOnNode(g))
		}
		if d.Tries(i, d.given) > 0 {
			all = append(all, d.triedInPool(i))
		}
	}
	if stops >= 0 {
		all = append(all, stopping.with(model.Pods(g.Stopping), d.Nodes[stops].Pod, d.Nodes[stops].StopMessage))
	}
	if idle > 0 {
		_, why := d.staysIdle(last)
		all = append(all, idleOf.with(idle, g.Live-g.Stopping, model.Span(d.Nodes[last].IdleSeconds), why))
	}
	add(held > 0, holdOver, model.Pods(held), model.OneOrMany(held, "serves", "serve"))
	all = append(all, d.warmReasons(i)...)
	for _, cause := range []sentence{objectsKeep, groupsKeep, workKeeps} {
		add(busy[cause.code] > 0, cause, model.Pods(busy[cause.code]))
	}
	return all
}

// lasting says for how long something has lasted; nothing if that is unknown.
func (d *decision) lasting(words string, since time.Time) string {
	if since.IsZero() || !since.Before(d.TakenAt) {
		return ""
	}
	return words + model.Span(d.TakenAt.Sub(since).Seconds())
}

// launchReason explains what a group launches, or why nothing: by the demand, unserved or launched for, that its pods
// come closest to serving.
func (d *decision) launchReason(i int) model.Reason {
	g, short := &d.Groups[i], d.minimumReason(i)
	trial := d.TrialOf(i)
	switch {
	case trial != nil: // a replica that is launched to find out what its pods announce
		what := model.Describe(trial.Item.Asked())
		if trial.Gang != nil {
			what = aboutGang(trial.Gang) + ": " + what
		}
		return tryingFor.with(model.Pods(g.Hosts), what, unknownIn(trial.Awaited))
	case d.given[i] > 0:
		return launching.with(model.Pods(d.given[i]), d.purposes(i), d.following(i))
	case g.Blocked != "":
		return blocked(g)
	case said(short):
		return short
	}
	var nearest *place.Item
	for misses, k := math.MaxInt, 0; k < len(d.candidates) && misses > 0; k++ {
		if n := d.misses(d.candidates[k], g.Shape); n < misses {
			nearest, misses = d.candidates[k], n
		}
	}
	switch {
	case nearest != nil && d.waits(nearest) && nearest.Suits(g.Shape) && said(d.limit(i)):
		return d.limit(i)
	case nearest != nil:
		return after(model.Describe(nearest.Asked())+": ", d.groupVerdict(i, nearest))
	case place.SuitsAny(d.DeferredItems(), g.Shape):
		return turnComes.with()
	case g.MinPods > 0 && g.Current <= g.MinPods:
		return keptAtMinimum.with(g.MinPods)
	}
	return noDemand.with()
}

// groupVerdict explains what new pods of a group do for an item.
func (d *decision) groupVerdict(i int, it *place.Item) model.Reason {
	var own int64
	by := -1
	for _, e := range d.out.Log {
		switch {
		case e.Item != it:
		case e.Group == i:
			own += e.Count
		case by < 0:
			by = e.Group
		}
	}
	bound, obstacle := d.boundOf(i), d.obstacle(i, it)
	switch {
	case own > 0:
		choice := ""
		if it.HasChoices() {
			choice = ", " + model.Choice(it.Rank[d.Groups[i].Shape.Labels], it.Alternatives)
		}
		return serves.with(model.Pods(d.given[i]), model.OneOrMany(d.given[i], "serves", "serve"), own, choice)
	case said(obstacle):
		return obstacle
	case by >= 0:
		return cmp.Or(d.elsewhereBound(it, i), otherChosen.with(d.Groups[by].Name, d.advantage(it, by, i)))
	case d.why[it].Code == model.TooMany:
		return d.why[it]
	case d.waits(it):
		reason := notInFull.with()
		if bound.room < place.BundlesOf(d.candidates) {
			reason.Message += "; " + bound.Message
		}
		return reason
	}
	return noneNeeded.with()
}

// waits reports whether some of an item, or of its gang or call, is not served.
func (d *decision) waits(it *place.Item) bool {
	_, gangWaits := d.why[it.Gang]
	return said(d.why[it]) || gangWaits
}

// belowMinimum counts the pods that a group lacks to reach its minimum after the plan's launches.
func (d *decision) belowMinimum(i int) int64 {
	if g := &d.Groups[i]; !g.LimitsConflict() {
		return max(0, g.MinPods-g.Remaining()-d.given[i])
	}
	return 0
}

// minimumReason names the limit that keeps a group below its minimum.
func (d *decision) minimumReason(i int) model.Reason {
	short := d.belowMinimum(i)
	if short == 0 {
		return model.Reason{}
	}
	return after(fmt.Sprintf("%s below its minimum of %d: ", model.Pods(short), d.Groups[i].MinPods),
		cmp.Or(d.limit(i), untilStopped.with()))
}

// A sentence names so many kinds of demand and requests of owners.
const namedPurposes, namedOwned = 3, 2

// purposes lists what a group's pods are launched for.
func (d *decision) purposes(i int) string {
	var parts []string
	g := &d.Groups[i]
	if g.MinPods > g.Remaining() {
		parts = append(parts, fmt.Sprintf("the minimum of %d", g.MinPods))
	}
	switch n := d.out.Warmed[i]; {
	case n == d.given[i]:
		parts = append(parts, "warm capacity")
	case n > 0:
		parts = append(parts, fmt.Sprintf("warm capacity (%s)", model.Pods(n)))
	}
	parts = append(parts, d.purposesOf(i)...)
	if d.launchesPart(i) {
		parts = append(parts, "a part of a gang")
	}
	if more := int64(len(parts) - namedPurposes); more > 0 {
		parts = append(parts[:namedPurposes], model.Plural(more, "more kind")+" of demand")
	}
	text := "for " + joined(parts)
	if len(parts) == 0 {
		text = "for a part of a gang"
		if g.Trying() || len(d.SharedNodes.UnprovenPools(i)) > 0 {
			text = "to find out whether a node comes for it" // a gang needs more than one
		}
	}
	if g.Hosts > 1 {
		text += fmt.Sprintf(" (%d hosts per replica)", g.Hosts)
	}
	return text
}

// launchesPart reports whether the in-flight caps let a group launch only some of the pods that a gang needs.
func (d *decision) launchesPart(i int) bool {
	g := &d.Groups[i]
	var used int64
	for _, e := range d.out.Log {
		if e.Group == i {
			used += e.Opened
		}
	}
	return d.HeldOf(i) > 0 && used < d.given[i] && !g.Trying() && len(d.SharedNodes.UnprovenPools(i)) == 0 &&
		slices.ContainsFunc(d.out.Gangs, func(gang *place.Gang) bool { return place.SuitsAny(gang.Items(), g.Shape) })
}

// purposesOf lists the demand that pods of a group are launched for, in the order of planning, such as gang 3f: 6 ×
// {GPU 1}. Equal gangs count together.
func (d *decision) purposesOf(i int) (texts []string) {
	type purpose struct {
		of, what string // of is empty for gangs and pending requests
		bundles  int64
		gangs    map[*place.Gang]bool
	}
	known, all := map[string]*purpose{}, []*purpose(nil)
	for _, e := range d.out.Log {
		if e.Group != i {
			continue
		}
		what, key := model.Describe(e.Item.Asked()), e.Purpose
		if gang := e.Item.Gang; gang != nil {
			key = gang.Key
		}
		p := known[key+"\x00"+what]
		if p == nil {
			p = &purpose{e.Purpose, what, 0, map[*place.Gang]bool{}}
			if names := d.launchedFor.names(e.Item, e.Purpose); names != "" && e.Purpose == place.OverREST {
				p.of = names + ":"
			}
			known[key+"\x00"+what], all = p, append(all, p)
		}
		if p.bundles += e.Count; e.Item.Gang != nil {
			p.gangs[e.Item.Gang] = true
		}
	}
	for _, p := range all {
		for gang := range p.gangs {
			if p.of = aboutGang(gang) + ":"; len(p.gangs) > 1 {
				p.of = fmt.Sprintf("%d gangs:", len(p.gangs))
			}
		}
		texts = append(texts, strings.TrimSpace(fmt.Sprintf("%s %d × %s", p.of, p.bundles, p.what)))
	}
	return texts
}

// claimants lists REST requests by kind of bundle.
type claimants map[string][]*place.RestRequest

// names lists the requests that a bundle belongs to, with a name for the plain request; nothing if only the plain
// request asks for it.
func (c claimants) names(it *place.Item, plain string) string {
	var names []string
	before := ""
	for _, s := range c[it.Key] {
		if s.Plain {
			before = plain + " and "
			continue
		}
		name := s.ID
		if strings.TrimSpace(s.Owner) != "" {
			name += " of " + s.Owner
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return ""
	}
	before += model.OneOrMany(int64(len(names)), "request ", "requests ")
	if more := len(names) - namedOwned; more > 0 {
		names = append(names[:namedOwned], fmt.Sprintf("%d more", more))
	}
	return before + joined(names)
}

// advantage names the first advantage of the group that was chosen for an item, over another one that could also serve
// it within its limits, in the order in which plans are compared. It is true of these two groups. If no difference
// between them can have decided, it says so.
func (d *decision) advantage(it *place.Item, chosen, other int) string {
	a, b := &d.Groups[chosen], &d.Groups[other]
	rank, otherRank := it.Rank[a.Shape.Labels], it.Rank[b.Shape.Labels]
	ours, theirs := a.Preference(), b.Preference()
	cost := func(i int) float64 { return d.Costs.PerReplica[i] / float64(d.Groups[i].Hosts) }
	dearer := ours == theirs && a.MinPods <= a.Remaining() && place.CompareNearly(cost(other), cost(chosen)) > 0
	switch {
	case ours.Known && !theirs.Known:
		return fmt.Sprintf("a node can hold its pods; nothing shows that one can hold a pod of group %s (%s)", b.Name,
			b.NodeFit.Why)
	case rank < otherRank && it.Request.Moving:
		return "the work runs in this group, and may need the labels of its nodes"
	case rank < otherRank:
		return fmt.Sprintf("its labels match choice %d of the demand, before choice %d", rank+1, otherRank+1)
	case ours.Recoverable > theirs.Recoverable:
		return fmt.Sprintf("it recovers better from failed launches, score %s < %s",
			model.Decimal(model.AmountOr(b.RecoverableScore, 1)), model.Decimal(model.AmountOr(a.RecoverableScore, 1)))
	case ours.Recoverable == theirs.Recoverable && ours.Priority > theirs.Priority:
		return fmt.Sprintf("priority %d < %d", b.Priority, a.Priority)
	case b.Shape.Accelerated && !a.Shape.Accelerated:
		return "it has no accelerators, and the demand needs none"
	case dearer && d.Costs.ByPrice(chosen) && d.Costs.ByPrice(other):
		return fmt.Sprintf("price of a pod %s > %s", model.Rounded(*b.Price), model.Rounded(*a.Price))
	case dearer && d.Size(b.Shape.Total) > d.Size(a.Shape.Total):
		return "its pods are smaller"
	case ours == theirs && d.Sliced && d.MemoryShare(b.Slice) > d.MemoryShare(a.Slice):
		return fmt.Sprintf("it wastes less GPU memory, %s instead of %s", a.Slice.Name(),
			b.Slice.NameOr("GPUs of unknown memory"))
	}
	return "it is part of the best plan found for all waiting demand"
}

func joined(names []string) string { return strings.Join(names, ", ") }
