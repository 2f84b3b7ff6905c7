package planner_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// builder puts entries into a snapshot.
type builder struct {
	file     string
	snapshot *model.Snapshot
	nodes    []pendingNode // nodes to complete after all groups are known
}

func (b *builder) read(e entry) error {
	tokens, err := scan(e.text)
	if err != nil {
		return fmt.Errorf("%s:%d: %w", b.file, e.line+1, err)
	}
	r := &reader{tokens: tokens, about: e.section}
	switch e.section {
	case sectionCluster:
		b.cluster(r)
	case sectionPolicy:
		b.policy(r)
	case sectionGroups:
		b.group(r)
	case sectionHead:
		b.head(r, e)
	case sectionNodes:
		b.node(r, e)
	case sectionDemand:
		b.demand(r)
	case sectionWarm:
		b.warm(r)
	}
	if r.err != nil {
		return fmt.Errorf("%s:%d: %w", b.file, e.line+1, r.err)
	}
	return nil
}

func (b *builder) cluster(r *reader) {
	s := b.snapshot
	r.attributes(map[string]func(){
		"name":                 func() { s.Name = r.text("the RayCluster's name") },
		"taken":                func() { s.TakenAt = r.moment("taken") },
		"max-workers":          func() { s.MaxWorkers = pointer(r.count("max-workers")) },
		"mode":                 func() { s.UpscalingMode = r.mode() },
		"idle-timeout":         func() { s.IdleTimeoutSeconds = pointer(r.seconds("idle-timeout")) },
		"ignore-launch-config": func() { s.LaunchConfigCheckDisabled = true },
		"isolation": func() {
			s.Isolation = nodepool.RequiredIsolation(r.oneOf("isolation", requiredIsolations))
		},
	})
}

var requiredIsolations = []string{
	string(nodepool.RequireHardware), string(nodepool.RequireLimit), string(nodepool.AnyIsolation),
}

func (r *reader) mode() string {
	return r.oneOf("mode", []string{"Default", "Aggressive", "Conservative"})
}

// oneOf reads one of a few words.
func (r *reader) oneOf(what string, words []string) string {
	text := r.text(what + ": " + list(words))
	if !slices.Contains(words, text) {
		r.fail("%s %q: want %s", what, text, list(words))
	}
	return text
}

func (b *builder) policy(r *reader) {
	p := &b.snapshot.Policy
	r.attributes(map[string]func(){
		"work":          func() { p.Work = int64(r.count("work")) },
		"max-in-flight": func() { p.MaxInFlight = r.count("max-in-flight") },
	})
}

func pointer[T any](value T) *T { return &value }

// reader parses one entry. It keeps the first problem; after that, every method returns a zero value.
type reader struct {
	tokens []token
	about  string // the object that the entry describes: "group a100"
	err    error
}

func (r *reader) fail(format string, arguments ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %s", r.about, fmt.Sprintf(format, arguments...))
		r.tokens = nil
	}
}

func (r *reader) done() bool { return len(r.tokens) == 0 }

// peek returns the next token as written, without its quotes.
func (r *reader) peek() string {
	if r.done() {
		return ""
	}
	if t := r.tokens[0]; t.kind != key {
		return t.text
	}
	return r.tokens[0].text + ":"
}

// accept takes the next token if it is this word or mark.
func (r *reader) accept(text string) bool {
	if r.done() || r.tokens[0].kind == quoted || r.tokens[0].kind == key || r.tokens[0].text != text {
		return false
	}
	r.tokens = r.tokens[1:]
	return true
}

// text takes a word or a quoted text; want describes it.
func (r *reader) text(want string) string {
	switch {
	case r.done():
		r.fail("the line ends: want %s", want)
		return ""
	case r.tokens[0].kind != word && r.tokens[0].kind != quoted:
		r.fail("%q: want %s", r.peek(), want)
		return ""
	}
	taken := r.tokens[0].text
	r.tokens = r.tokens[1:]
	return taken
}

