package scenario

import (
	"fmt"
	"maps"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

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
