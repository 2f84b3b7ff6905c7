package landing

import (
	"cmp"
	"slices"
)

// SharedNodes say how many pods of the groups fit together on the nodes that exist and that pools may still add. They
// are nil if nothing limits a group.
type SharedNodes struct {
	pods   []Pod
	places []Place
	packer *Packer
	// kinds is the number of each group's pods in the packer, or notLimited.
	kinds []int
	// order are the limited groups in the order in which their pods are placed: those of which the fewest fit first,
	// because they are the largest or have the fewest places.
	order []int
	// present is how many pods of each group have no place among those that are counted: all but the bound ones.
	present []int64
	// last places pods beside the promised ones and remembers the last placing.
	last *chain
	// promised are pods of other RayClusters, which come first.
	promised []promised
	// promisedKinds are the numbers of their pods in the packer, by name.
	promisedKinds map[string]int
	// unproven are the pools in which pods of a group are tried, by the group's number.
	unproven map[int][]string
	// Most is how many pods of each group can exist if no other pods come.
	Most []int64
}

// promised is a promise and the number of its pods in the packer.
type promised struct {
	Promise
	kind int
}

// notLimited is the kind of groups that nothing limits.
const notLimited = -1

// newSharedNodes finds the groups whose pods can only be on a limited number of nodes. Pods of other groups limit
// nobody: they may go elsewhere. tries is how many pods of a group may be where nothing shows that there is room.
func newSharedNodes(of Common, groups []Tenant, tries func(*Tenant) int64) *SharedNodes {
	all := &SharedNodes{}
	all.places, all.unproven = placesToTry(of.Places, groups, tries)
	all.kinds = make([]int, len(groups))
	byPool := newDeclared(groups)
	for i := range groups {
		pod, known := byPool.podOf(&groups[i])
		if groups[i].Pod != nil {
			pod, known = *groups[i].Pod, true
			pod.Name = groups[i].Name
		}
		all.kinds[i] = notLimited
		if known {
			all.kinds[i] = len(all.pods)
			all.pods = append(all.pods, pod)
		}
	}
	if len(all.pods) == 0 {
		return nil
	}
	all.promised = make([]promised, 0, len(of.Promised))
	for _, p := range of.Promised {
		all.promise(p)
	}
	all.places = append(slices.Clip(all.places), byPool.places()...)
	return all.limited().of(groups)
}

// promise adds a promise. Promises of pods with one name are of one kind.
func (c *SharedNodes) promise(p Promise) {
	kind, known := c.promisedKinds[p.Pod.Name]
	if !known {
		if c.promisedKinds == nil {
			c.promisedKinds = map[string]int{}
		}
		kind, c.promisedKinds[p.Pod.Name] = len(c.pods), len(c.pods)
		c.pods = append(c.pods, p.Pod)
	}
	c.promised = append(c.promised, promised{p, kind})
}

// limited returns the ceilings of those groups alone that have some places and no notLimited one; nil if there is none.
func (c *SharedNodes) limited() *SharedNodes {
	accepted := map[string]bool{}
	for i := range c.places {
		for _, name := range c.places[i].Accepts {
			accepted[name] = true
		}
	}
	empty := New(c.pods, c.places).Empty()
	few := &SharedNodes{kinds: make([]int, len(c.kinds)), unproven: map[int][]string{}}
	named := map[string]bool{}
	limited := func(kind int) bool {
		return kind != notLimited && accepted[c.pods[kind].Name] && empty.Room(kind) < Unbounded
	}
	for i, kind := range c.kinds {
		few.kinds[i] = notLimited
		if limited(kind) {
			few.kinds[i] = len(few.pods)
			few.pods = append(few.pods, c.pods[kind])
			named[c.pods[kind].Name] = true
			if pools := c.unproven[i]; len(pools) > 0 {
				few.unproven[i] = pools
			}
		}
	}
	if len(few.pods) == 0 {
		return nil
	}
	for _, p := range c.promised {
		if limited(p.kind) {
			few.promise(p.Promise)
		}
	}
	for i := range c.places {
		counts := len(c.places[i].Counted)+len(c.places[i].Holds) > 0
		if counts || slices.ContainsFunc(c.places[i].Accepts, func(name string) bool { return named[name] }) {
			few.places = append(few.places, c.places[i])
		}
	}
	few.packer = New(few.pods, few.places)
	return few
}