// object reads {key: value, …} and calls read for each key.
func (r *reader) object(want string, read func(name string)) {
	if !r.accept("{") {
		r.fail("%q: want %s", r.peek(), want)
		return
	}
	seen := map[string]bool{}
	for !r.accept("}") {
		if r.done() || r.tokens[0].kind != key {
			r.fail("%q: want KEY: VALUE, or } at the end of %s", r.peek(), want)
			return
		}
		name := r.tokens[0].text
		r.tokens = r.tokens[1:]
		if seen[name] {
			r.fail("%s: the key is there twice: want each key once", name)
		}
		seen[name] = true
		if read(name); r.err != nil {
			return
		}
		if !r.accept(",") && r.peek() != "}" {
			r.fail("%q behind %s: want , or }", r.peek(), name)
		}
	}
}

// array reads [value, …].
func (r *reader) array(want string, read func()) {
	if !r.accept("[") {
		r.fail("%q: want %s", r.peek(), want)
		return
	}
	for r.err == nil && !r.accept("]") {
		if read(); !r.accept(",") && r.peek() != "]" {
			r.fail("%q: want , or ]", r.peek())
		}
	}
}

func (r *reader) integer(what string) int64 {
	text := r.text(what + ", a whole number")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		r.fail("%s %q: want a whole number", what, text)
	}
	return n
}

func (r *reader) count(what string) int {
	n := r.integer(what)
	if n < 0 {
		r.fail("%s %d: want a whole number from 0", what, n)
	}
	return int(n)
}

func (r *reader) number(what string) float64 {
	text := r.text(what + ", a number")
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f < 0 {
		r.fail("%s %q: want a number from 0", what, text)
	}
	return f
}

// seconds reads a number with the unit s.
func (r *reader) seconds(what string) float64 {
	text := r.text(what + " such as 30s")
	digits, found := strings.CutSuffix(text, "s")
	f, err := strconv.ParseFloat(digits, 64)
	if !found || err != nil || f < 0 {
		r.fail("%s %q: want seconds such as 30s", what, text)
	}
	return f
}

func (r *reader) moment(what string) time.Time {
	text := r.text(what + ", a time")
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		r.fail("%s %q: want a time such as 2026-01-31T12:00:00Z", what, text)
	}
	return at
}

var memoryUnits = []struct {
	suffix string
	bytes  int64
}{{"Ti", 1 << 40}, {"Gi", 1 << 30}, {"Mi", 1 << 20}}

// amount reads a quantity: 0.5, or 16Gi for a whole number of GiB in bytes.
func (r *reader) amount(what string) raydemand.Amount {
	text := r.text(what + ", an amount")
	digits, unit := text, int64(1)
	for _, u := range memoryUnits {
		if cut, found := strings.CutSuffix(text, u.suffix); found {
			digits, unit = cut, u.bytes
		}
	}
	a, err := raydemand.ParseAmount(digits)
	if err != nil || a < 0 {
		r.fail("%s %q: want an amount such as 0.5 or 16Gi", what, text)
	}
	return a.Times(unit)
}

func (r *reader) bundle() raydemand.Bundle {
	b := raydemand.Bundle{}
	r.object("resources such as {CPU: 4, memory: 16Gi}", func(name string) { b[name] = r.amount(name) })
	return b
}

func (r *reader) labels() map[string]string {
	labels := map[string]string{}
	r.object("labels such as {zone: a}", func(name string) { labels[name] = r.text("a value for " + name) })
	return labels
}

func (r *reader) selector() raydemand.Selector {
	expressions := map[string]string{}
	r.object(`a selector such as {zone: a} or {zone: "!in(a,b)"}`, func(name string) {
		expressions[name] = r.text("an expression for " + name)
	})
	s, err := raydemand.ParseSelector(expressions)
	if err != nil {
		r.fail("%v", err)
	}
	return s
}

// attributes reads NAME VALUE… until the entry ends.
func (r *reader) attributes(read map[string]func()) {
	seen := map[string]bool{}
	for !r.done() {
		name := r.text("an attribute: " + list(sortedKeys(read)))
		if r.err != nil {
			return
		}
		f := read[name]
		switch {
		case f == nil:
			r.fail("%q: want %s", name, list(sortedKeys(read)))
			return
		case seen[name] && name != "pool" && name != "activity" && name != "announces":
			r.fail("%s is there twice: want it once", name)
			return
		}
		seen[name] = true
		f()
	}
}

