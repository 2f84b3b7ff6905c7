package gpuinfo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Instance is a MIG GPU instance on a card: which profile, and where on the memory axis it begins.
type Instance struct {
	Profile string `json:"profile"`
	Start   int    `json:"start"`
}

// ErrNoRoom says that instances cannot lie together on one card.
var ErrNoRoom = errors.New("no room on one card")

// occupancy is one card while instances are put on it. It is small and copied freely.
type occupancy struct {
	product *Product
	// taken has a bit for each unit of the memory axis.
	taken uint32
	// count is by the index of the profile; no product has more.
	count [16]uint8
	// media: the engines of which there is one owner are given away.
	media bool
}

// fits reports whether an instance of the profile with this index can begin there: at a legal start, on free units,
// within the profile's maximum, and with at most one owner of the media engines. Compute slices need no look: no
// placement that is legal on the axis exceeds them, which a test proves for every board.
func (o *occupancy) fits(profile, start int) bool {
	p := &o.product.Profiles[profile]
	return slices.Contains(p.Starts, start) && o.taken&run(start, p.Size) == 0 && int(o.count[profile]) < p.Max &&
		!(p.media && o.media)
}

func (o occupancy) with(profile, start int) occupancy {
	p := &o.product.Profiles[profile]
	o.taken |= run(start, p.Size)
	o.count[profile]++
	o.media = o.media || p.media
	return o
}

func run(start, size int) uint32 { return (1<<size - 1) << start }

// more returns how many further instances of one profile fit. All of them have one size and fixed starts, so taking
// each free start from the left is the most there is.
func (o occupancy) more(profile int) int {
	n := 0
	for _, start := range o.product.Profiles[profile].Starts {
		if o.fits(profile, start) {
			o = o.with(profile, start)
			n++
		}
	}
	return n
}

// occupied puts instances on an empty card.
func (p *Product) occupied(instances []Instance) (occupancy, error) {
	card := occupancy{product: p}
	for _, instance := range instances {
		profile, known := p.index(instance.Profile)
		switch {
		case !known:
			return card, fmt.Errorf("placing %s: %s has no such profile", instance.Profile, p.Name)
		case !slices.Contains(p.Profiles[profile].Starts, instance.Start):
			return card, fmt.Errorf("placing %s at %d: on %s it can begin at %v", instance.Profile, instance.Start,
				p.Name, p.Profiles[profile].Starts)
		case !card.fits(profile, instance.Start):
			return card, fmt.Errorf("placing %s at %d on %s: %w", instance.Profile, instance.Start, p.Name, ErrNoRoom)
		}
		card = card.with(profile, instance.Start)
	}
	return card, nil
}

func (p *Product) index(name string) (int, bool) {
	profile, known := p.Profile(name)
	if !known {
		return 0, false
	}
	return slices.IndexFunc(p.Profiles, func(other Profile) bool { return other.Name == profile.Name }), true
}

// Check returns why these instances cannot lie on one card, or nil when the layout is legal. ErrNoRoom says that they
// overlap or that there are more of a profile than a card can hold; any other error, that the product has no such
// profile or no such start.
func (p Product) Check(instances []Instance) error {
	_, err := p.occupied(instances)
	return err
}

// Additions returns every instance that could still be made beside these, the largest profiles first.
func (p Product) Additions(beside []Instance) ([]Instance, error) {
	card, err := p.occupied(beside)
	if err != nil {
		return nil, err
	}
	var all []Instance
	for profile := range p.Profiles {
		for _, start := range p.Profiles[profile].Starts {
			if card.fits(profile, start) {
				all = append(all, Instance{p.Profiles[profile].Name, start})
			}
		}
	}
	return all, nil
}

// Place finds where the wanted profiles go beside these instances, such that the largest profiles stay possible: of all
// placements the one beside which the most instances of the largest profile still fit, then of the second largest, and
// so on. The instances come back in the order of the axis. ErrNoRoom says that the card cannot hold them; two cards
// might.
func (p Product) Place(beside []Instance, wanted ...string) ([]Instance, error) {
	card, err := p.occupied(beside)
	if err != nil {
		return nil, err
	}
	profiles := make([]int, 0, len(wanted))
	for _, name := range wanted {
		profile, known := p.index(name)
		if !known {
			return nil, fmt.Errorf("placing %s: %s has no such profile", name, p.Name)
		}
		profiles = append(profiles, profile)
	}
	slices.Sort(profiles) // profiles are sorted by size: what is hardest to place goes first
	s := search{profiles: profiles, starts: make([]int, len(profiles))}
	s.place(card, 0)
	if s.best == nil {
		return nil, fmt.Errorf("placing %v beside %v on %s: %w", wanted, beside, p.Name, ErrNoRoom)
	}
	placed := make([]Instance, len(profiles))
	for i, profile := range profiles {
		placed[i] = Instance{p.Profiles[profile].Name, s.best[i]}
	}
	slices.SortFunc(placed, byStart)
	return placed, nil
}

