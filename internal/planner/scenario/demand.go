package scenario

import (
	"strconv"

	"heliostat.dev/heliostat/pkg/raydemand"
)

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
