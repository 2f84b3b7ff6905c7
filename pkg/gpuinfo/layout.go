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

func byStart(a, b Instance) int { return cmp.Or(a.Start-b.Start, cmp.Compare(a.Profile, b.Profile)) }

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
