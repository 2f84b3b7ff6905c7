package planner_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// object is an object of a snapshot in its JSON form. The decoder of snapshot files checks what it holds.
type object = map[string]any

// builder collects the entries of one scenario as a snapshot in its JSON form.
type builder struct {
	file     string
	snapshot object
	nodes    []node // to complete after all groups are known
}

// node is a node as written, with its entry. It takes what is absent from its group.
type node struct {
	object
	entry                   entry
	isHead                  bool
	unreported, freeUnknown bool
}

func (b *builder) add(list string, value any) {
	all, _ := b.snapshot[list].([]any)
	b.snapshot[list] = append(all, value)
}

func (b *builder) read(e entry) error {
	tokens, err := scan(e.text)
	if err != nil {
		return fmt.Errorf("%s:%d: %w", b.file, e.line+1, err)
	}
	r := &reader{tokens: tokens, about: e.section}
	switch e.section {
	case sectionCluster:
		r.attributes(b.snapshot, clusterAttributes)
	case sectionPolicy:
		policy := object{}
		r.attributes(policy, policyAttributes)
		b.snapshot["policy"] = policy
	case sectionGroups:
		b.add("groups", r.group())
	case sectionHead:
		b.node(r, node{object: object{"group": "headgroup"}, entry: e, isHead: true})
	case sectionNodes:
		b.node(r, node{object: object{"pod": r.text("a pod's name"), "group": r.text("its worker group")}, entry: e})
	case sectionDemand:
		b.demand(r)
	case sectionWarm:
		b.warm(r)
	}
	if !r.done() {
		r.fail("%q: want the end of the line", r.peek())
	}
	if r.err != nil {
		return fmt.Errorf("%s:%d: %w", b.file, e.line+1, r.err)
	}
	return nil
}

// finish completes the nodes and decodes the snapshot.
func (b *builder) finish(line int) (model.Snapshot, error) {
	for _, n := range b.nodes {
		if !n.complete(b.snapshot) {
			return model.Snapshot{}, fmt.Errorf("%s:%d: there is no group %s to take resources from: "+
				"want them such as {CPU: 4}", b.file, n.entry.line+1, n.object["group"])
		}
		if n.isHead {
			b.snapshot["head"] = n.object
		} else {
			b.add("nodes", n.object)
		}
	}
	if b.snapshot["groups"] == nil {
		b.snapshot["groups"] = []any{}
	}
	text, err := json.Marshal(b.snapshot)
	if err != nil {
		return model.Snapshot{}, fmt.Errorf("%s:%d: %w", b.file, line, err)
	}
	return snapshotfile.ReadSnapshot(strings.NewReader(string(text)), fmt.Sprintf("%s:%d", b.file, line))
}

// attribute is a key of an object: its name in JSON, and what reads its value.
type attribute struct {
	key  string
	read func(*reader) any
}

// lists are the keys of attributes that are there once for each element.
var lists = []string{"pools", "announces", "activity"}

var (
	clusterAttributes = map[string]attribute{
		"name": {"name", text}, "taken": {"takenAt", text}, "max-workers": {"maxWorkers", number},
		"mode": {"upscalingMode", text}, "idle-timeout": {"idleTimeoutSeconds", seconds},
		"ignore-launch-config": {"launchConfigCheckDisabled", yes}, "isolation": {"isolation", text},
	}
	policyAttributes = map[string]attribute{"work": {"work", number}, "max-in-flight": {"maxInFlight", number}}
	groupAttributes  = map[string]attribute{
		"replicas": {"replicas", number}, "hosts": {"numOfHosts", number},
		"labels": {"labels", texts}, "idle-timeout": {"idleTimeoutSeconds", seconds},
		"priority": {"priority", number}, "price": {"price", number},
		"recoverable":   {"recoverableScore", number},
		"launch-config": {"launchConfigHash", text}, "closed": {"closed", text}, "gates": {"scaleGates", listOf(text)},
		"cooling": {"coolingSeconds", seconds},
		"trying":  {"nodeFit", fit("trying")}, "nowhere": {"nodeFit", fit("nowhere")},
		"waiting": {"nodeFit", fit("waiting")}, "limited": {"nodeFit", fit("limited")},
		"gpu": {"slice", fields(sliceAttributes)}, "pool": {"pools", pool},
		"announces": {"announces", fields(announcedAttributes)},
	}
	sliceAttributes = map[string]attribute{
		"kind": {"kind", text}, "memory": {"memoryMiB", mebibytes},
		"compute": {"computeFraction", number}, "isolation": {"isolation", text},
		"profile": {"profile", text}, "product": {"product", text},
	}
	announcedAttributes = map[string]attribute{
		"name": {"name", text}, "values": {"values", listOf(text)}, "shown": {"shown", listOf(text)},
		"present": {"present", isYes}, "certain": {"certain", isYes}, "why": {"why", text},
		"per-replica": {"perReplica", isYes},
	}
	poolAttributes = map[string]attribute{
		"pods": {"maxPods", number}, "resource": {"resource", text}, "units": {"units", number},
	}
	nodeAttributes = map[string]attribute{
		"for": {"idleSeconds", seconds}, "labels": {"labels", texts}, "placed": {"placedLabels", texts},
		"resources": {"resources", bundle},
		"activity":  {"activity", text}, "on": {"kubeNode", text},
		"since": {"since", text}, "goes": {"going", departs(true)}, "may-go": {"going", departs(false)},
		"replica": {"replica", text}, "expected": {"expected", yes},
		"im-state": {"imState", text}, "launch-config": {"launchConfigHash", text},
		"free": {"available", bundle},
		"pod":  {"pod", text}, "group": {"group", text},
	}
	requirementAttributes = map[string]attribute{
		"memory": {"memory", inBytes}, "compute": {"computeFraction", number},
		"isolation": {"isolation", text},
	}
)

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
	switch {
	case r.done():
		return ""
	case r.tokens[0].kind == key:
		return r.tokens[0].text + ":"
	}
	return r.tokens[0].text
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
	if r.done() || r.tokens[0].kind != word && r.tokens[0].kind != quoted {
		r.fail("%q: want %s", r.peek(), want)
		return ""
	}
	taken := r.tokens[0].text
	r.tokens = r.tokens[1:]
	return taken
}

