package landing

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"heliostat.dev/heliostat/pkg/raydemand"
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
	promised []Promise
	// promisedKinds are the numbers of their pods in the packer, by name: promises of pods with one name are of one
	// kind.
	promisedKinds map[string]int
	// unproven are the pools in which pods of a group are tried, by the group's number.
	unproven map[int][]string
	// Most is how many pods of each group can exist if no other pods come.
	Most []int64
}

// notLimited is the kind of groups that nothing limits.
const notLimited = -1

// newSharedNodes finds the groups whose pods can only be on a limited number of nodes: they have some places and no
// unlimited one. It returns nil if there is none. Pods of other groups limit nobody: they may go elsewhere. tries is
// how many pods of a group may be where nothing shows that there is room.
func newSharedNodes(
	places []Place, promises []Promise, groups []Tenant, tries func(*Tenant) int64,
) *SharedNodes {
	places, unproven := placesToTry(places, groups, tries)
	declared, pods := declaredPlaces(groups)
	places = append(slices.Clip(places), declared...)
	kinds, byName, all := make([]int, len(groups)), map[string]int{}, []Pod(nil)
	for i := range groups {
		pod, known := pods[i]
		if groups[i].Pod != nil {
			pod, known = *groups[i].Pod, true
			pod.Name = groups[i].Name
		}
		if kinds[i] = notLimited; known {
			kinds[i], all = len(all), append(all, pod)
		}
	}
	if len(all) == 0 {
		return nil
	}
	for i := range promises {
		if name := promises[i].Pod.Name; byName[name] == 0 {
			byName[name], all = len(all), append(all, *promises[i].Pod)
		}
	}
	accepted, named := map[string]bool{}, map[string]bool{}
	for i := range places {
		for _, name := range places[i].Accepts {
			accepted[name] = true
		}
	}
	empty := New(all, places).Empty()
	limited := func(kind int) bool {
		return kind != notLimited && accepted[all[kind].Name] && empty.Room(kind) < Unbounded
	}
	c := &SharedNodes{kinds: make([]int, len(groups)), unproven: map[int][]string{}, promisedKinds: map[string]int{}}
	for i, kind := range kinds {
		if c.kinds[i] = notLimited; limited(kind) {
			c.kinds[i], c.pods, named[all[kind].Name] = len(c.pods), append(c.pods, all[kind]), true
			if len(unproven[i]) > 0 {
				c.unproven[i] = unproven[i]
			}
		}
	}
	if len(c.pods) == 0 {
		return nil
	}
	for _, p := range promises {
		if !limited(byName[p.Pod.Name]) {
			continue
		}
		if _, known := c.promisedKinds[p.Pod.Name]; !known {
			c.promisedKinds[p.Pod.Name], c.pods = len(c.pods), append(c.pods, *p.Pod)
		}
		c.promised = append(c.promised, p)
	}
	for i := range places {
		if slices.ContainsFunc(places[i].Accepts, func(name string) bool { return named[name] }) {
			c.places = append(c.places, places[i])
		}
	}
	c.packer = New(c.pods, c.places)
	c.count(groups)
	return c
}

func (c *SharedNodes) count(groups []Tenant) {
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
		empty.Take(c.promisedKinds[p.Pod.Name], p.Pods)
	}
	c.last = newChain(c, empty)
}

// Rivals returns the other groups that can use nodes of a group.
func (c *SharedNodes) Rivals(i int) []int {
	var rivals []int
	for _, j := range c.order {
		if j != i && c.bothUse(c.pods[c.kinds[i]].Name, c.pods[c.kinds[j]].Name) {
			rivals = append(rivals, j)
		}
	}
	slices.Sort(rivals)
	return rivals
}

