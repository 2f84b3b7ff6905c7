package gpuinfo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Instance is a MIG GPU instance on a card: its profile, and its start on the memory axis.
type Instance struct {
	Profile string `json:"profile"`
	Start   int    `json:"start"`
}

// ErrNoRoom means that the instances do not fit together on one card.
var ErrNoRoom = errors.New("no room on one card")

// occupancy is the state of one card while instances are added. It is small, so functions copy it.
type occupancy struct {
	product *Product
	// taken has one bit for each unit of the memory axis.
	taken uint32
	// count is the number of instances by index of the profile. No product has more than 16 profiles.
	count [16]uint8
	// media is true if an instance already has the engines that only one instance can have.
	media bool
}

// fits reports whether an instance of the profile with this index can begin at start. The start must be legal, the
// units free, the number of instances within the maximum of the profile, and at most one instance can have the media
// engines. Compute slices need no check: no legal placement exceeds them, which a test verifies for every board.
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

// more returns how many more instances of one profile fit. They have the same size and fixed starts, so the maximum
// results from using each free start from the left.
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

// occupied returns the occupancy of a card with these instances.
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

// Check returns an error if these instances do not fit on one card, and nil if the layout is legal. ErrNoRoom means
// that they overlap or exceed the maximum of a profile. Any other error means that the product does not have such a
// profile or start.
func (p Product) Check(instances []Instance) error {
	_, err := p.occupied(instances)
	return err
}

// Additions returns every instance that can be added to these instances, the largest profiles first.
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

// Place chooses where to create the wanted profiles next to these instances. It prefers the placement that leaves room
// for the most instances of the largest profile, then of the second largest, and so on. It returns the instances in the
// order of the axis. ErrNoRoom means that one card cannot hold them; several cards might.
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
	slices.Sort(profiles) // profiles are sorted by size, so the hardest to place are first
	best := placing(card, profiles)
	if best == nil {
		return nil, fmt.Errorf("placing %v beside %v on %s: %w", wanted, beside, p.Name, ErrNoRoom)
	}
	placed := make([]Instance, len(profiles))
	for i, profile := range profiles {
		placed[i] = Instance{p.Profiles[profile].Name, best[i]}
	}
	slices.SortFunc(placed, byStart)
	return placed, nil
}

func byStart(a, b Instance) int { return cmp.Or(a.Start-b.Start, cmp.Compare(a.Profile, b.Profile)) }

// placing tries all placements of the profiles, and returns the best starts; nil if there are none. It counts
// placements once if they differ only in the order of equal instances.
func placing(card occupancy, profiles []int) (best []int) {
	starts, most := make([]int, len(profiles)), []int(nil)
	var place func(card occupancy, next int)
	place = func(card occupancy, next int) {
		if next == len(profiles) {
			if left := card.left(); best == nil || slices.Compare(left, most) > 0 {
				best, most = slices.Clone(starts), left
			}
			return
		}
		profile := profiles[next]
		for _, start := range card.product.Profiles[profile].Starts {
			again := next > 0 && profiles[next-1] == profile && start < starts[next-1]
			if !again && card.fits(profile, start) {
				starts[next] = start
				place(card.with(profile, start), next+1)
			}
		}
	}
	place(card, 0)
	return best
}

// left returns, for each profile and largest first, how many more instances fit.
func (o occupancy) left() []int {
	counts := make([]int, len(o.product.Profiles))
	for profile := range counts {
		counts[profile] = o.more(profile)
	}
	return counts
}

// LeastCards returns a lower bound for the number of cards that hold these instances of each profile. It returns an
// error if the product does not have a profile.
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
