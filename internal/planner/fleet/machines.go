package fleet

import (
	"cmp"

	"heliostat.dev/heliostat/internal/planner/vector"
)

// machines are the Kubernetes nodes of the own pods, by name: how many pods are on each, and how many of them stay
// whatever is stopped. A node autoscaler can remove an empty machine, and none with one pod left.
type machines map[string]*struct{ pods, stay int }

// machinesOf counts the pods that are on known machines. leaves reports whether a node may be stopped.
func (r *Fleet) machinesOf(leaves func(n int) bool) machines {
	all := machines{}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if n.KubeNode == "" || n.Stop != "" {
			continue
		}
		at := all[n.KubeNode]
		if at == nil {
			at = &struct{ pods, stay int }{}
			all[n.KubeNode] = at
		}
		at.pods++
		if !leaves(i) {
			at.stay++
		}
	}
	return all
}

// emptying says what stopping a unit does to its machines.
type emptying struct {
	// empties: no pod has to stay on the machines of any host, so they can become empty.
	empties bool
	// pods is how many pods must go until they are. first names the first machine, so that its pods go together.
	pods  int
	first string
}

func (r *Fleet) emptying(u *unit, all machines) emptying {
	var e emptying
	seen := map[string]bool{}
	for _, n := range u.nodes {
		name := r.Nodes[n].KubeNode
		at := all[name]
		if at == nil || at.stay > 0 {
			return emptying{}
		}
		if !seen[name] {
			seen[name] = true
			e.pods += at.pods
		}
	}
	e.empties, e.first = true, r.Nodes[u.nodes[0]].KubeNode
	return e
}

// compare orders units whose machines can become empty first, those of small machines before large ones, and keeps the
// pods of a machine together.
func (e emptying) compare(other emptying) int {
	return cmp.Or(
		vector.CompareBool(!e.empties, !other.empties),
		cmp.Compare(e.pods, other.pods),
		cmp.Compare(e.first, other.first),
	)
}
