package place

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// HeadGroup is the group number of the head, which belongs to no group.
const HeadGroup = -1

// Fleet is a snapshot prepared for planning. Groups are sorted by name and nodes by pod, so nothing depends on the
// order of the input.
type Fleet struct {
	*Catalog
	Groups  []Group
	Nodes   []Node
	TakenAt time.Time
	// Bound is the maximum number of workers of all groups together.
	Bound    int64
	Findings []raydemand.Finding
	*landing.Shared
	// turn is where the plan starts if there is too much demand for it (turn.go).
	turn string
	// largestSlice is the largest memory of one GPU in any group, in MiB; 0 if unknown.
	largestSlice int64
	topologies   map[string]*Topology
	// present are the nodes that exist; nil without topologies.
	present *landing.Shared
}

// Group counts pods; model.Group counts replicas of Hosts pods each.
type Group struct {
	*model.Group
	Hosts, MinPods, MaxPods int64
	// Current counts the pods that the group has or has requested. Live ones have joined or are visible on their way;
	// Missing ones were requested and are not visible yet.
	Current, Live, Joined, Missing, Leaving, TimedOut int64
	// leavingOf counts leaving hosts by multi-host replica.
	leavingOf map[string]int64
	// Stopping counts live nodes that this plan stops.
	Stopping int64
	Shape    *Shape
	// others is the shape of the hosts of a replica behind the first one; nil if all are equal.
	others  *Shape
	Timeout *float64
	// open are the labels, and the accelerator type, that a new pod may turn out to have.
	open landing.Open
	// InFlight is how many pods upscalingMode allows on their way at once.
	InFlight int64
	// Blocked is the code of why the group takes no launches regardless of its limits; empty if the group is open.
	Blocked string
}

// Node is a node that can serve demand, unless it must stop.
type Node struct {
	*model.Node
	GroupIndex  int
	Shape       *Shape
	Free        Vector
	Stop        string // reason of its termination; empty if it stays
	StopMessage string
}

// Phase orders nodes by how soon they can serve.
type Phase int

const (
	running Phase = iota
	idle
	// Overdue nodes are idle and stop unless demand is placed on them.
	Overdue
	OnTheWay
)

func (n *Node) ownPhase() Phase {
	switch n.State {
	case model.Idle:
		return idle
	case model.Pending:
		return OnTheWay
	}
	return running
}

// phaseOf returns the phase of a node. It separates idle nodes that can stay from those that are due to stop.
func (r *Fleet) phaseOf(n *Node) Phase {
	if !r.overdue(n) {
		return n.ownPhase()
	}
	if g := &r.Groups[n.GroupIndex]; g.Remaining() > g.MinPods && !g.LimitsConflict() {
		return Overdue
	}
	return idle
}

func NewFleet(s *model.Snapshot) *Fleet {
	r := &Fleet{
		Catalog: newCatalog(s), TakenAt: s.TakenAt, Bound: math.MaxInt64, turn: s.Turn,
	}
	if s.MaxWorkers != nil {
		r.Bound = int64(max(*s.MaxWorkers, 0))
	}
	for i := range s.Groups {
		r.Groups = append(r.Groups, newGroup(&s.Groups[i], s.IdleTimeoutSeconds))
	}
	slices.SortFunc(r.Groups, func(a, b Group) int { return cmp.Compare(a.Name, b.Name) })
	byName := make(map[string]int, len(r.Groups))
	for i := range r.Groups {
		g := &r.Groups[i]
		byName[g.Name] = i
		g.Group, g.open = g.Settled(s.Nodes)
		r.addShapes(g, i)
		if s := g.Slice; s != nil && s.MemoryMiB != nil {
			r.largestSlice = max(r.largestSlice, *s.MemoryMiB)
		}
	}
	r.addNodes(s, byName)
	for i := range r.Groups {
		g := &r.Groups[i]
		g.settleCurrent()
		g.findBlocked(s.UpscalingMode)
		for _, shape := range []*Shape{g.Shape, g.others} {
			if shape != nil {
				shape.size = r.sizeOn(shape, shape.Total)
			}
		}
	}
	r.Shared = landing.Share(s.Places, s.Promised, s.Quotas, r.tenants())
	r.numberTopologies(s)
	r.stopOutdated(s.LaunchConfigCheckDisabled)
	r.stopOverMaximum()
	return r
}

