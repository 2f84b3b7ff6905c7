package landing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// Answer says where pods of a shape can run, and why they cannot.
type Answer struct {
	State State
	// Why is the reason of the nearest node or pool; empty if State is Fits. Beyond: it is Trying because of a rule
	// that depends on pods on other nodes.
	Why    string
	Beyond bool
	// Settles is when a proof that depends on what nodes announce is valid: until then they may still be coming up. It
	// is zero if the proof is valid at once.
	Settles time.Time
	// Nodes counts the ready, schedulable nodes that could hold one pod if they were empty.
	Nodes int
	// Shapes are the names of the pools whose declared shape could hold one pod: a node of such a pool can come even if
	// there is none now.
	Shapes []string
	// Pods says for each pool that could accept a pod how many such pods it holds and could hold, in the order of the
	// rooms, without Bound.
	Pods []PoolPods
}

// None reports whether neither a node nor the shape of a pool could hold a pod.
func (a Answer) None() bool { return a.Nodes == 0 && len(a.Shapes) == 0 }

// State is the kind of an Answer.
type State string

const (
	// Fits: a node could hold a pod if it were empty, or its pool may add such a node.
	Fits State = "fits"
	// Trying: nothing proves that a node can hold a pod, and nothing that no node ever will. A node autoscaler may know
	// a pool that nobody declared, or the scheduler compares the pod with pods on other nodes.
	Trying State = "trying"
	// Waiting: nodes that are not ready could hold a pod, and their pools may add no other.
	Waiting State = "waiting"
	// Nowhere: it is proven that no node will ever hold a pod.
	Nowhere State = "nowhere"
	// Limited: a node could hold a pod, and it is proven that the limit of its pool allows none.
	Limited State = "limited"
)

// deviceTime is how long a node may take until its devices, labels and taints are final: drivers are installed, and
// device plugins start.
const deviceTime = 10 * time.Minute

// At returns the answer at a moment: before a proof settles, the group is tried. The zero moment ignores ages.
func (a Answer) At(now time.Time) Answer {
	if !now.IsZero() && now.Before(a.Settles) {
		a.State = Trying
	}
	a.Settles = time.Time{}
	return a
}

// Where asks all nodes and pools about a shape.
func (s *Nodes) Where(p *PodShape) Answer { return s.where(p, s.For(p)) }

func (s *Nodes) where(p *PodShape, places []Node) Answer {
	views, byPool := make([]*poolView, len(s.Rooms)), make(map[string]*poolView, len(s.Rooms))
	for i := range s.Rooms {
		views[i] = &poolView{room: &s.Rooms[i]}
		byPool[s.Rooms[i].Pool] = views[i]
	}
	fit := p.compare(places, func(place *Node, misses []mismatch) {
		if view := byPool[place.PoolName()]; view != nil {
			view.add(p, place, misses)
		}
	})
	a := s.decide(p, places, views, fit.Why)
	a.Nodes, a.Shapes = fit.Nodes, fit.Shapes
	for _, view := range views {
		if pods, could := view.pods(p); could {
			a.Pods = append(a.Pods, pods)
		}
	}
	if s.NodePools {
		a.Pods = withDeletedPool(p, a.Pods, s.Rooms)
	}
	return a
}

// decide decides, from what all pools say. The proof that no node can hold a pod comes from the pod itself, if it names
// nodes or pools that cannot, from a complete list of pools, or from limits: every pool where a pod would fit has none.
// No autoscaler is proof: another one may run beside it. why is the nearest miss.
func (s *Nodes) decide(p *PodShape, places []Node, views []*poolView, why string) Answer {
	rooms, fits := make([]Answer, len(views)), false
	for i, view := range views {
		rooms[i] = view.answer(p)
		fits = fits || rooms[i].State == Fits
	}
	switch beyond := p.Neighbors.Beyond; {
	case fits && beyond != "" && p.NodeName == "":
		return Answer{State: Trying, Why: beyond + " depends on pods on other nodes", Beyond: true}
	case fits:
		return Answer{State: Fits}
	}
	if at := slices.IndexFunc(rooms, func(a Answer) bool { return a.State == Waiting }); at >= 0 {
		return rooms[at]
	}
	if names, named := p.hostnames(); named {
		return ofHosts(p, places, names)
	}
	if names, named := s.poolsNamed(p); named {
		return s.ofNamed(p, places, names, rooms)
	}
	if s.Complete {
		v := summary(rooms)
		switch v.Why = cmp.Or(v.Why, why); v.State {
		case Nowhere:
			v.Why += "; all pools are declared"
		case Trying:
			v.Why += withoutShape(p, views, rooms)
		}
		return v
	}
	unknown := slices.ContainsFunc(views, func(v *poolView) bool { return v.unknown(p) })
	if v := summary(rooms); v.State == Limited && !unknown {
		return v
	}
	return Answer{State: Trying, Why: why}
}

