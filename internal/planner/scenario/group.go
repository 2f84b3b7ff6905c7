package scenario

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

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
