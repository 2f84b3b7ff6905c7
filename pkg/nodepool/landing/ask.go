package landing

import (
	"crypto/sha256"
	"slices"
	"strconv"
)

// Kind is the pods of one worker group: what they take, and on which nodes they may be scheduled.
type Kind struct {
	Pod
	Shape *PodShape
	// Class is the shape's. Kinds of one class are compared with nodes once; a zero Class is unknown.
	Class Key
}

// Ask is a question about Nodes: where pods of some kinds may run. It is immutable.
type Ask struct {
	// Pods are those of the kinds with the constraints between them and pods on nodes.
	Pods  []Pod
	stock *Nodes
	kinds []Kind
	own   OnNodes
	// constrained: there are constraints between pods. They count nodes on which nothing is free.
	constrained bool
}

// Ask asks where pods of these kinds may run. own are pods of these kinds that are on nodes already.
func (s *Nodes) Ask(kinds []Kind, own OnNodes) Ask {
	a := Ask{stock: s, kinds: kinds}
	a.Pods, a.own = s.constrain(kinds, own)
	a.constrained = slices.ContainsFunc(a.Pods, func(p Pod) bool { return len(p.Apart)+len(p.Spread) > 0 })
	return a
}

// Places is Ask with its answer.
func (s *Nodes) Places(kinds []Kind, own OnNodes) ([]Place, []Pod) {
	a := s.Ask(kinds, own)
	return a.Places(), a.Pods
}

// Key is equal for questions about the same Nodes that have the same answer. It is false if the answer depends on more
// than the names and classes of the kinds: on pods that are on nodes.
func (a Ask) Key() (key Key, alike bool) {
	if a.constrained || len(a.own) > 0 {
		return key, false
	}
	text := make([]byte, 0, len(a.kinds)*(len(key)+16))
	for i := range a.kinds {
		if a.kinds[i].Class == (Key{}) {
			return key, false
		}
		text = append(strconv.AppendQuote(text, a.kinds[i].Name), a.kinds[i].Class[:]...)
	}
	return sha256.Sum256(text), true
}

// Places returns where the pods may run: existing nodes with what is free on them, then what each pool may still add. A
// kind that no place accepts fits no known node and no pool.
func (a Ask) Places() []Place {
	t := &stocktaking{Ask: a, like: likes(a.kinds), pools: make(map[string]*poolStock, len(a.stock.Rooms))}
	t.markHeld()
	for i := range a.stock.Rooms {
		t.pools[a.stock.Rooms[i].Pool] = t.poolStock(&a.stock.Rooms[i])
	}
	shapes := make([]*PodShape, len(a.kinds))
	for i := range a.kinds {
		shapes[i] = a.kinds[i].Shape
	}
	for _, kind := range a.stock.kindsFor(shapes) {
		t.look(kind)
	}
	for i := range t.entries {
		t.addExisting(&t.entries[i])
	}
	for i := range a.stock.Rooms {
		t.addNew(&a.stock.Rooms[i])
	}
	return slices.Clone(t.places)
}

// Merge returns the kinds without those after the given number that an earlier one of them is equal to: of the same
// class, and no constraint between pods concerns either. like is for each of the old kinds the position of its own.
func (a Ask) Merge(after int) (kinds []Kind, like []int) {
	concerned := a.concerned()
	first := map[Key]int{}
	for i, kind := range a.kinds {
		free := i >= after && !concerned[kind.Name] && kind.Class != (Key{})
		if at, known := first[kind.Class]; free && known {
			like = append(like, at)
			continue
		}
		if free {
			first[kind.Class] = len(kinds)
		}
		like, kinds = append(like, len(kinds)), append(kinds, kind)
	}
	return kinds, like
}

// concerned returns the kinds that have constraints between pods, or that those of others name.
func (a Ask) concerned() map[string]bool {
	names := map[string]bool{}
	add := func(own string, others []string) {
		names[own] = true
		for _, other := range others {
			names[other] = true
		}
	}
	for i := range a.Pods {
		pod := &a.Pods[i]
		if len(pod.Apart) > 0 {
			add(pod.Name, pod.Apart)
		}
		for _, spread := range pod.Spread {
			add(pod.Name, spread.Pods)
		}
	}
	return names
}

// likes returns the first kind of the class of each.
func likes(kinds []Kind) []int {
	like, first := make([]int, len(kinds)), map[Key]int{}
	for i := range kinds {
		at, known := first[kinds[i].Class]
		if like[i] = at; !known || kinds[i].Class == (Key{}) {
			like[i], first[kinds[i].Class] = i, i
		}
	}
	return like
}

func (t *stocktaking) poolStock(room *Room) *poolStock {
	pool := &poolStock{counts: make([]*poolView, len(t.kinds)), coming: map[*Node]bool{}}
	for i, first := range t.like {
		if pool.counts[i] = pool.counts[first]; first == i {
			pool.counts[i] = &poolView{room: room}
		}
	}
	return pool
}