// group reads NAME {resources} MIN..MAX and attributes. Without a maximum, the group has no limit.
func (b *builder) group(r *reader) {
	g := model.Group{Name: r.text("a worker group's name"), NumOfHosts: 1}
	r.about = "group " + g.Name
	if slices.ContainsFunc(b.snapshot.Groups, func(other model.Group) bool { return other.Name == g.Name }) {
		r.fail("the name is taken: want a name of its own")
	}
	g.Resources = r.bundle()
	g.Min, g.Max = r.limits()
	r.attributes(map[string]func(){
		"replicas":      func() { g.Replicas = pointer(r.count("replicas")) },
		"hosts":         func() { g.NumOfHosts = r.count("hosts") },
		"labels":        func() { g.Labels = r.labels() },
		"idle-timeout":  func() { g.IdleTimeoutSeconds = pointer(r.seconds("idle-timeout")) },
		"priority":      func() { g.Priority = int(r.integer("priority")) },
		"price":         func() { g.Price = pointer(r.number("price")) },
		"availability":  func() { g.CloudAvailability = pointer(r.number("availability")) },
		"recoverable":   func() { g.RecoverableScore = pointer(r.number("recoverable")) },
		"launch-config": func() { g.LaunchConfigHash = r.text("launch-config, a hash") },
		"closed":        func() { g.Closed = r.text("closed, a reason in quotes") },
		"cooling":       func() { g.CoolingSeconds = r.seconds("cooling") },
		"nodes-coming":  func() { g.NodesComing = r.count("nodes-coming") },
		"trying":        func() { g.NodeFit = r.nodeFit(model.FitTrying) },
		"nowhere":       func() { g.NodeFit = r.nodeFit(model.FitNowhere) },
		"waiting":       func() { g.NodeFit = r.nodeFit(model.FitWaiting) },
		"limited":       func() { g.NodeFit = r.nodeFit(model.FitLimited) },
		"gpu":           func() { g.Slice = r.slice() },
		"pool":          func() { g.Pools = append(g.Pools, r.pool()) },
		"announces":     func() { g.Announces = append(g.Announces, r.announced()) },
	})
	b.snapshot.Groups = append(b.snapshot.Groups, g)
}

// nodeFit reads why no known node holds the group's pods.
func (r *reader) nodeFit(verdict model.FitVerdict) *model.NodeFit {
	return &model.NodeFit{Verdict: verdict, Why: r.text(string(verdict) + ", a reason in quotes")}
}

// limits reads 0..4, or 0.. for no maximum.
func (r *reader) limits() (least, most int) {
	const want = "MIN..MAX such as 0..4, or 0.. without a maximum"
	text := r.text(want)
	from, to, found := strings.Cut(text, "..")
	least, err := strconv.Atoi(from)
	most = math.MaxInt32
	if err == nil && to != "" {
		most, err = strconv.Atoi(to)
	}
	if !found || err != nil || least < 0 || most < 0 {
		r.fail("%q: want %s", text, want)
	}
	return least, most
}

// slice reads what one GPU of a group is.
func (r *reader) slice() *model.Slice {
	s := &model.Slice{}
	read := map[string]func(){
		"kind":      func() { s.Kind = gpuinfo.Kind(r.text("a kind such as mig or whole")) },
		"memory":    func() { s.MemoryMiB = pointer(r.mebibytes()) },
		"compute":   func() { s.ComputeFraction = pointer(r.fraction("compute")) },
		"isolation": func() { s.Isolation = gpuinfo.Isolation(r.text("an isolation such as hardware")) },
		"profile":   func() { s.Profile = r.text("a MIG profile") },
		"product":   func() { s.Product = r.text("a product") },
		"blocks":    func() { s.Blocks = pointer(r.integer("blocks")) },
	}
	r.fields("a GPU such as {kind: mig, profile: 1g.5gb, memory: 4864Mi}", read)
	return s
}

// fields reads an object with known keys.
func (r *reader) fields(want string, read map[string]func()) {
	r.object(want, func(name string) {
		if f := read[name]; f != nil {
			f()
			return
		}
		r.fail("%s: want %s", name, list(sortedKeys(read)))
	})
}

