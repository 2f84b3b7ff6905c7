package gpuinfo

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
)

// NoCard is the card of a wanted instance for which there is no room.
const NoCard = -1

// Assignment is where a wanted instance goes: on which of the cards, and where on it. Card is NoCard where no card has room.
type Assignment struct {
	Card int `json:"card"`
	Instance
}

// PlaceAll finds places for wanted profiles on many cards of the product, each with the instances that it has. What is
// there stays where it is. The answer has one assignment for each wanted profile, in the order of wanted.
//
// The largest go first, because what is left over then still takes the small ones. Each goes to the card, and the start on
// it, that costs the least of what stays possible: fewest places of the largest profile lost, then of the second largest,
// and so on; then the fullest card, then the first. Where not all fit, it is the small ones that stay over.
//
// While something stays over, further tries follow: one that first counts places lost of what is still wanted, and, since
// profiles with media engines (+me) go one to a card, the same two with those before all others. The try that serves more
// memory counts, then the one that serves more instances, then the first. docs/design/0004-mig-placement.md tells how good
// that is.
func (p Product) PlaceAll(cards [][]Instance, wanted []string) ([]Assignment, error) {
	profiles, err := p.indexes(wanted)
	if err != nil {
		return nil, err
	}
	before, err := p.fleet(cards)
	if err != nil {
		return nil, err
	}
	best := trial{units: -1}
	for _, order := range p.orders(profiles) {
		for _, wantedFirst := range []bool{false, true} {
			if t := before.clone().try(profiles, order, wantedFirst); t.serves(best) {
				best = t
			}
			if best.instances == len(wanted) {
				return best.assignments, nil
			}
		}
	}
	return best.assignments, nil
}

func (p *Product) indexes(names []string) ([]int, error) {
	byName := map[string]int{}
	profiles := make([]int, len(names))
	for i, name := range names {
		profile, seen := byName[name]
		if !seen {
			var known bool
			if profile, known = p.index(name); !known {
				return nil, fmt.Errorf("placing %s: %s has no such profile", name, p.Name)
			}
			byName[name] = profile
		}
		profiles[i] = profile
	}
	return profiles, nil
}

// orders are the orders in which requests of these profiles are tried. A product's profiles are sorted by size, then by compute
// slices, so the largest first is the order of their indexes.
func (p *Product) orders(profiles []int) [][]int {
	largest := make([]int, len(profiles))
	for i := range largest {
		largest[i] = i
	}
	slices.SortStableFunc(largest, func(a, b int) int { return profiles[a] - profiles[b] })
	plain := func(request int) int {
		if p.Profiles[profiles[request]].media {
			return 0
		}
		return 1
	}
	if !slices.ContainsFunc(largest, func(request int) bool { return plain(request) == 0 }) {
		return [][]int{largest}
	}
	media := slices.Clone(largest)
	slices.SortStableFunc(media, func(a, b int) int { return plain(a) - plain(b) })
	return [][]int{largest, media}
}

// trial is one way of placing, with the memory units and the instances it serves.
type trial struct {
	assignments      []Assignment
	units, instances int
}

func (t trial) serves(less trial) bool {
	return cmp.Or(t.units-less.units, t.instances-less.instances) > 0
}

// try places requests in one order. With wantedFirst the places that count most are those of what comes later in it.
func (f *fleet) try(profiles, order []int, wantedFirst bool) trial {
	t := trial{assignments: make([]Assignment, len(profiles))}
	later := make([]int, len(f.product.Profiles)) // requests that are still to be placed, by profile
	for _, profile := range profiles {
		later[profile]++
	}
	for _, i := range order {
		profile := &f.product.Profiles[profiles[i]]
		t.assignments[i] = Assignment{NoCard, Instance{Profile: profile.Name}}
		var counts []int
		if wantedFirst {
			counts = later
		}
		if m, ok := f.cheapest(profiles[i], counts); ok {
			t.assignments[i].Card, t.assignments[i].Start = f.take(m, profiles[i]), m.start
			t.units, t.instances = t.units+profile.Size, t.instances+1
		}
		later[profiles[i]]--
	}
	return t
}

// fleet has the cards by what is on them: thousands of cards are in some hundred states, and cards in one state are alike.
type fleet struct {
	product *Product
	states  map[occupancy]*state
	// list has them in the order in which they came up, so that equal input gives equal answers.
	list []*state
}

// state is one way in which a card is filled, with the cards that are filled so, in ascending order.
type state struct {
	occupancy
	cards []int
	// left counts how many of each profile would still fit; moves are the best ways to take one, by profile.
	left  []int
	moves []move
}

// move is the best place of a profile on cards of a state.
type move struct {
	from *state
	// known: it was looked for. possible: there is one.
	known, possible bool
	start           int
	// lost is by how many fewer of each profile would fit after it.
	lost []int
}

