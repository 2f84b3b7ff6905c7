package schedule

import "slices"

// Shrink returns a schedule that still fails and from which, if the replays suffice, no single fault can be left out.
// It is Zeller's ddmin: it leaves out halves, then quarters, and so on. fails replays a schedule. Shrink calls it at
// most as often as replays says, and returns how often it did. The schedule itself must fail.
func Shrink(faults []Fault, replays int, fails func([]Fault) bool) (shortest []Fault, replayed int) {
	shortest = slices.Clone(faults)
	for parts := 2; len(shortest) > 0 && replayed < replays; {
		parts = min(parts, len(shortest))
		left := false
		for i := 0; i < parts && replayed < replays; i++ {
			from, to := i*len(shortest)/parts, (i+1)*len(shortest)/parts
			shorter := slices.Delete(slices.Clone(shortest), from, to)
			replayed++
			if fails(shorter) {
				shortest, left = shorter, true
				break
			}
		}
		switch {
		case left:
			parts = max(2, parts-1)
		case parts == len(shortest):
			return shortest, replayed
		default:
			parts *= 2
		}
	}
	return shortest, replayed
}
