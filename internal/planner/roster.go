package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// headGroup is the group number of the head, which belongs to none.
const headGroup = -1

// roster is a snapshot made ready for planning: who is there, what each group may still do. Groups are sorted by
// name and nodes by pod, so that nothing depends on the order of the input.
type roster struct {
	*vector.Catalog
	groups  []group
	nodes   []node
	takenAt time.Time
	// bound is the most workers all groups may have together.
	bound    int64
	findings []raydemand.Finding
	// ceilings are what pools of nodes hold; nil where none bounds a group.
	ceilings *ceilings
	// largestSlice is the most memory behind one GPU of any group, in MiB; 0 where none is known.
	largestSlice int64
	topologies   map[string]*topology
}

// group counts pods where its Group counts replicas of hosts pods each.
type group struct {
	*model.Group
	hosts, min, max int64
	// current is what the group has or has asked for; live of them have joined or are seen to be on their way,
	// missing were asked for and are not seen yet.
	current, live, joined, missing, leaving, timedOut int64
	// leavingOf counts, by multi-host replica, the hosts among those leaving.
	leavingOf map[string]int64
	// stopping counts live nodes that this plan stops.
	stopping int64
	shape    *vector.Shape
	timeout  *float64
	// inFlight is how many pods upscalingMode lets be on their way at once.
	inFlight int64
	// shut says why the group takes no launches whatever its limits; its Code is empty when it is open.
	shut model.Reason
}

// node is one node that can serve, or would if it did not have to go.
type node struct {
	*model.Node
	group       int
	shape       *vector.Shape
	free        vector.Vector
	stop        string // reason of its termination, empty while it stays
	stopMessage string
}

// phase orders nodes by how soon they serve.
type phase int

const (
	running phase = iota
	idle
	// overdue nodes are idle and leave unless something is placed on them.
	overdue
	onTheWay
)

func (n *node) phase() phase {
	switch n.State {
	case model.Idle:
		return idle
	case model.Pending:
		return onTheWay
	}
	return running
}

// phaseOf tells idle nodes that may stay from those that would have to leave.
func (r *roster) phaseOf(n *node) phase {
	at := n.phase()
	if at != idle || n.group < 0 {
		return at
	}
	if g := &r.groups[n.group]; g.timeout != nil && n.IdleSeconds > *g.timeout && g.standing() > g.min && !g.contradictory() {
		return overdue
	}
	return at
}

func newRoster(s *model.Snapshot) *roster {
	r := &roster{Catalog: vector.NewCatalog(s), takenAt: s.TakenAt, bound: math.MaxInt64}
	if s.MaxWorkers != nil {
		r.bound = int64(max(*s.MaxWorkers, 0))
	}
	for i := range s.Groups {
		r.groups = append(r.groups, newGroup(&s.Groups[i], s.IdleTimeoutSeconds))
	}
	slices.SortFunc(r.groups, func(a, b group) int { return cmp.Compare(a.Name, b.Name) })
	byName := make(map[string]int, len(r.groups))
	for i := range r.groups {
		g := &r.groups[i]
		byName[g.Name] = i
		total := r.VectorOf(g.Resources)
		g.shape = &vector.Shape{Group: i, Total: total, Labels: r.LabelSet(g.Labels, g.Slice), Accelerated: r.Accelerated(total)}
		if s := g.Slice; s != nil && s.MemoryMiB != nil {
			r.largestSlice = max(r.largestSlice, *s.MemoryMiB)
		}
	}
	r.enrol(s, byName)
	for i := range r.groups {
		r.groups[i].settleCurrent()
		r.groups[i].shutFor(s.UpscalingMode)
	}
	r.ceilings = newCeilings(r.groups)
	r.numberTopologies(s.Gangs)
	r.stopOutdated(s.LaunchConfigCheckDisabled)
	r.stopOverMaximum()
	return r
}

func newGroup(spec *model.Group, timeout *float64) group {
	g := group{Group: spec, hosts: max(int64(spec.NumOfHosts), 1), timeout: timeout}
	g.min = pods(spec.Min, g.hosts)
	g.max = pods(spec.Max, g.hosts)
	if spec.IdleTimeoutSeconds != nil {
		g.timeout = spec.IdleTimeoutSeconds
	}
	return g
}

// pods converts replicas. maxReplicas is often 2147483647, so the product is kept within maxCount.
func pods(replicas int, hosts int64) int64 {
	return min(int64(max(replicas, 0)), vector.MaxCount/hosts) * hosts
}

// enrol reads the nodes that count. AllocationTimeout ones were given up; those of an unknown group are left alone.
func (r *roster) enrol(s *model.Snapshot, byName map[string]int) {
	if s.Head != nil {
		r.nodes = append(r.nodes, r.newNode(s.Head, headGroup))
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		g, known := byName[n.Group]
		if !known {
			r.stranger(n, s.LaunchConfigCheckDisabled)
			continue
		}
		switch n.State {
		case model.AllocationTimeout:
			r.groups[g].timedOut++
		case model.Leaving:
			r.groups[g].leave(n)
		default:
			r.groups[g].count(n)
			r.nodes = append(r.nodes, r.newNode(n, g))
		}
	}
	slices.SortStableFunc(r.nodes, func(a, b node) int {
		return cmp.Or(vector.CompareBool(b.group == headGroup, a.group == headGroup), cmp.Compare(a.Pod, b.Pod))
	})
	slices.SortFunc(r.findings, func(a, b raydemand.Finding) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Field, b.Field))
	})
}

