package landing

import (
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Packer is a set of places, and the kinds of pods to place on them. It is immutable.
type Packer struct {
	kinds     []kind
	places    []site
	resources map[string]int
	// most is the largest amount of each resource on one node, by which the amounts of nodes are compared.
	most []raydemand.Amount
	// extended marks the resources that only some nodes have.
	extended []bool
	// ruled: some kind keeps others from its nodes.
	ruled bool
	empty *Taken
	// useless are the nodes that no pod can use even if they are empty.
	useless []stack
}

// kind is a Pod with its requests by the numbers of resources.
type kind struct {
	requests []request
	cards    *CardRequest
	// apart are the kinds that must not be on the same node, by required anti-affinity or a port of the node
	// (docs/reference/facts.md#rules-between-pods).
	apart []int
}

type request struct {
	resource int
	amount   raydemand.Amount
}

// site is a Place with what does not change when pods are placed on it.
type site struct {
	accepts []bool
	// free is what each of the nodes has before pods are placed.
	free  []raydemand.Amount
	nodes int64
	// unbounded: the pool may add nodes without a known bound.
	unbounded, anySize, isNew, unproven bool
	order                               string
	// draws is what each kind takes of the devices of each node, by the devices.
	draws [][]int64
	// same are the other places of the same new nodes.
	same []int
}

// podSlots is the resource of which each pod takes one.
const podSlots = "pods"

// New prepares the places for pods of these kinds. Names that occur only in constraints are kinds of pods that are on
// nodes already. Other names in places mean nothing.
func New(pods []Pod, places []Place) *Packer {
	p := &Packer{resources: map[string]int{podSlots: 0}, places: make([]site, len(places))}
	names, kinds := namesOf(pods)
	p.kinds = make([]kind, kinds)
	for i := range pods {
		p.kinds[i] = p.kindOf(&pods[i])
	}
	p.bind(pods, names)
	p.measure(places)
	devices := make([][]int64, len(places))
	for i := range places {
		p.places[i] = siteOf(&places[i], names, kinds)
		p.places[i].draws, devices[i] = drawsOf(&places[i], pods, kinds)
	}
	p.joinNew(places)
	p.empty = p.start(places, names, devices)
	return p
}

// namesOf numbers the kinds: the pods in their order, then the names that occur only in constraints.
func namesOf(pods []Pod) (names map[string]int, kinds int) {
	names, kinds = make(map[string]int, len(pods)), len(pods)
	for i := range pods {
		names[pods[i].Name] = i
	}
	for i := range pods {
		for _, name := range pods[i].Apart {
			if _, known := names[name]; !known {
				names[name] = kinds
				kinds++
			}
		}
	}
	return names, kinds
}

func (p *Packer) measure(places []Place) {
	p.most, p.extended = make([]raydemand.Amount, len(p.resources)), make([]bool, len(p.resources))
	for name, r := range p.resources {
		p.extended[r] = strings.Contains(name, "/")
	}
	for i := range places {
		for name, amount := range places[i].Free {
			if r, known := p.resources[name]; known && !places[i].AnySize {
				p.most[r] = max(p.most[r], amount)
			}
		}
	}
}

// start returns the state in which only the pods that are there have been placed.
func (p *Packer) start(places []Place, names map[string]int, devices [][]int64) *Taken {
	s := &Taken{packer: p, rooms: make([]sum, len(p.kinds))}
	for i := range places {
		b, nodes := p.emptyBin(&places[i], i), p.places[i].nodes
		b.devices = devices[i]
		if p.ruled && nodes > 0 {
			b.holds = make([]int64, len(p.kinds))
			for name, n := range places[i].Holds {
				if k, known := names[name]; known {
					b.holds[k] = n
				}
			}
		}
		p.finish(b)
		p.places[i].free = b.free
		if s.insert(b, nodes); nodes > 0 && b.rank.kinds == 0 {
			p.useless = append(p.useless, stack{b, nodes, i})
		}
	}
	return s
}

func (p *Packer) kindOf(pod *Pod) kind {
	k := kind{requests: []request{{0, raydemand.One}}, cards: pod.Cards}
	if pod.Cards != nil {
		own := *pod.Cards
		own.pod, k.cards = pod.Name, &own
	}
	for _, name := range slices.Sorted(maps.Keys(pod.Requests)) {
		amount := pod.Requests[name]
		if amount <= 0 || name == podSlots {
			continue
		}
		r, known := p.resources[name]
		if !known {
			r = len(p.resources)
			p.resources[name] = r
		}
		k.requests = append(k.requests, request{r, amount})
	}
	return k
}

func siteOf(place *Place, names map[string]int, kinds int) site {
	s := site{accepts: make([]bool, kinds), nodes: nodesOf(place), unbounded: place.Nodes == nil,
		anySize: place.AnySize, isNew: place.New, unproven: place.Unproven, order: place.CardOrder}
	for _, name := range place.Accepts {
		if i, known := names[name]; known {
			s.accepts[i] = true
		}
	}
	return s
}

// joinNew finds the places of the same new nodes, where the number of nodes that the pool may add is known.
func (p *Packer) joinNew(places []Place) {
	byPool := map[string][]int{}
	for i := range places {
		if s := &p.places[i]; places[i].SameNodes && s.isNew && !s.anySize && !s.unbounded {
			byPool[places[i].Pool] = append(byPool[places[i].Pool], i)
		}
	}
	for _, all := range byPool {
		for at, i := range all {
			p.places[i].same = slices.Delete(slices.Clone(all), at, at+1)
		}
	}
}

// nodesOf returns how many bins the place has. All nodes of a pool that adds nodes of any size are one.
func nodesOf(place *Place) int64 {
	switch {
	case place.Nodes == nil && !place.AnySize:
		return Unbounded
	case place.Nodes != nil && *place.Nodes <= 0:
		return 0
	case place.AnySize:
		return 1
	}
	return min(*place.Nodes, Unbounded)
}

// Empty returns the state in which no pod has been placed.
func (p *Packer) Empty() *Taken {
	s := &Taken{}
	s.CopyFrom(p.empty)
	return s
}

// bin is what is left of one node, or of a pool that adds nodes of any size. It is immutable but for what it remembers;
// states share it.
type bin struct {
	place int
	// free is by resource; unlimited marks a resource that does not bound.
	free  []raydemand.Amount
	cards []run
	// devices is by the draws of the place.
	devices []int64
	// rooms is how many pods of each kind fit if no others are placed.
	rooms []int64
	// holds is how many pods of each kind are on the node; nil if no kind keeps others away.
	holds []int64
	// rank orders bins by preference, the lowest first.
	rank rank
	// opened: the node does not exist yet, and pods have been placed on it.
	opened bool
	// took is what made the bin of another one, and next is one that was made of it. A plan places the same pods again
	// and again.
	took struct{ kind, pods int64 }
	next atomic.Pointer[bin]
}

const unlimited raydemand.Amount = math.MaxInt64

// rank is the preference of a bin (before).
type rank struct {
	tier  int8
	kinds int32
	left  int64
}

// before orders bins by preference: nodes that exist before new ones that are in use before others, nodes that may have
// no room last, then those that the fewest kinds of pods can use, then the fullest.
func (b *bin) before(other *bin) bool {
	switch r, o := &b.rank, &other.rank; {
	case r.tier != o.tier:
		return r.tier < o.tier
	case r.kinds != o.kinds:
		return r.kinds < o.kinds
	case r.left != o.left:
		return r.left < o.left
	}
	return b.place < other.place
}

func (p *Packer) emptyBin(place *Place, at int) *bin {
	b := &bin{place: at, free: make([]raydemand.Amount, len(p.resources)), cards: runsOf(place)}
	for name, r := range p.resources {
		amount, known := place.Free[name]
		switch {
		case known:
			b.free[r] = max(amount, 0)
		case place.AnySize || name == podSlots:
			b.free[r] = unlimited
		}
	}
	return b
}

func (p *Packer) finish(b *bin) {
	s := &p.places[b.place]
	b.rooms = make([]int64, len(p.kinds))
	for k := range p.kinds {
		if !s.accepts[k] {
			continue
		}
		b.rooms[k] = p.room(b, k)
		if b.holds != nil && !s.anySize {
			b.rooms[k] = p.kinds[k].beside(k, b.holds, b.rooms[k])
		}
		if b.rooms[k] > 0 {
			b.rank.kinds++
		}
	}
	b.rank.left = p.left(b)
	switch {
	case !s.isNew:
	case s.unproven:
		b.rank.tier = 4
	case b.opened:
		b.rank.tier = 1
	case s.unbounded || s.anySize:
		b.rank.tier = 3
	default:
		b.rank.tier = 2
	}
}

// left adds up what is left of a node as parts of the largest node's, in 1/1024. Extended resources and cards count
// most, because a node without them left is of no use to pods that need them.
func (p *Packer) left(b *bin) int64 {
	const part, weight = 1 << 10, 1 << 6
	var sum int64
	for r, amount := range b.free {
		if r == 0 || amount == unlimited || p.most[r] <= 0 {
			continue
		}
		n := int64(float64(amount) / float64(p.most[r]) * part)
		if p.extended[r] {
			n *= weight
		}
		sum += n
	}
	return sum + leftOfCards(b.cards)*weight
}

func (k *kind) room(b *bin, order string) int64 {
	n := int64(Unbounded)
	for _, r := range k.requests {
		if free := b.free[r.resource]; free != unlimited {
			n = min(n, int64(free/r.amount))
		}
	}
	if n > 0 && k.cards != nil && b.cards != nil {
		n = k.cards.room(b.cards, order, n)
	}
	return n
}

// take returns the bin with n more pods of a kind, of which it has room for as many.
func (p *Packer) take(b *bin, k int, n int64) *bin {
	known := b.next.Load()
	if known != nil && known.took.kind == int64(k) && known.took.pods == n {
		return known
	}
	opened := p.places[b.place].isNew
	after := &bin{place: b.place, free: slices.Clone(b.free), cards: b.cards, opened: opened}
	after.took.kind, after.took.pods = int64(k), n
	kind := &p.kinds[k]
	for _, r := range kind.requests {
		if free := &after.free[r.resource]; *free != unlimited {
			*free -= r.amount.Times(n)
		}
	}
	if kind.cards != nil && b.cards != nil {
		after.cards = kind.cards.take(b.cards, p.places[b.place].order, n)
	}
	after.devices = b.devices
	if len(b.devices) > 0 {
		after.devices = slices.Clone(b.devices)
		for i, takes := range p.places[b.place].draws {
			after.devices[i] -= takes[k] * n
		}
	}
	if b.holds != nil {
		after.holds = slices.Clone(b.holds)
		after.holds[k] += n
	}
	p.finish(after)
	b.next.Store(after)
	return after
}

func (b *bin) equal(other *bin) bool {
	return b.place == other.place && b.rank == other.rank && b.opened == other.opened &&
		slices.Equal(b.free, other.free) && slices.Equal(b.cards, other.cards) &&
		slices.Equal(b.devices, other.devices) && slices.Equal(b.holds, other.holds)
}

// bind sets which kinds keep each other from their nodes, in both directions: the scheduler also checks the
// anti-affinity of the pods that are there. Other kinds are numbers.
func (p *Packer) bind(pods []Pod, names map[string]int) {
	apart := func(kind, other int) {
		if k := &p.kinds[kind]; !slices.Contains(k.apart, other) {
			k.apart = append(k.apart, other)
		}
	}
	for i := range pods {
		for _, name := range pods[i].Apart {
			apart(i, names[name])
			apart(names[name], i)
			p.ruled = true
		}
	}
}

// beside returns how many of room pods of the kind may be on a node that holds these pods.
func (k *kind) beside(own int, holds []int64, room int64) int64 {
	for _, other := range k.apart {
		switch {
		case other == own:
			room = min(room, max(1-holds[own], 0))
		case holds[other] > 0:
			return 0
		}
	}
	return room
}
