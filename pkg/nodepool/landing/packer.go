package landing

import (
	"maps"
	"slices"
	"strings"

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
	// ruled: some kind has rules.
	ruled bool
	// among is what is free of the devices that several nodes reach.
	among []int64
	empty *Taken
	// useless are the nodes that no pod can use even if they are empty.
	useless []stack
}

// kind is a Pod with its requests by the numbers of resources.
type kind struct {
	requests []request
	cards    *CardRequest
	rules    rules
	// sharesNodes: the pods take devices that several nodes reach, so a pod on one node leaves less room on others.
	sharesNodes bool
}

// careful: pods on one node change the room on others.
func (k *kind) careful() bool { return k.sharesNodes || len(k.rules.spreads) > 0 }

type request struct {
	resource int
	amount   raydemand.Amount
}

// site is a Place with what does not change when pods are placed on it.
type site struct {
	accepts, counted []bool
	// free is what each of the nodes has before pods are placed.
	free  []raydemand.Amount
	nodes int64
	// unbounded: the pool may add nodes without a known bound.
	unbounded, anySize, isNew, unproven bool
	order                               string
	draws                               []draw
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
	among, devices := map[string]int{}, make([][]int64, len(places))
	for i := range places {
		p.places[i] = siteOf(&places[i], names, kinds)
		p.places[i].draws, devices[i] = p.drawsOf(&places[i], pods, among)
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
	add := func(list []string) {
		for _, name := range list {
			if _, known := names[name]; !known {
				names[name] = kinds
				kinds++
			}
		}
	}
	for i := range pods {
		add(pods[i].Apart)
		for _, spread := range pods[i].Spread {
			add(spread.Pods)
		}
	}
	return names, kinds
}

// measure finds the largest amounts of resources.
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
	s := &Taken{packer: p, rooms: make([]sum, len(p.kinds)), among: p.among}
	if p.ruled || len(p.among) > 0 {
		s.spreadRooms = slices.Repeat([]int64{unknownRoom}, len(p.kinds))
	}
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
		if s.insert(b, nodes); nodes > 0 && b.rank.kinds == 0 && b.holds == nil {
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
	marked := func(list []string) []bool {
		marks := make([]bool, kinds)
		for _, name := range list {
			if i, known := names[name]; known {
				marks[i] = true
			}
		}
		return marks
	}
	s := site{
		accepts:   marked(place.Accepts),
		nodes:     nodesOf(place),
		unbounded: place.Nodes == nil,
		anySize:   place.AnySize,
		isNew:     place.New,
		unproven:  place.Unproven,
		order:     place.CardOrder,
	}
	if len(place.Counted) > 0 {
		s.counted = marked(place.Counted)
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