// of counts the groups' pods.
func (c *SharedNodes) of(groups []Tenant) *SharedNodes {
	if c == nil {
		return nil
	}
	empty := c.packer.Empty()
	c.Most, c.present = make([]int64, len(groups)), make([]int64, len(groups))
	alone := make([]int64, len(groups))
	for i, kind := range c.kinds {
		if kind == notLimited {
			continue
		}
		c.order = append(c.order, i)
		bound := min(max(groups[i].Bound, 0), groups[i].Current)
		alone[i], c.present[i] = empty.Room(kind), groups[i].Current-bound
		c.Most[i] = min(alone[i], Unbounded) + bound
	}
	slices.SortStableFunc(c.order, func(a, b int) int { return cmp.Compare(alone[a], alone[b]) })
	for _, p := range c.promised {
		empty.Take(p.kind, p.Pods)
	}
	c.last = newChain(c, empty)
	return c
}

// Rivals returns the other groups that can use nodes of a group.
func (c *SharedNodes) Rivals(i int) []int {
	name := c.pods[c.kinds[i]].Name
	var rivals []int
	for _, j := range c.order {
		both := func(p Place) bool {
			return slices.Contains(p.Accepts, name) && slices.Contains(p.Accepts, c.pods[c.kinds[j]].Name)
		}
		if j != i && slices.ContainsFunc(c.places, both) {
			rivals = append(rivals, j)
		}
	}
	slices.Sort(rivals)
	return rivals
}

// NewNodesFor returns the places of new nodes that accept pods of a group.
func (c *SharedNodes) NewNodesFor(i int) []Place {
	if !c.Limits(i) {
		return nil
	}
	name := c.pods[c.kinds[i]].Name
	return slices.DeleteFunc(slices.Clone(c.places), func(p Place) bool {
		return !p.New || p.Nodes != nil && *p.Nodes == 0 || !slices.Contains(p.Accepts, name)
	})
}

// Limits reports whether nodes limit a group.
func (c *SharedNodes) Limits(i int) bool { return c != nil && c.kinds[i] != notLimited }

// Occupy places pods of a group, and returns how many have room; on is nil if the nodes are full.
func (c *SharedNodes) Occupy(on *Taken, i int, pods int64) int64 {
	switch {
	case !c.Limits(i) || pods <= 0:
		return pods
	case on == nil:
		return 0
	}
	return on.Take(c.kinds[i], pods)
}

// Room returns how many more pods of a group have room; on is nil if the nodes are full.
func (c *SharedNodes) Room(on *Taken, i int) int64 {
	switch {
	case !c.Limits(i):
		return Unbounded
	case on == nil:
		return 0
	}
	return min(on.Room(c.kinds[i]), Unbounded)
}

// Occupied returns the nodes with the present pods and the given ones. Present pods that find no place there limit
// nobody. Given pods had places when they were launched one after the other. If no order that is tried finds places for
// all of them again, the nodes count as full, and Occupied returns nil.
func (c *SharedNodes) Occupied(given []int64) *Taken { return c.last.place(c, given) }

// AllOccupied returns the nodes with promised, present and given pods, for Shortage. It places all pods anew.
func (c *SharedNodes) AllOccupied(given []int64) *Taken {
	on := c.packer.All()
	for _, p := range c.promised {
		on.Take(p.kind, p.Pods)
	}
	for _, counts := range [][]int64{c.present, given} {
		for _, j := range c.order {
			on.Take(c.kinds[j], counts[j])
		}
	}
	return on
}

// Shortage returns why nodes cannot hold more pods of a group. They come from AllOccupied, and do not change.
func (c *SharedNodes) Shortage(on *Taken, i int) Shortage {
	return on.Shortage(c.kinds[i])
}