// tenants lists the groups as far as their limits are common.
func (r *Fleet) tenants() []landing.Tenant {
	all := make([]landing.Tenant, len(r.Groups))
	for i := range r.Groups {
		g := &r.Groups[i]
		all[i] = landing.Tenant{
			Name: g.Name, Pod: g.Pod, Pools: g.Pools, Tried: g.NodeFit != nil,
			Hosts: g.Hosts, Current: g.Current, Bound: g.Bound,
		}
	}
	return all
}

func newGroup(spec *model.Group, timeout *float64) Group {
	g := Group{Group: spec, Hosts: max(int64(spec.NumOfHosts), 1), Timeout: timeout}
	g.MinPods = pods(spec.Min, g.Hosts)
	g.MaxPods = pods(spec.Max, g.Hosts)
	if spec.IdleTimeoutSeconds != nil {
		g.Timeout = spec.IdleTimeoutSeconds
	}
	return g
}

// pods converts replicas to pods. maxReplicas is often 2147483647, so the product is limited to MaxCount.
func pods(replicas int, hosts int64) int64 {
	return min(int64(max(replicas, 0)), MaxCount/hosts) * hosts
}

// addNodes adds the nodes that count. It skips AllocationTimeout nodes, which were given up, and nodes of unknown
// groups.
func (r *Fleet) addNodes(s *model.Snapshot, byName map[string]int) {
	r.Nodes = make([]Node, 0, len(s.Nodes)+1)
	if s.Head != nil {
		r.Nodes = append(r.Nodes, r.newNode(s.Head, HeadGroup, false))
	}
	first := r.firstHosts(s, byName)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		g, known := byName[n.Group]
		if !known {
			r.addOrphan(n, s.LaunchConfigCheckDisabled)
			continue
		}
		switch n.State {
		case model.AllocationTimeout:
			r.Groups[g].TimedOut++
		case model.Leaving:
			r.Groups[g].leave(n)
		default:
			if r.Groups[g].Live++; n.State != model.Pending {
				r.Groups[g].Joined++
			}
			r.Nodes = append(r.Nodes, r.newNode(n, g, r.Groups[g].others == nil || first[n.Pod]))
		}
	}
	slices.SortStableFunc(r.Nodes, func(a, b Node) int {
		return cmp.Or(CompareBool(b.GroupIndex == HeadGroup, a.GroupIndex == HeadGroup), cmp.Compare(a.Pod, b.Pod))
	})
	slices.SortFunc(r.Findings, func(a, b raydemand.Finding) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Field, b.Field))
	})
}

func (g *Group) leave(n *model.Node) {
	g.Leaving++
	if g.Hosts == 1 || n.Replica == "" {
		return
	}
	if g.leavingOf == nil {
		g.leavingOf = map[string]int64{}
	}
	g.leavingOf[n.Replica]++
}

// settleCurrent computes Current. The operator runs at most maxReplicas regardless of replicas, and replaces lost hosts
// of a replica.
func (g *Group) settleCurrent() {
	whole := RoundUp(g.Live+g.Leaving, g.Hosts)
	if g.Replicas != nil {
		asked := min(pods(*g.Replicas, g.Hosts), g.MaxPods)
		whole = max(asked-RoundUp(g.TimedOut, g.Hosts), RoundUp(g.Live, g.Hosts))
	}
	g.Current = whole
	if !g.Unavailable() {
		g.Missing = max(0, whole-g.Live-g.Leaving)
	}
}