func byStart(a, b Instance) int { return cmp.Or(a.Start-b.Start, cmp.Compare(a.Profile, b.Profile)) }

// search tries all placements of the profiles; those that differ only in which of two equal instances lies where count
// once.
type search struct {
	profiles, starts []int
	best             []int
	left             []int
}

func (s *search) place(card occupancy, next int) {
	if next == len(s.profiles) {
		if left := card.left(); s.best == nil || slices.Compare(left, s.left) > 0 {
			s.best, s.left = slices.Clone(s.starts), left
		}
		return
	}
	profile := s.profiles[next]
	for _, start := range card.product.Profiles[profile].Starts {
		if next > 0 && s.profiles[next-1] == profile && start < s.starts[next-1] {
			continue
		}
		if card.fits(profile, start) {
			s.starts[next] = start
			s.place(card.with(profile, start), next+1)
		}
	}
}

// left counts for each profile, the largest first, how many more would fit.
func (o occupancy) left() []int {
	counts := make([]int, len(o.product.Profiles))
	for profile := range counts {
		counts[profile] = o.more(profile)
	}
	return counts
}

// Layouts returns all maximal layouts: sets of instances with their places, to which nothing can be added. Each is in
// the order of the axis.
func (p Product) Layouts() [][]Instance {
	var all [][]Instance
	p.layouts(occupancy{product: &p}, 0, nil, func(layout []Instance, whole bool) {
		if whole {
			all = append(all, slices.Clone(layout))
		}
	})
	return all
}

// Sets returns all maximal multisets of profiles that one card can hold: none is part of another. Each has the largest
// first.
func (p Product) Sets() [][]string {
	var all [][]int
	seen := map[[16]uint8]bool{}
	p.layouts(occupancy{product: &p}, 0, nil, func(layout []Instance, _ bool) {
		card, _ := p.occupied(layout) // made of instances that fitted
		if !seen[card.count] {
			seen[card.count] = true
			all = append(all, counts(card.count))
		}
	})
	var sets [][]string
	for _, set := range all {
		if !slices.ContainsFunc(all, func(other []int) bool { return within(set, other) }) {
			sets = append(sets, p.names(set))
		}
	}
	return sets
}

// layouts visits every legal layout once, the empty one included, its instances in the order of the axis: each is
// extended only to the right of unit from. whole says that nothing could be added anywhere.
func (p *Product) layouts(card occupancy, from int, layout []Instance, visit func(layout []Instance, whole bool)) {
	visit(layout, !slices.ContainsFunc(card.left(), func(n int) bool { return n > 0 }))
	for start := from; start < p.Units; start++ {
		for profile := range p.Profiles {
			if card.fits(profile, start) {
				next := append(slices.Clip(layout), Instance{p.Profiles[profile].Name, start})
				p.layouts(card.with(profile, start), start+1, next, visit)
			}
		}
	}
}

func counts(count [16]uint8) []int {
	list := make([]int, len(count))
	for i, n := range count {
		list[i] = int(n)
	}
	return list
}

// within reports whether a is part of b and not b.
func within(a, b []int) bool {
	for i := range a {
		if a[i] > b[i] {
			return false
		}
	}
	return !slices.Equal(a, b)
}

func (p *Product) names(set []int) []string {
	var names []string
	for profile := range p.Profiles {
		names = append(names, slices.Repeat([]string{p.Profiles[profile].Name}, set[profile])...)
	}
	return names
}

// LeastCards returns how many cards at least it takes to hold so many instances of each profile: no fewer can, more may
// be needed. A profile that the product does not have is an error.
func (p Product) LeastCards(instances map[string]int) (int, error) {
	units, least := 0, 0
	for name, n := range instances {
		profile, known := p.Profile(name)
		if !known {
			return 0, fmt.Errorf("counting cards for %s: %s has no such profile", name, p.Name)
		}
		units += n * profile.Size
		least = max(least, ceil(n, profile.Max))
	}
	return max(least, ceil(units, p.Units)), nil
}

func ceil(n, by int) int { return (n + by - 1) / by }