// fraction reads a number, or two numbers with a slash, such as 3/7.
func (r *reader) fraction(what string) float64 {
	upper, lower, stroke := strings.Cut(r.peek(), "/")
	if !stroke {
		return r.number(what)
	}
	text := r.text(what)
	a, err := strconv.Atoi(upper)
	b, err2 := strconv.Atoi(lower)
	if err != nil || err2 != nil || a < 0 || b <= 0 {
		r.fail("%s %q: want a number such as 0.5 or 3/7", what, text)
	}
	return float64(a) / float64(max(b, 1))
}

func (r *reader) mebibytes() int64 {
	text := r.text("memory such as 4864Mi")
	digits, found := strings.CutSuffix(text, "Mi")
	n, err := strconv.ParseInt(digits, 10, 64)
	if !found || err != nil || n < 0 {
		r.fail("memory %q: want MiB such as 4864Mi", text)
	}
	return n
}

// pool reads a pool of nodes that the group's pods can be scheduled on.
func (r *reader) pool() landing.GroupPool {
	p := landing.GroupPool{Name: r.text("a pool's name")}
	r.fields("a pool such as {pods: 4, resource: nvidia.com/gpu, units: 1}", map[string]func(){
		"pods":          func() { p.MaxPods = pointer(r.integer("pods")) },
		"resource":      func() { p.Resource = r.text("a Kubernetes resource") },
		"units":         func() { p.Units = r.integer("units") },
		"profile-fixed": func() { p.ProfileFixed = r.oneOf("profile-fixed", []string{"yes"}) == "yes" },
		"shares":        func() { p.Shares = r.shares() },
		"cards":         func() { r.array("a list of cards [{…}]", func() { p.Cards = append(p.Cards, r.cards()) }) },
	})
	return p
}

// shares reads {cpu: 4000/128000}: the amount of one pod and the amount of the pool.
func (r *reader) shares() []landing.PoolShare {
	var shares []landing.PoolShare
	r.object("shares such as {cpu: 4000/128000}", func(name string) {
		text := r.text("UNITS/CAPACITY")
		units, capacity, found := strings.Cut(text, "/")
		takes, err := strconv.ParseInt(units, 10, 64)
		has, err2 := strconv.ParseInt(capacity, 10, 64)
		if !found || err != nil || err2 != nil {
			r.fail("share %s %q: want UNITS/CAPACITY such as 4000/128000", name, text)
		}
		shares = append(shares, landing.PoolShare{Resource: name, Units: takes, Capacity: has})
	})
	return shares
}

// cards reads the cards of a pool in their current layout.
func (r *reader) cards() sharing.CutCards {
	var c sharing.CutCards
	r.fields(`cards such as {product: "A100 40GB", count: 4}`, map[string]func(){
		"product": func() { c.Product = r.text("a product") },
		"count":   func() { c.Count = r.integer("count") },
		"busy":    func() { c.Busy = pointer(r.integer("busy")) },
		"cut": func() {
			r.object("profiles with counts such as {1g.5gb: 7}", func(profile string) {
				c.Cut = append(c.Cut, sharing.Cut{Profile: profile, Count: r.integer(profile)})
			})
		},
	})
	return c
}

// pendingNode is a node as written in the file. What is nil follows from its group.
type pendingNode struct {
	node        model.Node
	total, free raydemand.Bundle
	labels      map[string]string
	isHead      bool
	// unreported: Ray reports no resources of the node. freeUnknown: Ray does not report what is free on it.
	unreported, freeUnknown bool
	entry                   entry
}

var nodeStates = map[string]model.NodeState{
	"running": model.Running, "idle": model.Idle, "pending": model.Pending, "timed-out": model.AllocationTimeout,
	"leaving": model.Leaving,
}

// joined reports whether Ray knows the node, so that it has resources and labels.
func joined(state model.NodeState) bool { return state == model.Running || state == model.Idle }

// node reads POD GROUP STATE [{total}] and attributes.
func (b *builder) node(r *reader, e entry) {
	p := pendingNode{node: model.Node{Pod: r.text("a pod's name")}}
	r.about = "node " + p.node.Pod
	for _, other := range b.nodes {
		if !other.isHead && other.node.Pod == p.node.Pod {
			r.fail("the name is taken: want a name of its own")
		}
	}
	p.node.Group = r.text("the worker group's name")
	b.rest(r, e, p)
}

// headGroup is the default group name of a head.
const headGroup = "headgroup"