// each reads {key: value, …} and calls read for each key.
func (r *reader) each(read func(name string)) {
	if !r.accept("{") {
		r.fail("%q: want {KEY: VALUE, …}", r.peek())
		return
	}
	seen := map[string]bool{}
	for r.err == nil && !r.accept("}") {
		if r.done() || r.tokens[0].kind != key {
			r.fail("%q: want KEY: VALUE or }", r.peek())
			return
		}
		name := r.tokens[0].text
		r.tokens = r.tokens[1:]
		if seen[name] {
			r.fail("%s: the key is there twice: want each key once", name)
		}
		seen[name] = true
		if read(name); !r.accept(",") && r.peek() != "}" {
			r.fail("%q behind %s: want , or }", r.peek(), name)
		}
	}
}

// attributes reads NAME VALUE… until the entry ends.
func (r *reader) attributes(into object, known map[string]attribute) {
	for !r.done() {
		r.attribute(into, known, r.text("an attribute: "+list(sortedKeys(known))))
	}
}

func (r *reader) attribute(into object, known map[string]attribute, name string) {
	a, ok := known[name]
	switch {
	case !ok:
		r.fail("%q: want %s", name, list(sortedKeys(known)))
	case slices.Contains(lists, a.key):
		all, _ := into[a.key].([]any)
		into[a.key] = append(all, a.read(r))
	case into[a.key] != nil && name != "group":
		r.fail("%s is there twice: want it once", name)
	default:
		into[a.key] = a.read(r)
	}
}

// These read values.
func text(r *reader) any { return r.text("a word, or a text in quotes") }
func yes(*reader) any    { return true }
func isYes(r *reader) any {
	if !r.accept("yes") {
		r.fail("%q: want yes", r.peek())
	}
	return true
}

// number reads a number, or two with a slash, such as 3/7. The decoder knows its bounds.
func number(r *reader) any {
	text := r.text("a number")
	if upper, lower, stroke := strings.Cut(text, "/"); stroke {
		a, err := strconv.ParseFloat(upper, 64)
		b, err2 := strconv.ParseFloat(lower, 64)
		if err != nil || err2 != nil || b <= 0 {
			r.fail("%q: want a number such as 0.5 or 3/7", text)
		}
		return a / b
	}
	return json.Number(text)
}

// withUnit reads a number with a unit behind it.
func (r *reader) withUnit(unit string) json.Number {
	text := r.text("a number with " + unit)
	digits, found := strings.CutSuffix(text, unit)
	if !found {
		r.fail("%q: want a number with %s", text, unit)
	}
	return json.Number(digits)
}

func seconds(r *reader) any   { return r.withUnit("s") }
func mebibytes(r *reader) any { return r.withUnit("Mi") }
func inBytes(r *reader) any   { return int64(r.amount() / raydemand.One) }

var memoryUnits = []struct {
	suffix string
	bytes  int64
}{{"Ti", 1 << 40}, {"Gi", 1 << 30}, {"Mi", 1 << 20}}

// amount reads a quantity: 0.5, or 16Gi for a whole number of GiB in bytes.
func (r *reader) amount() raydemand.Amount {
	text := r.text("an amount such as 0.5 or 16Gi")
	digits, unit := text, int64(1)
	for _, u := range memoryUnits {
		if cut, found := strings.CutSuffix(text, u.suffix); found {
			digits, unit = cut, u.bytes
		}
	}
	a, err := raydemand.ParseAmount(digits)
	if err != nil || a < 0 {
		r.fail("%q: want an amount such as 0.5 or 16Gi", text)
	}
	return a.Times(unit)
}