// Unseen returns what pools prove about a shape while the nodes are unknown: limits that allow no node, and a complete
// list of pools. A pod that names nodes proves nothing, because the nodes may be there.
func (s *Nodes) Unseen(p *PodShape) (v Answer, proven bool) {
	if _, named := p.hostnames(); named || len(s.Rooms) == 0 && !s.Complete {
		return Answer{}, false
	}
	v = s.Where(p)
	return v, v.State == Nowhere || v.State == Limited
}

// withoutShape names the pools of which nothing shows what their new nodes have. They are all that keeps a complete
// list of pools from being a proof.
func withoutShape(p *PodShape, views []*poolView, rooms []Answer) string {
	var names []string
	for i, a := range rooms {
		if views[i].unknown(p) && a.State == Trying {
			names = append(names, views[i].room.Pool)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; what new nodes of pool " + strings.Join(names, ", ") + " have is not known, and no shape says it"
}

func summary(answers []Answer) Answer {
	all := Answer{State: Nowhere}
	for _, a := range answers {
		switch {
		case a.State == Trying:
			return Answer{State: Trying}
		case a.State == Limited && all.State == Nowhere:
			all = Answer{State: Limited, Why: a.Why, Settles: all.Settles}
		}
		if a.Settles.After(all.Settles) {
			all.Settles = a.Settles
		}
	}
	return all
}

// ofHosts judges a pod that names nodes. No autoscaler adds a node of a given name.
func ofHosts(p *PodShape, places []Node, names []string) Answer {
	var there []Node
	for i := range places {
		node := &places[i]
		if !node.Declared &&
			(slices.Contains(names, node.Name) || slices.Contains(names, node.Labels[HostnameLabel])) {
			there = append(there, *node)
		}
	}
	which := "node " + strings.Join(names, ", ")
	if len(there) == 0 {
		return Answer{State: Nowhere, Why: "the group names " + which + ", which is not there"}
	}
	v := Answer{State: Nowhere, Why: p.Fit(there).Why + "; the group names " + which}
	for i := range there {
		if p.outlookOn(&there[i], p.mismatches(&there[i], nil)) < never {
			v.State = Trying
		}
		v.Settles = later(v.Settles, &there[i])
	}
	return v
}

func later(t time.Time, node *Node) time.Time {
	if settles := node.CreatedAt.Add(deviceTime); !node.CreatedAt.IsZero() && settles.After(t) {
		return settles
	}
	return t
}

func (s *Nodes) ofNamed(p *PodShape, places []Node, names []string, rooms []Answer) Answer {
	which := "pool " + strings.Join(names, ", ")
	var asked []Answer
	var there []Node
	for _, name := range names {
		at := s.roomOf(name, places)
		switch {
		case at >= 0:
			asked = append(asked, rooms[at])
			for i := range places {
				if places[i].PoolName() == s.Rooms[at].Pool {
					there = append(there, places[i])
				}
			}
		case s.NodePools && selects(p, karpenterPool):
			asked = append(asked, Answer{State: Limited, Why: "NodePool " + name + " does not exist"})
		case s.Complete:
			asked = append(asked, Answer{State: Nowhere, Why: "pool " + name + " does not exist"})
		default:
			return Answer{State: Trying, Why: "the group selects pool " + name + ", which is not known"}
		}
	}
	v := summary(asked)
	for _, a := range asked {
		v.Why = cmp.Or(v.Why, a.Why)
	}
	if len(there) > 0 && v.State != Limited {
		v.Why = p.Fit(there).Why
	}
	v.Why = cmp.Or(v.Why, "what the nodes of "+which+" have is not known") + "; the group selects " + which
	return v
}

// roomOf returns the index of the pool that a selector names: by its name, by that of its node group, or by another
// label of its nodes. It is negative if there is none.
func (s *Nodes) roomOf(name string, places []Node) int {
	for _, same := range []func(r Room) bool{
		func(r Room) bool { return r.Pool == name },
		func(r Room) bool { _, same := poolNamed(r.Pool, []string{name}); return same },
		func(r Room) bool {
			return slices.ContainsFunc(places, func(n Node) bool {
				return n.PoolName() == r.Pool && slices.ContainsFunc(sharing.PoolLabels,
					func(row sharing.PoolLabel) bool { return n.Labels[row.Key] == name })
			})
		},
	} {
		if at := slices.IndexFunc(s.Rooms, same); at >= 0 {
			return at
		}
	}
	return -1
}

func selects(p *PodShape, label string) bool {
	return slices.ContainsFunc(p.labelAlternatives(), func(all []Requirement) bool {
		return slices.ContainsFunc(all, func(r Requirement) bool { return r.Key == label })
	})
}

// poolsNamed returns the pools that the pod may run in by its selector and affinity; false if it names none.
func (s *Nodes) poolsNamed(p *PodShape) (names []string, named bool) {
	names, named = p.required(func(key string) bool {
		return key == s.PoolLabel && key != "" || isPoolLabel(key)
	})
	slices.Sort(names)
	return slices.Compact(names), named
}

// noRoom describes why a pool may add no node for a pod.
func (r *Room) noRoom() string {
	kind := "pool "
	if r.Source == FromKarpenter {
		kind = "NodePool "
	}
	switch {
	case r.MaxNodes != nil && *r.MaxNodes == 0:
		return kind + r.Pool + " may have no node (maxNodes 0)"
	case r.MayAddNodes != nil && *r.MayAddNodes == 0 && r.MaxNodes != nil:
		return fmt.Sprintf("%s%s has its most nodes (maxNodes %d)", kind, r.Pool, *r.MaxNodes)
	}
	return kind + r.Pool + " has reached its limits"
}

// outlook says whether a node, or another node like it, could hold a pod at another time. A larger value is worse.
type outlook int

const (
	// holdsNow: the node could hold a pod if it were empty.
	holdsNow outlook = iota
	// holdsLater: it is the right kind of node at the wrong time: cordoned, not ready, or with unhealthy cards.
	holdsLater
	// unsaid: what the pod needs is unknown. The node is coming up, another node of its pool may have another zone or
	// instance type, or a declared shape leaves it open.
	unsaid
	// never: a node like this one cannot hold a pod, however long the pod waits.
	never
)

// outlookOn returns the outlook of a node for the pod, by what keeps the pod away.
func (p *PodShape) outlookOn(node *Node, mismatches []mismatch) outlook {
	worst := holdsNow
	for _, m := range mismatches {
		worst = max(worst, p.outlook(node, m))
	}
	return worst
}

func (p *PodShape) outlook(node *Node, m mismatch) outlook {
	switch m.kind {
	case notReady, cordoned, unhealthy:
		return holdsLater
	case tainted:
		if PassingTaint(m.taint) || !node.Ready {
			return unsaid
		}
	case unselected:
		return node.labelOutlook(m.what)
	case unsuited:
		return p.affinityOutlook(node)
	case uncounted:
		return unsaid
	case notAnnounced:
		// The kubelet always reports ephemeral storage, so a description without it is incomplete.
		if m.what == "ephemeral-storage" || !node.Ready || node.open(m.what) != "" {
			return unsaid
		}
	case notNamed, tooSmall, noPods, otherMode, cardTooSmall:
	}
	return never
}

// open returns why pods may get a resource on the node that nothing says it has; empty if they do not.
func (n *Node) open(resource string) string {
	why, is := n.Open[resource]
	if !is && sharing.MayBeClass(resource) {
		why = n.Open[""]
	}
	return why
}

// affinityOutlook returns the outlook of the term that comes nearest.
func (p *PodShape) affinityOutlook(node *Node) outlook {
	best := never
	for _, term := range p.Affinity {
		worst := holdsNow
		if len(term.Labels)+len(term.Fields) == 0 {
			continue // An empty term matches nothing.
		}
		for _, r := range term.Labels {
			if value, set := node.label(r.Key); !r.matches(value, set) {
				worst = max(worst, node.labelOutlook(r.Key))
			}
		}
		for _, r := range term.Fields {
			if r.Key != nameField || !r.matches(node.Name, true) {
				worst = never
			}
		}
		best = min(best, worst)
	}
	return best
}

// labelOutlook returns the outlook of a node whose value of a label does not match.
func (n *Node) labelOutlook(key string) outlook {
	_, set := n.label(key)
	known := strings.Contains(key, "kubernetes.io/") && !isPoolLabel(key)
	switch {
	case key == HostnameLabel:
		return never
	case n.Declared && !set && known, !n.Declared && variesInPool[key], !n.Ready && !set:
		return unsaid
	}
	return never
}

// variesInPool are labels of which the nodes of one pool may have different values.
var variesInPool = map[string]bool{
	"topology.kubernetes.io/zone": true, "failure-domain.beta.kubernetes.io/zone": true,
	"node.kubernetes.io/instance-type": true, "beta.kubernetes.io/instance-type": true,
}

// HostnameLabel is the label of a node with a value of its own.
const HostnameLabel = "kubernetes.io/hostname"

// hostnames returns the nodes that the pod names, by their hostname or their name; false if it may run on others.
func (p *PodShape) hostnames() (names []string, named bool) {
	if p.NodeName != "" {
		return []string{p.NodeName}, true
	}
	return p.required(func(key string) bool { return key == HostnameLabel || key == nameField })
}

// PassingTaint reports whether a taint describes the state of one node, and not the kind of all nodes of its pool:
// Kubernetes, node autoscalers and agents that start on a node set and remove such taints
// (docs/reference/facts.md#taints-that-pass), and so do those who watch machines and GPUs. No group should tolerate
// them.
func PassingTaint(taint sharing.Taint) bool {
	return strings.HasSuffix(taint.Key, "/agent-not-ready") || beginsWithOne(taint.Key, []string{
		"node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/",
		"ignore-taint.cluster-autoscaler.kubernetes.io/", "startup-taint.cluster-autoscaler.kubernetes.io/",
		"status-taint.cluster-autoscaler.kubernetes.io/",
	}) || departure.OfTaint(taint.Key, "") != nil || taint.OfBadGPU()
}