// head reads STATE [{total}] and attributes.
func (b *builder) head(r *reader, e entry) {
	for _, other := range b.nodes {
		if other.isHead {
			r.fail("a second head: want one line")
		}
	}
	b.rest(r, e, pendingNode{node: model.Node{Group: headGroup}, isHead: true})
}

func (b *builder) rest(r *reader, e entry, p pendingNode) {
	n := &p.node
	text := r.text("a state: " + list(sortedKeys(nodeStates)))
	state, known := nodeStates[text]
	if !known {
		r.fail("state %q: want %s", text, list(sortedKeys(nodeStates)))
	}
	n.State = state
	if r.peek() == "{" {
		p.total = r.bundle()
	}
	read := map[string]func(){
		"unreported":          func() { p.unreported = true },
		"free":                func() { p.readFree(r) },
		"for":                 func() { n.IdleSeconds = r.seconds("for") },
		"labels":              func() { p.labels = r.labels() },
		"placed":              func() { n.PlacedLabels = r.labels() },
		"resources":           func() { n.Resources = r.bundle() },
		"refused":             func() { n.Refused = r.bundle() },
		"activity":            func() { n.Activity = append(n.Activity, r.text("why the node is not idle")) },
		"on":                  func() { n.KubeNode = r.text("a Kubernetes node's name") },
		"guarded-by":          func() { n.Guard = r.text("heliostat or user") },
		"since":               func() { n.Since = r.moment("since") },
		"goes":                func() { n.Going = r.departure(true) },
		"may-go":              func() { n.Going = r.departure(false) },
		"arrives":             func() { n.Arrival = r.arrival() },
		"replica":             func() { n.Replica = r.text("a replica's name") },
		"expected":            func() { n.Expected = true },
		"im-state":            func() { n.IMState = r.text("a state of Ray's instance manager") },
		"launch-config":       func() { n.LaunchConfigHash = r.text("launch-config, a hash") },
		"group-launch-config": func() { n.GroupLaunchConfigHash = r.text("group-launch-config, a hash") },
	}
	if p.isHead {
		read["pod"] = func() { n.Pod = r.text("the head's pod") }
		read["group"] = func() { n.Group = r.text("the head's group") }
	}
	r.attributes(read)
	p.entry = e
	b.nodes = append(b.nodes, p)
}

// readFree reads what is free, or "unknown".
func (p *pendingNode) readFree(r *reader) {
	if r.accept("unknown") {
		p.freeUnknown = true
		return
	}
	p.free = r.bundle()
}

// resolve sets what nodes take from their groups. It returns an error if the group does not exist.
func (b *builder) resolve() error {
	if b.snapshot.Groups == nil {
		b.snapshot.Groups = []model.Group{}
	}
	for _, p := range b.nodes {
		group := groupNamed(b.snapshot, p.node.Group)
		if joined(p.node.State) && p.total == nil && !p.unreported && group == nil && p.node.Resources == nil {
			return fmt.Errorf("%s:%d: %s: there is no group %s to take resources from: want them such as {CPU: 4}",
				b.file, p.entry.line+1, p.entry.section, p.node.Group)
		}
		n := p.node
		n.Total, n.Available, n.Labels = p.total, p.free, p.labels
		total, labels := fromGroup(n, group)
		if p.total == nil && !p.unreported {
			n.Total = total
		}
		if p.free == nil && !p.freeUnknown && joined(n.State) {
			n.Available = maps.Clone(n.Total)
		}
		if p.labels == nil {
			n.Labels = labels
		}
		if p.isHead {
			b.snapshot.Head = &n
		} else {
			b.snapshot.Nodes = append(b.snapshot.Nodes, n)
		}
	}
	return nil
}

// fromGroup returns the defaults of a node. A node that has joined has all resources of its group.
func fromGroup(n model.Node, group *model.Group) (raydemand.Bundle, map[string]string) {
	if !joined(n.State) || group == nil || n.Resources != nil {
		return nil, nil
	}
	return maps.Clone(group.Resources), maps.Clone(group.Labels)
}

func groupNamed(s *model.Snapshot, name string) *model.Group {
	for i := range s.Groups {
		if s.Groups[i].Name == name {
			return &s.Groups[i]
		}
	}
	return nil
}

