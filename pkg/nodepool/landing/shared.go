package landing

import (
	"maps"
	"slices"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Tenant is a worker group as one of several that use the same nodes and quotas.
type Tenant struct {
	Name string
	// Pod is what one pod takes, and Pools are where it can be scheduled; nil if they are unknown.
	Pod   *Pod
	Pools []GroupPool
	// Tried: nothing shows that a node can hold its pods, so it is tried everywhere and not in some pools alone.
	Tried bool
	// Hosts is how many pods one replica has. Current counts the pods that exist or are requested; Bound ones are on
	// nodes already, so that they are not part of what is free.
	Hosts, Current, Bound int64
}

// Promise is pods of another RayCluster that are on their way and on no node yet. Places accept them by the name of
// Pod.
type Promise struct {
	RayCluster string `json:"rayCluster"`
	Pods       int64  `json:"pods"`
	Pod        *Pod   `json:"pod"`
}

// Shared says how many pods tenants may have together, because they share nodes and quotas. Tenants have the numbers of
// their positions. It does not change after Share returns it.
type Shared struct {
	tenants []Tenant
	// SharedNodes say how many pods fit together on the nodes; nil if nothing limits a group.
	SharedNodes *SharedNodes
	// Known are the nodes if no pod is tried in a pool of which nothing shows that its nodes can hold it, and Hoped if
	// any number may be; SharedNodes allow one replica of each group. All are the same if there is no such pool.
	Known, Hoped *SharedNodes
	// Quotas bound what the pods of groups may have together; nil if nothing bounds a group.
	Quotas *Quotas
}

// plenty is more pods than any group may have, and is still a bound.
const plenty = Unbounded / 2

// Share finds the tenants whose pods can only be on a limited number of nodes, and what quotas leave.
func Share(places []Place, promised []Promise, quotas []Quota, tenants []Tenant) *Shared {
	l := &Shared{tenants: tenants, Quotas: newQuotas(quotas, tenants)}
	l.SharedNodes = newSharedNodes(places, promised, tenants, func(t *Tenant) int64 { return t.Hosts })
	if l.Known, l.Hoped = l.SharedNodes, l.SharedNodes; l.TriesPools() {
		l.Known = newSharedNodes(places, promised, tenants, func(*Tenant) int64 { return 0 })
		l.Hoped = newSharedNodes(places, promised, tenants, func(*Tenant) int64 { return plenty })
	}
	return l
}

// TriesPools reports whether there is a group of which one replica at a time may be tried in a pool.
func (l *Shared) TriesPools() bool { return l.SharedNodes != nil && len(l.SharedNodes.unproven) > 0 }

// PoolRoom returns how many more pods of a group the nodes can hold.
func (l *Shared) PoolRoom(i int, given []int64) int64 {
	if !l.SharedNodes.Limits(i) {
		return Unbounded
	}
	return l.SharedNodes.Room(l.SharedNodes.Occupied(given), i)
}

// PoolRoomUnpromised returns how many more pods of a group the nodes could hold if no other RayCluster had pods on its
// way to them.
func (l *Shared) PoolRoomUnpromised(i int, given []int64) int64 {
	if !l.SharedNodes.Limits(i) || len(l.SharedNodes.promised) == 0 {
		return l.PoolRoom(i, given)
	}
	c := l.SharedNodes
	return c.Room(newChain(c, c.packer.Empty()).place(c, given), i)
}

// PromisedBeside returns the promises to pods of other RayClusters that can use nodes of a group.
func (l *Shared) PromisedBeside(i int) []Promise {
	c := l.SharedNodes
	if !c.Limits(i) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.promised), func(p Promise) bool {
		return p.Pods <= 0 || !c.bothUse(c.pods[c.kinds[i]].Name, p.Pod.Name)
	})
}

// Tries returns how many of a group's pods, present and given ones, have no other place than the pool in which they are
// tried.
func (l *Shared) Tries(i int, given []int64) int64 {
	if len(l.SharedNodes.UnprovenPools(i)) == 0 {
		return 0
	}
	return l.Known.placeless(i, given)
}

// QuotaRoom returns how many more pods of a group the quotas allow.
func (l *Shared) QuotaRoom(i int, given []int64) int64 { return l.Quotas.Room(l.Quotas.Left(given), i) }

// Quota is what the pods of some groups may have together of one resource. Pods that exist count.
type Quota struct {
	// Name names it, for example "flavor spot of ClusterQueue research".
	Name     string           `json:"name"`
	Resource string           `json:"resource"`
	Amount   raydemand.Amount `json:"amount"`
	// PodTakes is what one pod takes, by group; other groups are not bound.
	PodTakes raydemand.Bundle `json:"podTakes"`
	// Why says more about it, for example the message of the one that grants it.
	Why string `json:"why,omitempty"`
}

// Quotas bound what the pods of groups may have together of a resource. They are nil if nothing bounds a group.
type Quotas struct {
	all []Quota
	// takes is what one pod takes, by quota and group.
	takes [][]raydemand.Amount
	// free is what the pods that exist or are on their way leave, by quota; negative if they exceed it.
	free []raydemand.Amount
}

func newQuotas(quotas []Quota, groups []Tenant) *Quotas {
	if len(quotas) == 0 {
		return nil
	}
	q := &Quotas{all: quotas}
	for _, quota := range quotas {
		takes := make([]raydemand.Amount, len(groups))
		free := quota.Amount
		for i := range groups {
			takes[i] = quota.PodTakes[groups[i].Name]
			free = free.Plus(-takes[i].Times(groups[i].Current))
		}
		q.takes, q.free = append(q.takes, takes), append(q.free, free)
	}
	return q
}

// Left returns what is left of each quota with the given pods on their way.
func (q *Quotas) Left(given []int64) []raydemand.Amount {
	if q == nil {
		return nil
	}
	left := slices.Clone(q.free)
	for i, n := range given {
		q.Take(left, i, n)
	}
	return left
}

// Take takes pods of a group from what is left.
func (q *Quotas) Take(left []raydemand.Amount, i int, pods int64) {
	for k := range left {
		left[k] = left[k].Plus(-q.takes[k][i].Times(pods))
	}
}

// Shared reports whether a quota bounds both groups.
func (q *Quotas) Shared(i, k int) bool {
	return q != nil && slices.ContainsFunc(q.takes, func(takes []raydemand.Amount) bool {
		return takes[i] > 0 && takes[k] > 0
	})
}

// Room returns how many more pods of a group fit into what is left.
func (q *Quotas) Room(left []raydemand.Amount, i int) int64 {
	room := int64(Unbounded)
	for k := range left {
		if takes := q.takes[k][i]; takes > 0 {
			room = min(room, int64(max(left[k], 0)/takes))
		}
	}
	return room
}

// Tightest returns the quota that has room for the fewest more pods of a group, what is left of it, and what one pod
// takes; ok is false if none bounds the group.
func (q *Quotas) Tightest(i int, given []int64) (quota Quota, left, takes raydemand.Amount, ok bool) {
	lefts := q.Left(given)
	for k := range lefts {
		each := q.takes[k][i]
		if each > 0 && (!ok || max(lefts[k], 0)/each < max(left, 0)/takes) {
			quota, left, takes, ok = q.all[k], lefts[k], each, true
		}
	}
	return quota, left, takes, ok
}

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
