package fleet

import (
	"maps"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/nodepool/binpack"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// plenty is more pods than any group may have, and is still a bound.
const plenty = vector.MaxCount / 2

// boundByNodes finds the groups whose pods can only be on a limited number of nodes.
func (r *Fleet) boundByNodes(s *model.Snapshot) {
	r.Ceilings = newCeilings(s, r.Groups, func(g *Group) int64 { return g.Hosts })
	if r.Known, r.Hoped = r.Ceilings, r.Ceilings; r.TriesPools() {
		r.Known = newCeilings(s, r.Groups, func(*Group) int64 { return 0 })
		r.Hoped = newCeilings(s, r.Groups, func(*Group) int64 { return plenty })
	}
}

// TriesPools reports whether there is a group of which one replica at a time may be tried in a pool.
func (r *Fleet) TriesPools() bool { return r.Ceilings != nil && len(r.Ceilings.unproven) > 0 }

// UnprovenPools returns the pools of which nothing shows that their nodes can hold pods of a group that fits elsewhere.
func (c *Ceilings) UnprovenPools(i int) []string {
	if c == nil {
		return nil
	}
	return c.unproven[i]
}

// KnownToFit returns the part of some launches, beyond those before them, for which there is room on nodes that are
// known, or known to come.
func (r *Fleet) KnownToFit(given, before []int64) []int64 {
	fitting := slices.Clone(given)
	r.WithinShared(r.Known, fitting, before)
	return fitting
}

// Tries returns how many of a group's pods, present and given ones, have no other place than the pool in which they are
// tried.
func (r *Fleet) Tries(i int, given []int64) int64 {
	if len(r.Ceilings.UnprovenPools(i)) == 0 {
		return 0
	}
	return r.Known.placeless(i, given)
}

// placesFor returns the places, with one in each pool of which nothing shows that its nodes can hold a group's pods for
// that group alone, as far as other places limit it. unproven are the names of these pools.
func placesFor(
	all []binpack.Place, groups []Group, pods func(*Group) int64,
) (places []binpack.Place, unproven map[int][]string) {
	unproven = map[int][]string{}
	for _, place := range all {
		if !place.Unproven {
			places = append(places, place)
			continue
		}
		rest := place
		rest.Accepts = nil
		for i := range groups {
			g := &groups[i]
			switch {
			case !slices.Contains(place.Accepts, g.Name):
			case g.NodeFit != nil || g.Pod == nil:
				rest.Accepts = append(rest.Accepts, g.Name)
			case holdsPod(&place, g.Pod):
				own, room := place, raydemand.Whole(pods(g))
				if len(unproven[i]) > 0 {
					room = 0
				}
				own.Accepts, own.Free = []string{g.Name}, podfit.Quantities{}
				maps.Copy(own.Free, place.Free) // the place may have none
				own.Free["pods"] = room
				places, unproven[i] = append(places, own), append(unproven[i], place.Pool)
			}
		}
		if len(rest.Accepts) > 0 {
			places = append(places, rest)
		}
	}
	return places, unproven
}

// holdsPod reports whether a place may add a node for a pod.
func holdsPod(place *binpack.Place, pod *binpack.Pod) bool {
	for name, want := range pod.Requests {
		if have, limited := place.Free[name]; limited && have < want {
			return false
		}
	}
	return place.Nodes == nil || *place.Nodes > 0
}