func bundle(r *reader) any { return r.bundle() }

func (r *reader) bundle() raydemand.Bundle {
	b := raydemand.Bundle{}
	r.each(func(name string) { b[name] = r.amount() })
	return b
}

// texts reads labels, or a selector.
func texts(r *reader) any {
	all := map[string]string{}
	r.each(func(name string) { all[name] = r.text("a value for " + name) })
	return all
}

func listOf(read func(*reader) any) func(*reader) any {
	return func(r *reader) any {
		all := []any{}
		if !r.accept("[") {
			r.fail("%q: want [VALUE, …]", r.peek())
		}
		for r.err == nil && !r.accept("]") {
			if all = append(all, read(r)); !r.accept(",") && r.peek() != "]" {
				r.fail("%q: want , or ]", r.peek())
			}
		}
		return all
	}
}

func fields(known map[string]attribute) func(*reader) any {
	return func(r *reader) any {
		made := object{}
		r.each(func(name string) { r.attribute(made, known, name) })
		return made
	}
}

// fit reads why no known node holds a group's pods.
func fit(verdict string) func(*reader) any {
	return func(r *reader) any { return object{"verdict": verdict, "why": r.text("a reason in quotes")} }
}

// pool reads a pool of nodes that a group's pods can be scheduled on.
func pool(r *reader) any {
	name := r.text("a pool's name")
	made := fields(poolAttributes)(r).(object)
	made["name"] = name
	return made
}

// optional reads NAME VALUE if it is next.
func (r *reader) optional(into object, name, key string, read func(*reader) any) {
	if r.accept(name) {
		into[key] = read(r)
	}
}

// departs reads SIGN "message" [reclaimed] [noticed TIME] [until TIME].
func departs(certain bool) func(*reader) any {
	return func(r *reader) any {
		n := object{"sign": r.text("a sign"), "message": r.text("what was seen"), "certain": certain}
		r.optional(n, "reclaimed", "reclaimed", yes)
		r.optional(n, "noticed", "since", text)
		r.optional(n, "until", "deadline", text)
		return n
	}
}

// group reads NAME {resources} MIN..MAX and attributes. Without a maximum, the group has no limit.
func (r *reader) group() object {
	g := object{"name": r.text("a worker group's name"), "resources": r.bundle()}
	from, to, found := strings.Cut(r.text("MIN..MAX"), "..")
	if !found {
		r.fail("%q: want MIN..MAX such as 0..4, or 0.. without a maximum", from)
	}
	if g["minReplicas"] = json.Number(from); to != "" {
		g["maxReplicas"] = json.Number(to)
	}
	r.attributes(g, groupAttributes)
	return g
}

var nodeStates = map[string]model.NodeState{
	"running": model.Running, "idle": model.Idle, "pending": model.Pending, "timed-out": model.AllocationTimeout,
	"leaving": model.Leaving,
}

// node reads STATE [{total}] and attributes.
func (b *builder) node(r *reader, n node) {
	name := r.text("a state: " + list(sortedKeys(nodeStates)))
	if n.object["state"] = nodeStates[name]; nodeStates[name] == "" {
		r.fail("state %q: want %s", name, list(sortedKeys(nodeStates)))
	}
	if r.peek() == "{" {
		n.object["total"] = r.bundle()
	}
	for !r.done() {
		switch name := r.text("an attribute: " + list(sortedKeys(nodeAttributes))); {
		case name == "unreported":
			n.unreported = true
		case name == "free" && r.accept("unknown"):
			n.freeUnknown = true
		default:
			r.attribute(n.object, nodeAttributes, name)
		}
	}
	b.nodes = append(b.nodes, n)
}

// complete sets what a node that has joined takes from its group. It reports false if the group does not exist.
func (n node) complete(snapshot object) bool {
	state := n.object["state"]
	if state != model.Running && state != model.Idle {
		return true
	}
	groups, _ := snapshot["groups"].([]any)
	at := slices.IndexFunc(groups, func(g any) bool { return g.(object)["name"] == n.object["group"] })
	switch {
	case n.object["resources"] != nil:
	case at >= 0:
		group := groups[at].(object)
		if n.object["total"] == nil && !n.unreported {
			n.object["total"] = group["resources"]
		}
		if n.object["labels"] == nil {
			n.object["labels"] = group["labels"]
		}
	case n.object["total"] == nil && !n.unreported:
		return false
	}
	if n.object["available"] == nil && !n.freeUnknown {
		n.object["available"] = n.object["total"]
	}
	return true
}

