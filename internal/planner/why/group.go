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
	"heliostat.dev/heliostat/pkg/raydemand"
)

// reasons explains one group's row: what it launches or why it does not, then the pods on their way, those that stop,
// the idle worker that stays and is closest to being stopped, those that stay until their replacements have joined, and
// those that would be idle but for one thing that uses none of their resources.
func (d *decision) reasons(i int) []model.Reason {
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
		case n.State == model.Running && len(n.Activity) > 0 && !usesResources(n.Node):
			busy[Busy(n.Node)[0].Code]++
		}
		if d.out.Stays[at] == place.HeldOver {
			held++
		}
	}
	launch := d.launchReason(i)
	all := []model.Reason{launch}
	if short := d.minimumReason(i); d.given[i] > 0 && d.HeldOf(i) == 0 && said(short) {
		all = append(all, short)
	}
	if n := g.Pending(); n > 0 {
		coming := ""
		if g.NodesComing > 0 {
			coming = fmt.Sprintf("; Karpenter has launched nodes for %d of them", g.NodesComing)
		}
		all = append(all, notJoined.with(model.Pods(n), model.OneOrMany(n, "has", "have"),
			d.lasting(", the oldest for ", since), coming))
	}
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
	if held > 0 {
		all = append(all, holdOver.with(model.Pods(held), model.OneOrMany(held, "serves", "serve")))
	}
	all = append(all, d.warmReasons(i)...)
	for _, cause := range []sentence{objectsKeep, groupsKeep, workKeeps} {
		if n := busy[cause.code]; n > 0 {
			all = append(all, cause.with(model.Pods(n)))
		}
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

func (d *decision) launchReason(i int) model.Reason {
	g := &d.Groups[i]
	if trial := d.TrialOf(i); trial != nil { // a replica that is launched to find out what its pods announce
		what := model.Describe(trial.Item.Asked())
		if trial.Gang != nil {
			what = strings.TrimSpace("gang "+trial.Gang.ID) + ": " + what
		}
		return tryingFor.with(model.Pods(g.Hosts), what, unknownIn(trial.Awaited, trial.Gang))
	}
	if d.given[i] > 0 {
		return launching.with(model.Pods(d.given[i]), d.purposes(i), d.following(i))
	}
	if g.Blocked != "" {
		return blocked(g)
	}
	if short := d.minimumReason(i); said(short) {
		return short
	}
	if slices.ContainsFunc(d.candidates(), func(c candidate) bool { return c.taken < 0 && c.item.Suits(g.Shape) }) {
		reason := notInFull.with("waiting demand")
		reason.Message = model.Join(reason.Message, d.shortOf(i))
		return cmp.Or(d.limit(i), reason)
	}
	reason := d.passedOver(i)
	switch {
	case said(reason):
		return reason
	case place.SuitsAny(d.DeferredItems(), g.Shape):
		return turnComes.with()
	case g.MinPods > 0 && g.Current <= g.MinPods:
		return keptAtMinimum.with(g.MinPods)
	}
	return noDemand.with()
}

// shortOf names what keeps a group from serving a gang or a call of request_resources in full, if it is its pods or its
// limit.
func (d *decision) shortOf(i int) string {
	b := d.boundOf(i)
	short := func(items []*place.Item) bool {
		return place.SuitsAny(items, d.Groups[i].Shape) && b.room < place.BundlesOf(items)
	}
	for _, g := range d.out.Gangs {
		for _, it := range g.Items() {
			if reason := d.awaitedReason(i, it, g); said(reason) {
				return reason.Message
			}
		}
		if d.Groups[i].Carries(g.TopologyLabel) && slices.ContainsFunc(g.Options, short) {
			return b.Message
		}
	}
	if slices.ContainsFunc(d.out.Claims, func(c int) bool { return short(d.UnservedOf(c, d.out)) }) {
		return b.Message
	}
	return ""
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
	text := fmt.Sprintf("%s below its minimum of %d", model.Pods(short), d.Groups[i].MinPods)
	if limit := d.limit(i); said(limit) {
		return after(text+": ", limit)
	}
	return untilStopped.with(text)
}

// namedPurposes is how many kinds of demand a sentence names before it counts the rest. namedOwned is the same for
// requests of owners. namedLetters is how many letters of an owner's name it keeps.
const (
	namedPurposes = 3
	namedOwned    = 2
	namedLetters  = 40
)

// purposes lists what a group's pods are launched for.
func (d *decision) purposes(i int) string {
	var parts []string
	g := &d.Groups[i]
	if g.MinPods > g.Remaining() {
		parts = append(parts, fmt.Sprintf("the minimum of %d", g.MinPods))
	}
	switch n := d.out.WarmLaunched(i); {
	case n == d.given[i]:
		parts = append(parts, "warm capacity")
	case n > 0:
		parts = append(parts, fmt.Sprintf("warm capacity (%s)", model.Pods(n)))
	}
	parts = append(parts, d.purposesOf(i)...)
	if more := int64(len(parts) - namedPurposes); more > 0 {
		parts = append(parts[:namedPurposes], fmt.Sprintf("%d more %s of demand", more,
			model.OneOrMany(more, "kind", "kinds")))
	}
	text := "for " + strings.Join(parts, ", ")
	if len(parts) == 0 {
		text = "to find out whether a node comes for it" // a gang needs more than one
	}
	if g.Hosts > 1 {
		text += fmt.Sprintf(" (%d hosts per replica)", g.Hosts)
	}
	return text
}

// purposesOf lists what pods of a group are launched for, in the order of planning, such as gang 3f: 6 × {GPU 1}. Equal
// gangs count together.
func (d *decision) purposesOf(i int) (texts []string) {
	type kind struct{ of, gangs, what string }
	type purpose struct {
		of, what string // of is empty for gangs and pending requests
		bundles  int64
		gangs    []*place.Gang
	}
	known, all := map[kind]*purpose{}, []*purpose(nil)
	for _, e := range d.out.Log {
		if e.Group != i {
			continue
		}
		gang := e.Item.Gang
		k := kind{of: e.Purpose, what: model.Describe(e.Item.Asked()) + partOfSlice(&d.Groups[i], e.Item)}
		if gang != nil {
			k.gangs = gang.Key
		}
		p := known[k]
		if p == nil {
			p = &purpose{of: e.Purpose, what: k.what}
			if names := d.launchedFor.names(e.Item, e.Purpose); names != "" && e.Purpose == place.OverREST {
				p.of = names + ":"
			}
			known[k], all = p, append(all, p)
		}
		p.bundles += e.Count
		if gang != nil {
			p.gangs = append(p.gangs, gang)
		}
	}
	for _, p := range all {
		slices.SortFunc(p.gangs, func(a, b *place.Gang) int { return a.Number - b.Number })
		switch gangs := slices.Compact(p.gangs); {
		case len(gangs) > 1:
			p.of = fmt.Sprintf("%d gangs:", len(gangs))
		case len(gangs) == 1 && gangs[0].ID == "":
			p.of = "gang"
		case len(gangs) == 1:
			p.of = "gang " + gangs[0].ID + ":"
		}
		texts = append(texts, strings.TrimSpace(fmt.Sprintf("%s %d × %s", p.of, p.bundles, p.what)))
	}
	return texts
}

// claimants lists REST requests by kind of bundle.
type claimants map[string][]*place.RestRequest

// names lists the requests that a bundle belongs to, with a name for the plain request; nothing if only the plain
// request asks for it. It keeps the end of a long name of an owner, because all ServiceAccount names begin alike.
func (c claimants) names(it *place.Item, plain string) string {
	var names []string
	before := ""
	for _, s := range c[it.Key] {
		if s.Plain {
			before = plain + " and "
			continue
		}
		owner := s.Owner
		if letters := []rune(owner); len(letters) > namedLetters {
			owner = "…" + string(letters[len(letters)-namedLetters+1:])
		}
		names = append(names, s.ID+" of "+owner)
	}
	switch n := len(names); {
	case n == 0:
		return ""
	case n == 1:
		return before + "request " + names[0]
	case n == namedOwned:
		return before + "requests " + strings.Join(names, " and ")
	default:
		return fmt.Sprintf("%srequests %s and %d more", before, joined(names[:namedOwned]), n-namedOwned)
	}
}

// candidate is demand that pods are launched for, or that needs them. taken is the group launched for it, or negative.
type candidate struct {
	item  *place.Item
	taken int
}

// considered lists unserved demand, then demand that pods are launched for, each item once.
func (d *decision) considered() (all []candidate) {
	known := map[*place.Item]bool{}
	add := func(taken int, items ...*place.Item) {
		for _, it := range items {
			if !known[it] && !(taken < 0 && it.Deferred) {
				known[it] = true
				all = append(all, candidate{it, taken})
			}
		}
	}
	for at, n := range d.out.Unserved {
		if n > 0 {
			add(-1, d.Requests[at])
		}
	}
	for _, g := range d.out.Gangs {
		if !g.Deferred {
			add(-1, g.Items()...)
		}
	}
	for _, i := range d.out.Claims {
		add(-1, d.UnservedOf(i, d.out)...)
	}
	for _, e := range d.out.Log {
		add(e.Group, e.Item)
	}
	return all
}

// passedOver explains why a group without launches was not chosen, for the unserved or launching demand that its pods
// come closest to serving.
func (d *decision) passedOver(i int) (reason model.Reason) {
	var nearest candidate
	misses := math.MaxInt
	for _, c := range d.candidates() {
		if n := d.misses(c.item, d.Groups[i].Shape); n < misses {
			nearest, misses = c, n
		}
		if misses == 0 {
			break
		}
	}
	if nearest.item == nil {
		return reason
	}
	if reason = d.obstacle(i, nearest.item); !said(reason) && nearest.taken >= 0 {
		reason = d.preferred(nearest, i)
	}
	if said(reason) {
		reason = after(model.Describe(nearest.item.Asked())+": ", reason)
	}
	return reason
}

// preferred explains why one group was chosen for demand that another group could also serve within its limits. The
// sentence is true of these two groups. If no difference between them can have decided, the sentence says so.
func (d *decision) preferred(c candidate, other int) model.Reason {
	if reason := d.elsewhereBound(c.item, other); said(reason) {
		return reason
	}
	return otherChosen.with(d.Groups[c.taken].Name, d.advantage(c, other))
}

// advantage names the first advantage of the chosen group, in the order in which plans are compared.
func (d *decision) advantage(c candidate, other int) string {
	a, b := &d.Groups[c.taken], &d.Groups[other]
	rank, otherRank := c.item.Rank[a.Shape.Labels], c.item.Rank[b.Shape.Labels]
	ours, theirs := a.Preference(), b.Preference()
	switch {
	case ours.Known && b.Waiting():
		return fmt.Sprintf("a node can hold its pods now; those of group %s wait (%s)", b.Name, b.NodeFit.Why)
	case ours.Known && !theirs.Known:
		return fmt.Sprintf("a node can hold its pods; nothing shows that one can hold a pod of group %s (%s)",
			b.Name, b.NodeFit.Why)
	case rank < otherRank && c.item.Request.Moving:
		return "the work runs in this group, and may need the labels of its nodes"
	case rank < otherRank:
		return fmt.Sprintf("its labels match choice %d of the demand, before choice %d", rank+1, otherRank+1)
	case d.forMinimum(c.taken):
		return fmt.Sprintf("the pods for its minimum of %d have room", a.MinPods)
	case ours.Recoverable > theirs.Recoverable:
		return fmt.Sprintf("it recovers better from failed launches, score %s < %s",
			model.Decimal(model.AmountOr(b.RecoverableScore, 1)),
			model.Decimal(model.AmountOr(a.RecoverableScore, 1)))
	case ours.Recoverable == theirs.Recoverable && ours.Priority > theirs.Priority:
		return fmt.Sprintf("priority %d < %d", b.Priority, a.Priority)
	case b.Shape.Accelerated && !a.Shape.Accelerated:
		return "it has no accelerators, and the demand needs none"
	}
	if ours == theirs {
		if text := d.costsMore(c.taken, other); text != "" {
			return text
		}
		if d.Sliced && d.MemoryShare(b.Slice) > d.MemoryShare(a.Slice) {
			return fmt.Sprintf("it wastes less GPU memory, %s instead of %s", a.Slice.Name(),
				b.Slice.NameOr("GPUs of unknown memory"))
		}
		samePrice := a.Price == b.Price || a.Price != nil && b.Price != nil && *a.Price == *b.Price
		if samePrice && a.Hosts == b.Hosts && a.Shape.Labels == b.Shape.Labels &&
			slices.Equal(a.Shape.Total, b.Shape.Total) {
			return "both offer the same, and its name sorts first"
		}
	}
	return "it is part of the best plan found for all waiting demand"
}

// forMinimum reports whether the group's minimum explains all pods that the plan launches for it.
func (d *decision) forMinimum(i int) bool {
	g := &d.Groups[i]
	short := place.RoundUp(max(0, g.MinPods-g.Remaining()), g.Hosts)
	return short > 0 && d.given[i] <= short
}

// costsMore compares the launched pods of a group with the fewest that another group would have to launch for the same
// demand. It compares amounts alone, as if they were divisible. It returns an empty string if the other group might not
// cost more, or could not serve all of the demand.
func (d *decision) costsMore(taken, other int) string {
	a, b, pods := &d.Groups[taken], &d.Groups[other], d.given[taken]
	least, sum := int64(0), make([]float64, len(d.Names))
	for _, e := range d.out.Log {
		if e.Group != taken {
			continue
		}
		if !e.Item.Suits(b.Shape) {
			return ""
		}
		for _, t := range e.Item.Need {
			sum[t.Resource] += float64(t.Amount) * float64(e.Count)
		}
		least = max(least, 1)
		if gang := e.Item.Gang; gang != nil && gang.Strategy == raydemand.StrictSpread {
			least = max(least, e.Count)
		}
	}
	for r, amount := range sum {
		if total := float64(b.Shape.Total[r]); amount > 0 && total > 0 {
			least = max(least, int64(min(math.Ceil(amount/total*(1-1e-12)), place.MaxCount)))
		}
	}
	least = place.RoundUp(least, b.Hosts)
	more := func(theirs, ours float64) bool {
		return place.CompareNearly(theirs*float64(least), ours*float64(pods)) > 0
	}
	each := func(i int) float64 { return d.Costs.PerReplica[i] / float64(d.Groups[i].Hosts) }
	if least == 0 || a.MinPods > a.Remaining() || !more(each(other), each(taken)) {
		return ""
	}
	of := fmt.Sprintf(" (%s instead of %s)", model.Pods(least), model.Pods(pods))
	if d.Costs.ByPrice(taken) && d.Costs.ByPrice(other) {
		if least == pods {
			return fmt.Sprintf("price %s > %s", model.Decimal(*b.Price), model.Decimal(*a.Price))
		}
		return fmt.Sprintf("price %s > %s%s", model.Rounded(*b.Price*float64(least)),
			model.Rounded(*a.Price*float64(pods)), of)
	}
	ours, theirs := d.Size(a.Shape.Total), d.Size(b.Shape.Total)
	switch {
	case theirs > ours && least >= pods:
		return "its pods are smaller"
	case theirs*float64(least) > ours*float64(pods):
		return "it uses less in total" + of
	}
	return ""
}

func joined(names []string) string { return strings.Join(names, ", ") }
