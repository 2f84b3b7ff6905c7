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

// Check returns an error if these instances do not fit on one card, and nil if the layout is legal: each starts where
// its profile may, no two overlap, no profile has more than its maximum, and at most one has the media engines.
// ErrNoRoom means that they do not fit together. Any other error means that the product does not have such a profile or
// start. Compute slices need no check: no legal placement exceeds them, which a test verifies for every board.
func (p Product) Check(instances []Instance) error {
	// taken has one bit for each unit of the memory axis.
	taken, count, media := uint32(0), map[string]int{}, false
	for _, instance := range instances {
		profile, known := p.Profile(instance.Profile)
		switch {
		case !known:
			return fmt.Errorf("placing %s: %s has no such profile", instance.Profile, p.Name)
		case !slices.Contains(profile.Starts, instance.Start):
			return fmt.Errorf("placing %s at %d: on %s it can begin at %v", instance.Profile, instance.Start, p.Name,
				profile.Starts)
		}
		units := uint32(1<<profile.Size-1) << instance.Start
		if taken&units != 0 || count[profile.Name] == profile.Max || media && profile.media {
			return fmt.Errorf("placing %s at %d on %s: %w", instance.Profile, instance.Start, p.Name, ErrNoRoom)
		}
		taken, media = taken|units, media || profile.media
		count[profile.Name]++
	}
	return nil
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