func (p *Product) fleet(cards [][]Instance) (*fleet, error) {
	f := &fleet{product: p, states: map[occupancy]*state{}}
	for i, instances := range cards {
		card, err := p.occupied(instances)
		if err != nil {
			return nil, fmt.Errorf("reading card %d: %w", i, err)
		}
		s := f.state(card)
		s.cards = append(s.cards, i)
	}
	return f, nil
}

// clone has the same cards, to be filled apart.
func (f *fleet) clone() *fleet {
	c := &fleet{product: f.product, states: map[occupancy]*state{}}
	for _, s := range f.list {
		c.state(s.occupancy).cards = slices.Clone(s.cards)
	}
	return c
}

func (f *fleet) state(card occupancy) *state {
	s, known := f.states[card]
	if !known {
		s = &state{occupancy: card, left: card.left(), moves: make([]move, len(card.product.Profiles))}
		f.states[card] = s
		f.list = append(f.list, s)
	}
	return s
}

// cheapest finds where a profile costs the least. Of profiles that later has some of, places lost count before all others.
func (f *fleet) cheapest(profile int, later []int) (move, bool) {
	var best move
	for _, s := range f.list {
		if len(s.cards) == 0 || s.left[profile] == 0 {
			continue
		}
		if m := s.move(profile, later); !best.possible || m.cheaper(best) {
			best = m
		}
	}
	return best, best.possible
}

func (m move) cheaper(than move) bool {
	return cmp.Or(slices.Compare(m.lost, than.lost), than.from.filled()-m.from.filled(), m.from.cards[0]-than.from.cards[0]) < 0
}

// filled counts the units that are taken.
func (s *state) filled() int { return bits.OnesCount32(s.taken) }

// move finds the start at which the profile costs the least on cards of this state; of equal ones the first. All requests of a profile
// are placed one after another, so what is wanted later is the same each time that it is asked.
func (s *state) move(profile int, later []int) move {
	m := &s.moves[profile]
	if m.known {
		return *m
	}
	*m = move{from: s, known: true}
	for _, start := range s.product.Profiles[profile].Starts {
		if !s.fits(profile, start) {
			continue
		}
		if lost := s.lost(s.with(profile, start), later); !m.possible || slices.Compare(lost, m.lost) < 0 {
			m.possible, m.start, m.lost = true, start, lost
		}
	}
	return *m
}

// lost is by how many fewer of each profile fit on a card afterwards; those that are wanted later stand before all of them.
func (s *state) lost(after occupancy, later []int) []int {
	lost := after.left()
	for i := range lost {
		lost[i] = s.left[i] - lost[i]
	}
	var wanted []int
	for i, n := range later {
		if n > 0 {
			wanted = append(wanted, lost[i])
		} else {
			wanted = append(wanted, 0)
		}
	}
	return append(wanted, lost...)
}

// take makes a move on the first card of its state and returns the card.
func (f *fleet) take(m move, profile int) int {
	card := m.from.cards[0]
	m.from.cards = m.from.cards[1:]
	to := f.state(m.from.with(profile, m.start))
	at, _ := slices.BinarySearch(to.cards, card)
	to.cards = slices.Insert(to.cards, at, card)
	return card
}

// Waste is what cards have free and nothing can use.
type Waste struct {
	// Units of the memory axis and compute Slices that are free, in all.
	Units, Slices int
	// StrandedUnits and StrandedSlices are those of them that stay free however the rest of each card is filled.
	StrandedUnits, StrandedSlices int
}

// Waste adds up what is free on cards, and what of it no further instances could ever take.
func (p Product) Waste(cards [][]Instance) (Waste, error) {
	f, err := p.fleet(cards)
	if err != nil {
		return Waste{}, err
	}
	var sum Waste
	for _, s := range f.list {
		n := len(s.cards)
		freeUnits, freeSlices := p.Units-s.filled(), p.Slices-s.slices()
		units, slices := s.fill(0)
		sum.Units += n * freeUnits
		sum.Slices += n * freeSlices
		sum.StrandedUnits += n * (freeUnits - units)
		sum.StrandedSlices += n * (freeSlices - slices)
	}
	return sum, nil
}

// slices counts the compute slices that are given away.
func (o *occupancy) slices() int {
	n := 0
	for profile := range o.product.Profiles {
		n += int(o.count[profile]) * o.product.Profiles[profile].Slices
	}
	return n
}

// fill returns the most memory units, and the most compute slices, that further instances from a unit of the axis on could take; not always the same
// instances.
func (o occupancy) fill(from int) (units, slices int) {
	for start := from; start < o.product.Units; start++ {
		for profile := range o.product.Profiles {
			if o.fits(profile, start) {
				p := &o.product.Profiles[profile]
				moreUnits, moreSlices := o.with(profile, start).fill(start + p.Size)
				units, slices = max(units, p.Size+moreUnits), max(slices, p.Slices+moreSlices)
			}
		}
	}
	return units, slices
}
