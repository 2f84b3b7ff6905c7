package sharedlimits

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/nodepool/binpack"
)

// Vacancies are what is free on the nodes that exist: a pod that fits there waits for no new node.
type Vacancies struct {
	// kinds is the number of each group's pods in the packers, or unlimited if its nodes are unknown.
	kinds []int
	// order is the order in which pods are placed: groups of which the fewest fit come first.
	order []int
	// all are all existing nodes, and used those that hold other pods, so that no node autoscaler removes them.
	// Promised pods and pods on their way have been placed on both.
	all, used *binpack.State
}

// Hosted counts pods of a group that find room on existing nodes: Used on those that hold other pods, All in total.
type Hosted struct{ Used, All int64 }

// NewVacancies returns nil if no existing node has room for a pod of these groups.
func (l *Limits) NewVacancies(s *model.Snapshot) *Vacancies {
	v := &Vacancies{kinds: make([]int, len(l.groups))}
	var pods []binpack.Pod
	for i := range l.groups {
		if v.kinds[i] = unlimited; l.groups[i].Pod != nil {
			v.kinds[i] = len(pods)
			pod := *l.groups[i].Pod
			pod.Name = l.groups[i].Name
			pods, v.order = append(pods, pod), append(v.order, i)
		}
	}
	own := len(pods)
	for _, p := range s.Promised {
		pods = append(pods, p.Pod)
	}
	missing := func(p binpack.Place) bool { return p.New || p.Nodes == nil || *p.Nodes == 0 }
	there := slices.DeleteFunc(slices.Clone(s.Places), missing)
	if own == 0 || len(there) == 0 {
		return nil
	}
	v.all = binpack.New(pods, there).Empty()
	v.used = binpack.New(
		pods, slices.DeleteFunc(slices.Clone(there), func(p binpack.Place) bool { return p.Empty }),
	).Empty()
	slices.SortStableFunc(v.order, func(a, b int) int {
		return cmp.Compare(v.all.Room(v.kinds[a]), v.all.Room(v.kinds[b]))
	})
	if last := v.order[len(v.order)-1]; v.all.Room(v.kinds[last]) == 0 {
		return nil
	}
	for k, p := range s.Promised {
		v.place(own+k, p.Pods)
	}
	for _, i := range v.order {
		g := &l.groups[i]
		v.place(v.kinds[i], g.Current-min(max(g.Bound, 0), g.Current))
	}
	return v
}

// place places pods on both.
func (v *Vacancies) place(kind int, pods int64) Hosted {
	return Hosted{Used: v.used.Add(kind, pods), All: v.all.Add(kind, pods)}
}

// Copy returns vacancies that pods can be placed on.
func (v *Vacancies) Copy() *Vacancies {
	if v == nil {
		return nil
	}
	copied := &Vacancies{kinds: v.kinds, order: v.order, all: &binpack.State{}, used: &binpack.State{}}
	copied.all.CopyFrom(v.all)
	copied.used.CopyFrom(v.used)
	return copied
}

// Host counts the pods by group that find room.
func (v *Vacancies) Host(pods []int64) []Hosted {
	hosted := make([]Hosted, len(pods))
	if v == nil {
		return hosted
	}
	on := v.Copy()
	for _, i := range on.order {
		hosted[i] = on.Take(i, pods[i])
	}
	return hosted
}

// Take places pods of one group on v, and returns how many found room.
func (v *Vacancies) Take(i int, pods int64) Hosted {
	if v == nil || v.kinds[i] == unlimited || pods <= 0 {
		return Hosted{}
	}
	return v.place(v.kinds[i], pods)
}

// Room returns how many more pods of a group fit.
func (v *Vacancies) Room(i int) Hosted {
	if v == nil || v.kinds[i] == unlimited {
		return Hosted{}
	}
	most := func(on *binpack.State) int64 { return min(on.Room(v.kinds[i]), vector.MaxCount) }
	return Hosted{Used: most(v.used), All: most(v.all)}
}