// demand reads one demand. A line that starts with a count or a bundle is a pending request.
func (b *builder) demand(r *reader) {
	switch {
	case r.accept("gang"):
		b.add("pendingGangRequests", r.gang())
	case r.accept("request_resources"):
		b.add("requestResources", r.request())
	case r.accept("keep"):
		b.add("keptResources", r.request())
	case r.accept("owned"):
		b.add("ownedRequests", r.owned())
	default:
		b.add("pendingRequests", r.request())
	}
}

// times reads "8 ×" before a bundle. The default is 1.
func (r *reader) times() int64 {
	if r.peek() == "{" {
		return 1
	}
	const want = "COUNT × {resources}, {resources}, gang, request_resources, keep or owned"
	text := r.text(want)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || !r.accept("×") && !r.accept("x") {
		r.fail("%q: want %s", text, want)
	}
	return n
}

// request reads 3 × {GPU: 1} [each {memory: 4Gi}] [on {zone: a} or {zone: b}].
func (r *reader) request() object {
	q := object{"count": r.times(), "resources": r.bundle()}
	r.optional(q, "each", "slice", fields(requirementAttributes))
	if r.accept("on") {
		selectors := []any{texts(r)}
		for r.accept("or") {
			selectors = append(selectors, texts(r))
		}
		q["labelSelectors"] = selectors
	}
	return q
}

// gang reads [id ID] STRATEGY [topology LABEL], its bundles, and alternatives after "or".
func (r *reader) gang() object {
	g := object{}
	r.optional(g, "id", "id", text)
	g["strategy"] = r.text("a strategy")
	r.optional(g, "topology", "topologyLabel", text)
	bundles, each := r.bundles()
	if g["bundles"] = bundles; each != nil {
		g["bundleLabelSelectors"] = each
	}
	var fallbacks, selectors []any
	selected := false
	for r.accept("or") {
		bundles, each := r.bundles()
		fallbacks, selectors, selected = append(fallbacks, bundles), append(selectors, each), selected || each != nil
	}
	if g["fallbackBundles"] = fallbacks; selected {
		g["fallbackBundleLabelSelectors"] = selectors
	}
	return g
}

// mostBundles limits a gang, so that a typing error does not use up the memory.
const mostBundles = 100_000

// bundles reads 2 × {CPU: 1} [on {zone: a}] + …. If one bundle has a selector, all of them have one.
func (r *reader) bundles() (bundles, selectors []any) {
	selected := false
	for more := true; more && r.err == nil; more = r.accept("+") {
		n, b := r.times(), r.bundle()
		var selector any = object{}
		if r.accept("on") {
			selector, selected = texts(r), true
		}
		if n > mostBundles {
			r.fail("%d bundles: want at most %d", n, mostBundles)
		}
		bundles, selectors = append(bundles, slices.Repeat([]any{b}, int(min(n, mostBundles)))...),
			append(selectors, slices.Repeat([]any{selector}, int(min(n, mostBundles)))...)
	}
	if !selected {
		selectors = nil
	}
	return bundles, selectors
}

// nothing stands for the requests of an owned request without any.
const nothing = "nothing"

var ownedAttributes = map[string]attribute{
	"by": {"owner", text}, "priority": {"priority", number}, "since": {"since", text},
	"satisfied": {"satisfiedSince", text}, "all-or-nothing": {"allOrNothing", yes},
}

// owned reads ID by OWNER, attributes, and requests joined by +.
func (r *reader) owned() object {
	o := object{"id": r.text("the request's id"), "requests": []any{}}
	for !r.done() && r.peek() != "{" && !strings.ContainsAny(r.peek()[:1], "0123456789") {
		if r.accept(nothing) {
			return o
		}
		r.attribute(o, ownedAttributes, r.text(nothing+", "+list(sortedKeys(ownedAttributes))))
	}
	var requests []any
	for more := true; more && r.err == nil; more = r.accept("+") {
		requests = append(requests, r.request())
	}
	o["requests"] = requests
	return o
}

// warm reads what a capacity policy wants free: policy "NAME", or an entry such as 2 of gpu or 2 × {GPU: 1}, each with
// by "SCHEDULE" behind it.
func (b *builder) warm(r *reader) {
	w, _ := b.snapshot["warm"].(object)
	if w == nil {
		w = object{"keep": []any{}}
		b.snapshot["warm"] = w
	}
	if r.accept("policy") {
		w["policy"] = r.text("where the policy is written")
		return
	}
	keep := w["keep"].([]any)
	var e object
	if len(r.tokens) > 1 && r.tokens[1].text == "of" {
		e = object{"count": number(r)}
		r.optional(e, "of", "group", text)
	} else {
		e = r.request()
	}
	e["name"] = fmt.Sprintf("keepWarm[%d]", len(keep))
	r.optional(e, "by", "schedule", text)
	w["keep"] = append(keep, e)
}