// newNode adds one node. A pending node gets its group's shape, unless it has its own: that of a replica's first host,
// or of the others.
func (r *Fleet) newNode(n *model.Node, g int, first bool) Node {
	total, labels := n.Total, n.Labels
	if len(total) == 0 {
		total = n.Resources
	}
	unknown := g != HeadGroup && n.State != model.Pending && n.Total == nil && n.Resources == nil && n.Available == nil
	if g != HeadGroup && (n.State == model.Pending || unknown) {
		if len(total) == 0 {
			total = r.Groups[g].Resources
		}
		if len(labels) == 0 {
			labels = r.Groups[g].Labels
		}
		total, labels = r.Groups[g].newPod(first, n.Replica, total, labels)
	}
	made := Node{Node: n, GroupIndex: g, Shape: r.shapeOf(g, total, labels)}
	made.Free = r.free(n, made.Shape.Total)
	if unknown {
		made.Free = r.unreported(n, made.Shape.Total)
	}
	return made
}

// shapeOf shares the group's shape with equal nodes, so that comparing them is cheap.
func (r *Fleet) shapeOf(g int, total raydemand.Bundle, labels map[string]string) *Shape {
	var slice *model.Slice
	if g != HeadGroup {
		slice = r.Groups[g].Slice
	}
	v, set := r.vectorOf(total), r.labelSet(labels, slice)
	if g != HeadGroup {
		for _, own := range []*Shape{r.Groups[g].Shape, r.Groups[g].others} {
			if own != nil && own.Labels == set && slices.Equal(own.Total, v) {
				return own
			}
		}
	}
	return &Shape{group: g, Total: v, Labels: set, Accelerated: r.accelerated(v)}
}

// free returns what is available now. Ray sometimes reports more available than total, which crashes its own planner;
// here the total is the limit.
func (r *Fleet) free(n *model.Node, total Vector) Vector {
	untouched := n.Available == nil && (n.State != model.Running || len(n.Total) == 0)
	if n.State == model.Pending || untouched {
		return total
	}
	v := r.vectorOf(n.Available)
	for i := range r.Named(v) {
		if v[i] > total[i] {
			free, all := model.Pair(r.Names[i], v[i], total[i])
			r.found(model.FindingOverstated, "node "+n.Pod, "available."+r.Names[i], free, fmt.Sprintf(
				"the node has only %[1]s in total, so %[1]s counts as free; Ray's own autoscaler stops planning in "+
					"this state", all), "no action needed")
			v[i] = total[i]
		}
	}
	r.assumeLayout(v, total, n.Refused)
	return v
}

// unreported returns what is free on a node that reports no resources: everything if it is idle, nothing if it has
// work.
func (r *Fleet) unreported(n *model.Node, total Vector) Vector {
	r.found(model.FindingUnreported, "node "+n.Pod, "total", "",
		"the node reports no resources, so it counts with its group's: all free if it is idle, none if it has work",
		"set total and available as Ray reports them")
	if n.State == model.Running {
		return make(Vector, r.width)
	}
	return total
}

// found adds a warning.
func (r *Fleet) found(code, object, field, seen, why, fix string) {
	r.Findings = append(r.Findings, raydemand.Finding{
		Code: code, Severity: raydemand.Warning, Object: object, Field: field, Seen: seen, Why: why, Fix: fix,
	})
}

// addOrphan adds a node of a group that is not in the snapshot. The group was removed from the RayCluster, and the
// operator leaves its pods running, and with them the bundles that they hold.
func (r *Fleet) addOrphan(n *model.Node, checkDisabled bool) {
	if n.State == model.Leaving {
		return // nothing is left to do
	}
	decides := "does not stop it"
	if !checkDisabled && n.State != model.AllocationTimeout {
		decides = "lists it as one that should stop, which the operator does not carry out"
		r.Nodes = append(r.Nodes, Node{Node: n, GroupIndex: UnknownGroup, Stop: model.StopOutdated,
			StopMessage: fmt.Sprintf(
				"its worker group %q was removed from the RayCluster, and the operator does not delete its pods",
				n.Group,
			)})
	}
	r.found(model.FindingGroupRemoved, "pod "+n.Pod, "group", n.Group,
		"the RayCluster has no worker group of this name, so the plan places no demand on the pod, "+
			"counts it toward no limit, and "+decides,
		"delete the pod after its work is done, or restore the worker group")
}