// demand reads one demand. A line that starts with a count or a bundle is a pending request.
func (b *builder) demand(r *reader) {
	s := b.snapshot
	switch {
	case r.accept("gang"):
		s.Gangs = append(s.Gangs, r.gang())
	case r.accept("request_resources"):
		r.about = "request_resources"
		s.Constraint = append(s.Constraint, r.request())
	case r.accept("keep"):
		r.about = "keep"
		s.KeptResources = append(s.KeptResources, r.request())
	case r.accept("owned"):
		s.OwnedRequests = append(s.OwnedRequests, r.owned())
	default:
		s.Requests = append(s.Requests, r.request())
	}
	if !r.done() {
		r.fail("%q: want the end of the line, or a selector, a slice or + before it", r.peek())
	}
}

// times reads "8 ×" before a bundle. The default is 1.
func (r *reader) times() int64 {
	if r.peek() == "{" {
		return 1
	}
	text := r.text("COUNT × {resources}, {resources}, gang, request_resources, keep or owned")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		r.fail("%q: want COUNT × {resources}, {resources}, gang, request_resources, keep or owned", text)
	}
	if !r.accept("×") && !r.accept("x") {
		r.fail("%q: want × between the count and the resources", r.peek())
	}
	return n
}

// request reads 3 × {GPU: 1} [each {memory: 4Gi}] [on {zone: a} or {zone: b}].
func (r *reader) request() raydemand.Request {
	q := raydemand.Request{Count: r.times(), Bundle: r.bundle()}
	if r.accept("each") {
		q.Slice = r.requirement()
	}
	if r.accept("on") {
		q.Selectors = append(q.Selectors, r.selector())
		for r.accept("or") {
			q.Selectors = append(q.Selectors, r.selector())
		}
	}
	return q
}

// requirement reads what a request requires of each GPU.
func (r *reader) requirement() *raydemand.SliceRequirement {
	w := &raydemand.SliceRequirement{}
	r.fields("a requirement such as {memory: 4Gi, isolation: hardware}", map[string]func(){
		"memory":    func() { w.Memory = int64(r.amount("memory") / raydemand.One) },
		"compute":   func() { w.ComputeFraction = r.number("compute") },
		"isolation": func() { w.Isolation = r.oneOf("isolation", requiredIsolations) },
	})
	return w
}

// gang reads [id ID] STRATEGY [topology LABEL], its bundles, and alternatives after "or".
func (r *reader) gang() raydemand.Gang {
	var g raydemand.Gang
	r.about = "gang"
	if r.accept("id") {
		g.ID = r.text("the placement group's id")
		r.about += " " + g.ID
	}
	g.Strategy = raydemand.Strategy(r.text("a strategy"))
	if !g.Strategy.Valid() {
		r.fail("strategy %q: want PACK, SPREAD, STRICT_PACK or STRICT_SPREAD", g.Strategy)
	}
	if r.accept("topology") {
		g.TopologyLabel = r.text("a label")
	}
	g.Bundles, g.BundleSelectors = r.bundles()
	selected := false
	var selectors [][]raydemand.Selector
	for r.accept("or") {
		bundles, each := r.bundles()
		g.Fallbacks, selectors = append(g.Fallbacks, bundles), append(selectors, each)
		selected = selected || each != nil
	}
	if selected {
		g.FallbackSelectors = selectors
	}
	return g
}

// mostBundles limits a gang, so that a typing error does not use up the memory.
const mostBundles = 100_000

// bundles reads 2 × {CPU: 1} [on {zone: a}] + …. If one bundle has a selector, all of them have one.
func (r *reader) bundles() ([]raydemand.Bundle, []raydemand.Selector) {
	var bundles []raydemand.Bundle
	var selectors []raydemand.Selector
	selected := false
	for more := true; more && r.err == nil; more = r.accept("+") {
		n, b, s := r.times(), r.bundle(), raydemand.Selector{}
		if n > mostBundles {
			r.fail("%d bundles: want at most %d", n, mostBundles)
			break
		}
		if r.accept("on") {
			s, selected = r.selector(), true
		}
		for range n {
			bundles, selectors = append(bundles, b.Clone()), append(selectors, s)
		}
	}
	if !selected {
		selectors = nil
	}
	return bundles, selectors
}