// bothUse reports whether a place accepts pods of both names.
func (c *SharedNodes) bothUse(a, b string) bool {
	return slices.ContainsFunc(c.places, func(p Place) bool {
		return slices.Contains(p.Accepts, a) && slices.Contains(p.Accepts, b)
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
func (c *SharedNodes) Occupied(given []int64) *Taken {
	if c == nil {
		return nil
	}
	return c.last.place(c, given)
}

// AllOccupied returns the nodes with promised, present and given pods, for Shortage. It places all pods anew.
func (c *SharedNodes) AllOccupied(given []int64) *Taken {
	on := c.packer.All()
	for _, p := range c.promised {
		on.Take(c.promisedKinds[p.Pod.Name], p.Pods)
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

// chain places the groups' pods on a start. Where pods go follows from their counts alone, so that the next plan, for
// which the launches of this one are present pods, finds the same places. A plan asks hundreds of times with counts of
// which most are as before, so the chain remembers the state after each group in the order of placing, and the first
// groups need not be placed again.
type chain struct {
	mu sync.Mutex
	// start is the state that the steps begin from; steps are by position in the order.
	start *Taken
	steps []chainStep
	// placeless is how many of each group's present pods have no place, by position in the order.
	placeless []int64
	// retried are the counts of the last placing in which some pods had no place, and other is the result of another
	// order.
	retried      []int64
	other        *Taken
	otherMissing []int64
}

// chainStep is the state after a group's pods, and how many of them had no place.
type chainStep struct {
	pods, missing int64
	after         *Taken
}

// newChain places the present pods on a start.
func newChain(c *SharedNodes, start *Taken) *chain {
	m := &chain{start: start, steps: make([]chainStep, len(c.order))}
	_, m.placeless = m.all(c, c.present)
	return m
}

// place places the present pods and the given ones, and returns a state of its own; nil if more pods have no place than
// of the present ones alone.
func (m *chain) place(c *SharedNodes, given []int64) *Taken {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, missing := m.beside(c, given)
	for k, missing := range missing {
		if missing > m.placeless[k] {
			return nil
		}
	}
	on := &Taken{}
	on.CopyFrom(found)
	return on
}

func (m *chain) beside(c *SharedNodes, given []int64) (on *Taken, missing []int64) {
	counts := slices.Clone(c.present)
	for _, i := range c.order {
		counts[i] += given[i]
	}
	return m.all(c, counts)
}

// placeless returns how many present and given pods of a group have no place.
func (c *SharedNodes) placeless(i int, given []int64) int64 {
	m := c.last
	m.mu.Lock()
	defer m.mu.Unlock()
	_, missing := m.beside(c, given)
	if k := slices.Index(c.order, i); k >= 0 {
		return missing[k]
	}
	return 0
}

// all places pods in order, and returns how many of each group had no place, by position in the order. If some had
// none, it tries another order, and returns what places more.
func (m *chain) all(c *SharedNodes, counts []int64) (on *Taken, missing []int64) {
	on, missing = m.inOrder(c, counts)
	if total(missing) == 0 {
		return on, missing
	}
	if !slices.Equal(m.retried, counts) {
		m.retried = slices.Clone(counts)
		m.other, m.otherMissing = m.missingFirst(c, counts, missing)
	}
	if total(m.otherMissing) < total(missing) {
		return m.other, m.otherMissing
	}
	return on, missing
}

func (m *chain) inOrder(c *SharedNodes, counts []int64) (on *Taken, missing []int64) {
	on, missing = m.start, make([]int64, len(c.order))
	same := true
	for k, i := range c.order {
		step := &m.steps[k]
		if same = same && step.after != nil && step.pods == counts[i]; !same {
			step.put(c, i, counts[i], on)
		}
		on, missing[k] = step.after, step.missing
	}
	return on, missing
}

func (s *chainStep) put(c *SharedNodes, i int, pods int64, before *Taken) {
	s.pods, s.missing, s.after = pods, 0, before
	if pods > 0 {
		s.after = &Taken{}
		s.after.CopyFrom(before)
		s.missing = pods - s.after.Take(c.kinds[i], pods)
	}
}

// missingFirst places pods of the groups of which some are missing before all others. It stops when as many are missing
// again.
func (m *chain) missingFirst(c *SharedNodes, counts, before []int64) (on *Taken, missing []int64) {
	on, missing = &Taken{}, make([]int64, len(c.order))
	on.CopyFrom(m.start)
	spare := total(before)
	for _, first := range []bool{true, false} {
		for k, i := range c.order {
			if first == (before[k] > 0) && spare > 0 {
				missing[k] = counts[i] - c.Occupy(on, i, counts[i])
				spare -= missing[k]
			}
		}
	}
	return on, missing
}

func total(counts []int64) (n int64) {
	for _, each := range counts {
		n += each
	}
	return n
}

// GroupPool is a pool of Kubernetes nodes that a group's pods can be scheduled on.
type GroupPool struct {
	Name string `json:"name"`
	// MaxPods is how many pods of the group the pool can ever hold, on present nodes and nodes that it may add; nil
	// means no limit.
	MaxPods *int64 `json:"maxPods"`
	// Resource is the Kubernetes name of what groups compete for on the pool's nodes, and Units is how much of it one
	// pod takes. Groups that use other resources of the same nodes, such as another MIG profile, do not compete for it.
	Resource string `json:"resource,omitempty"`
	Units    int64  `json:"units,omitempty"`
}

// declaredPlaces turns the pools of groups, which say how many pods they hold and what groups share of them, into
// places: each pool is one of any size. A resource of a pool has the pool's name in it, because a pod may count
// differently in each pool. A pool has as much of a resource as the group with the largest use of it could take. pods
// is what a pod takes, by group: of those all of whose pools have a limit and of which nothing better is known.
func declaredPlaces(groups []Tenant) (places []Place, pods map[int]Pod) {
	pods = map[int]Pod{}
	at := map[string]int{}
	for i := range groups {
		g := &groups[i]
		open := func(p GroupPool) bool { return p.MaxPods == nil }
		if g.Pod != nil || len(g.Pools) == 0 || slices.ContainsFunc(g.Pools, open) {
			continue
		}
		pods[i] = Pod{Name: g.Name, Requests: Quantities{}}
		for k := range g.Pools {
			pool := &g.Pools[k]
			if _, known := at[pool.Name]; !known {
				at[pool.Name] = len(places)
				places = append(places, Place{Pool: pool.Name, New: true, AnySize: true, Free: Quantities{}})
			}
			place := &places[at[pool.Name]]
			place.Accepts = append(place.Accepts, g.Name)
			share := func(resource string, units int64, capacity raydemand.Amount) {
				name := resource + " of pool " + pool.Name
				pods[i].Requests[name] = raydemand.Amount(units)
				place.Free[name] = max(place.Free[name], capacity)
			}
			most, units := min(max(*pool.MaxPods, 0), Unbounded), min(max(pool.Units, 1), math.MaxInt32)
			share("pods of group "+g.Name, 1, raydemand.Amount(most))
			share(pool.Resource, units, raydemand.Amount(units).Times(most))
		}
	}
	return places, pods
}