func (g *group) count(n *model.Node) {
	g.live++
	if n.State != model.Pending {
		g.joined++
	}
}

func (g *group) leave(n *model.Node) {
	g.leaving++
	if g.hosts == 1 || n.Replica == "" {
		return
	}
	if g.leavingOf == nil {
		g.leavingOf = map[string]int64{}
	}
	g.leavingOf[n.Replica]++
}

// settleCurrent finds what the group has or has asked for. The operator runs at most maxReplicas whatever replicas
// says, and brings back hosts that a replica has lost.
func (g *group) settleCurrent() {
	whole := vector.RoundUp(g.live+g.leaving, g.hosts)
	if g.Replicas != nil {
		asked := min(pods(*g.Replicas, g.hosts), g.max)
		whole = max(asked-vector.RoundUp(g.timedOut, g.hosts), vector.RoundUp(g.live, g.hosts))
	}
	g.current = whole
	if !g.Unavailable() {
		g.missing = max(0, whole-g.live-g.leaving)
	}
}

// newNode reads one node's ledger. What a pending node will have is its group's shape, unless it says otherwise.
func (r *roster) newNode(n *model.Node, g int) node {
	total, labels := n.Total, n.Labels
	if len(total) == 0 {
		total = n.Resources
	}
	unknown := g != headGroup && n.State != model.Pending && n.Total == nil && n.Resources == nil && n.Available == nil
	if g != headGroup && (n.State == model.Pending || unknown) {
		if len(total) == 0 {
			total = r.groups[g].Resources
		}
		if len(labels) == 0 {
			labels = r.groups[g].Labels
		}
	}
	made := node{Node: n, group: g, shape: r.shapeOf(g, total, labels)}
	made.free = r.free(n, made.shape.Total)
	if unknown {
		made.free = r.unreported(n, made.shape.Total)
	}
	return made
}

// shapeOf shares the group's shape with the nodes that have it, so that equal nodes are found equal at once.
func (r *roster) shapeOf(g int, total raydemand.Bundle, labels map[string]string) *vector.Shape {
	var slice *model.Slice
	if g != headGroup {
		slice = r.groups[g].Slice
	}
	v, set := r.VectorOf(total), r.LabelSet(labels, slice)
	if g != headGroup {
		own := r.groups[g].shape
		if own.Labels == set && slices.Equal(own.Total, v) {
			return own
		}
	}
	return &vector.Shape{Group: g, Total: v, Labels: set, Accelerated: r.Accelerated(v)}
}

// free returns what can be used now. Ray sometimes reports more available than there is, which kills its own
// planner; here the total is the bound.
func (r *roster) free(n *model.Node, total vector.Vector) vector.Vector {
	untouched := n.Available == nil && (n.State != model.Running || len(n.Total) == 0)
	if n.State == model.Pending || untouched {
		return total
	}
	v := r.VectorOf(n.Available)
	for i := range r.Named(v) {
		if v[i] > total[i] {
			r.overstated(n, r.Names[i], v[i], total[i])
			v[i] = total[i]
		}
	}
	r.AssumeLayout(v, total, n.Refused)
	return v
}

// unreported is what is free on a node that says nothing of what it has: all where it is idle, nothing where it has work.
func (r *roster) unreported(n *model.Node, total vector.Vector) vector.Vector {
	r.findings = append(r.findings, raydemand.Finding{
		Code: model.FindingUnreported, Severity: raydemand.Warning, Object: "node " + n.Pod, Field: "total",
		Why: "the node says nothing of what it has, so it counts as what its group brings: all of it free where it is idle, none where it has work",
		Fix: "give it total and available as Ray reports them",
	})
	if n.State == model.Running {
		return make(vector.Vector, r.Width)
	}
	return total
}

func (r *roster) overstated(n *model.Node, name string, available, total raydemand.Amount) {
	free, all := phrase.Pair(name, available, total)
	r.findings = append(r.findings, raydemand.Finding{
		Code: model.FindingOverstated, Severity: raydemand.Warning, Object: "node " + n.Pod, Field: "available." + name,
		Seen: free, Why: fmt.Sprintf("the node has %s in total and more cannot be free, so %s counts as free; Ray's own autoscaler stops planning in this state", all, all),
		Fix: "nothing has to be done here",
	})
}

// stranger handles a node of a group that is not in the snapshot: it was removed from the RayCluster, and the
// operator leaves its pods behind.
func (r *roster) stranger(n *model.Node, checkDisabled bool) {
	if !checkDisabled && n.State != model.Leaving && n.State != model.AllocationTimeout {
		r.nodes = append(r.nodes, node{Node: n, group: unknownGroup, stop: model.StopOutdated,
			stopMessage: fmt.Sprintf("its worker group %q was removed from the RayCluster; the operator deletes none of its pods, so somebody has to", n.Group)})
	}
	r.findings = append(r.findings, raydemand.Finding{
		Code: model.FindingGroupRemoved, Severity: raydemand.Warning, Object: "pod " + n.Pod, Field: "group", Seen: n.Group,
		Why: "the RayCluster lists no worker group of this name, so no demand is placed on the pod, no limit counts it, and nobody deletes it",
		Fix: "delete the pod once its work is done, or bring the worker group back",
	})
}

// unknownGroup is the group number of a node whose group is gone.
const unknownGroup = -2