// nothing stands for the requests of an owned request without any.
const (
	nothing   = "nothing"
	ownedWant = "by, priority, since, satisfied, all-or-nothing, the requests, or nothing in their place"
)

// owned reads ID by OWNER, attributes, and requests joined by +.
func (r *reader) owned() raydemand.Owned {
	o := raydemand.Owned{ID: r.text("the request's id")}
	r.about = "owned " + o.ID
	for r.err == nil && r.peek() != "{" && !startsWithDigit(r.peek()) {
		switch name := r.text(ownedWant); name {
		case "by":
			o.Owner = r.text("the owner's name")
		case "priority":
			o.Priority = int32(r.integer("priority")) //nolint:gosec // a test file
		case "since":
			o.Since = r.moment("since")
		case "satisfied":
			o.SatisfiedSince = r.moment("satisfied")
		case "all-or-nothing":
			o.AllOrNothing = true
		case nothing:
			return o
		default:
			r.fail("%q: want %s", name, ownedWant)
		}
	}
	for more := true; more && r.err == nil; more = r.accept("+") {
		o.Requests = append(o.Requests, r.request())
	}
	return o
}

func startsWithDigit(text string) bool { return text != "" && text[0] >= '0' && text[0] <= '9' }

// warm reads what a capacity policy wants free: policy "NAME", or an entry such as 2 of gpu or
// 2 × {GPU: 1}, each with by "SCHEDULE" behind it.
func (b *builder) warm(r *reader) {
	s := b.snapshot
	if s.Warm == nil {
		s.Warm = &model.Warm{}
	}
	w := s.Warm
	switch {
	case r.accept("policy"):
		w.Policy = r.text("where the policy is written")
	default:
		e := model.WarmEntry{Name: fmt.Sprintf("keepWarm[%d]", len(w.Keep))}
		if len(r.tokens) > 1 && r.tokens[1].text == "of" {
			e.Count = int64(r.count("how many workers"))
			r.accept("of")
			e.Group = r.text("a group")
		} else {
			request := r.request()
			e.Count, e.Resources = request.Count, request.Bundle
			e.Selectors, e.Slice = request.Selectors, request.Slice
		}
		if r.accept("by") {
			e.Schedule = r.text("a schedule")
		}
		w.Keep = append(w.Keep, e)
	}
	if !r.done() {
		r.fail("%q: want the end of the line, or by SCHEDULE", r.peek())
	}
}

// announced reads what is known about a label or the accelerator type of a group's new pods.
func (r *reader) announced() landing.Announced {
	a := landing.Announced{}
	texts := func(into *[]string) func() {
		return func() { r.array("a list of values [a, b]", func() { *into = append(*into, r.text("a value")) }) }
	}
	r.fields("an announcement such as {name: zone, values: [a], certain: yes}", map[string]func(){
		"name":    func() { a.Name = r.text("a label's key, or accelerator_type: in quotes") },
		"values":  texts(&a.Values),
		"shown":   texts(&a.Shown),
		"present": func() { a.Present = r.oneOf("present", []string{"yes"}) == "yes" },
		"certain": func() { a.Certain = r.oneOf("certain", []string{"yes"}) == "yes" },
		"why":     func() { a.Why = r.text("a reason in quotes") },
	})
	return a
}

// arrival reads STAGE "what holds it up" [entered TIME] [by TIME] [late TIME].
func (r *reader) arrival() *arrival.State {
	s := &arrival.State{Stage: arrival.Stage(r.text("a stage")), Message: r.text("what holds it up, or \"\"")}
	if r.accept("entered") {
		s.Since = r.moment("entered")
	}
	if r.accept("by") {
		s.ExpectedAt = r.moment("by")
	}
	if r.accept("late") {
		s.LateAt = r.moment("late")
	}
	return s
}

// departure reads SIGN "message" [reclaimed] [noticed TIME] [until TIME].
func (r *reader) departure(certain bool) *departure.Notice {
	n := &departure.Notice{Sign: departure.Sign(r.text("a sign")), Message: r.text("what was seen"), Certain: certain}
	n.Reclaimed = r.accept("reclaimed")
	if r.accept("noticed") {
		n.Since = r.moment("noticed")
	}
	if r.accept("until") {
		n.Deadline = r.moment("until")
	}
	return n
}
