package landing

import (
	"maps"
	"slices"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// UnprovenPools returns the pools of which nothing shows that their nodes can hold pods of a group that fits elsewhere.
func (c *SharedNodes) UnprovenPools(i int) []string {
	if c == nil {
		return nil
	}
	return c.unproven[i]
}

// placesToTry returns the places, with one in each pool of which nothing shows that its nodes can hold a group's pods
// for that group alone, as far as other places limit it. unproven are the names of these pools.
func placesToTry(
	all []Place, groups []Tenant, pods func(*Tenant) int64,
) (places []Place, unproven map[int][]string) {
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
			case g.Tried || g.Pod == nil:
				rest.Accepts = append(rest.Accepts, g.Name)
			case holdsPod(&place, g.Pod):
				own, room := place, raydemand.Whole(pods(g))
				if len(unproven[i]) > 0 {
					room = 0
				}
				own.Accepts, own.Free = []string{g.Name}, Quantities{}
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
func holdsPod(place *Place, pod *Pod) bool {
	for name, want := range pod.Requests {
		if have, limited := place.Free[name]; limited && have < want {
			return false
		}
	}
	return place.Nodes == nil || *place.Nodes > 0
}