// UnknownGroup is the group number of a node whose group was removed.
const UnknownGroup = -2

// MemoryShare returns the memory of a slice as a share of the largest one in any group; 1 if unknown.
func (r *Fleet) MemoryShare(s *model.Slice) float64 {
	if s == nil || s.MemoryMiB == nil || r.largestSlice == 0 {
		return 1
	}
	return float64(*s.MemoryMiB) / float64(r.largestSlice)
}

// sizeOn returns the size by which node classes are sorted, tightest first. With slice requirements, smaller slices
// come before larger ones.
func (r *Fleet) sizeOn(s *Shape, free Vector) float64 {
	size := r.Size(free)
	if r.Sliced {
		if at, known := r.Index[raydemand.GPU]; known {
			size -= free[at].Float() * (1 - r.MemoryShare(r.SliceOf(s)))
		}
	}
	return size
}

// conservativeStep is the minimum number of pods that upscalingMode Conservative allows a group on the way at once
// (Ray's first autoscaler: max(5, running); KubeRay's tests still expect it).
const conservativeStep = 5

// findBlocked finds why a group takes no launches, regardless of its limits.
func (g *Group) findBlocked(mode string) {
	switch {
	case g.Excluded() && (g.Closed == "" || g.CoolingSeconds > 0):
		g.Blocked = model.CodeClosed
	case len(g.ScaleGates) > 0:
		g.Blocked = model.CodeScaleGate
	case g.CoolingSeconds > 0:
		g.Blocked = model.CodeCoolingDown
	case g.Closed != "":
		g.Blocked = model.CodeClosed
	case g.LimitsConflict():
		g.Blocked = model.CodeInvalidLimits
	}
	g.InFlight = MaxCount
	if mode == "Conservative" {
		g.InFlight = max(conservativeStep, g.Joined)
	}
	if g.Trying() {
		g.InFlight = g.Hosts
	}
}

// Trying reports whether the group launches one replica at a time because nothing shows that a node can hold its pods.
// A pod that has joined runs on a node.
func (g *Group) Trying() bool {
	return g.NodeFit != nil && g.NodeFit.Verdict == landing.Trying && g.Joined == 0
}

// Remaining counts the pods that stay: joined, on their way, or requested.
func (g *Group) Remaining() int64 { return g.Live + g.Missing - g.Stopping }

// Preference is the preference of one group: whether a node is known that could hold its pods, its chance that a launch
// succeeds, in halves, and its priority. With finer steps, a group that failed one second earlier could win over a
// better and cheaper one.
type Preference struct {
	Known       bool
	Recoverable float64
	Priority    int
}

func (s Preference) compare(other Preference) int {
	return cmp.Or(
		CompareBool(s.Known, other.Known),
		cmp.Compare(s.Recoverable, other.Recoverable),
		cmp.Compare(s.Priority, other.Priority),
	)
}

func (g *Group) Preference() Preference {
	recoverable := math.Floor(2*model.AmountOr(g.RecoverableScore, 1)) / 2
	return Preference{!g.Trying() && !g.Waiting(), recoverable, g.Priority}
}

// Carries reports whether the group's pods have the topology label of a gang, if the gang has one.
func (g *Group) Carries(topology string) bool {
	_, has := g.Labels[topology]
	return topology == "" || has
}

// Pending counts the pods that were requested before this plan and have not joined.
func (g *Group) Pending() int64 { return g.Live - g.Joined + g.Missing }
