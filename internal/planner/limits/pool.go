package limits

import (
	"cmp"
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
)

// poolLimit reports that a group's pools have no room for another replica.
func (w *Writer) poolLimit(i int, given []int64) (model.Reason, bool) {
	if w.PoolRoom(i, given) >= w.Groups[i].Hosts {
		return model.Reason{}, false
	}
	g := &w.Groups[i]
	if len(w.Ceilings.UnprovenPools(i)) > 0 {
		return w.TriedInPool(i), true
	}
	names := make([]string, len(g.Pools))
	for k, pool := range g.Pools {
		names[k] = cmp.Or(pool.Name, "of nodes without a name")
	}
	word := "pool "
	if len(names) > 1 {
		word = "pools "
	}
	where := word + strings.Join(names, ", ")
	nodes := "the nodes of " + where
	if len(names) == 0 {
		where, nodes = "the nodes", "the nodes"
	}
	if w.PoolRoomUnpromised(i, given) >= g.Hosts {
		return model.Reason{
			Code: model.CodePoolPromised,
			Message: fmt.Sprintf("group %s can have no more pods: what is free on %s is promised to %s, "+
				"which come first", g.Name, nodes, w.promised(i)),
		}, true
	}
	cause := w.shortage(i, given)
	if most := w.Ceilings.Most[i]; most > 0 || cause == "" {
		cause = phrase.Join(fmt.Sprintf("at most %d %s (%s)", most, w.beside(i), w.having(i, given[i])), cause)
	}
	return model.Reason{
		Code: model.CodePoolCeiling,
		Message: fmt.Sprintf("%s cannot hold more pods of group %s: %s%s%s",
			where, g.Name, cause, w.rivals(i, given), w.assumed(i)),
	}, true
}

// TriedInPool says why only one replica of a group is launched beyond what fits on known nodes.
func (w *Writer) TriedInPool(i int) model.Reason {
	pools, word := w.Ceilings.UnprovenPools(i), "pool "
	if len(pools) > 1 {
		word = "pools "
	}
	return model.Reason{
		Code: model.CodeTrying,
		Message: fmt.Sprintf(
			"known nodes hold no more pods of group %s, and nothing shows what new nodes of %s have; "+
				"Heliostat tries %s at a time there",
			w.Groups[i].Name, word+strings.Join(pools, ", "), phrase.Pods(w.Groups[i].Hosts)),
	}
}

// promised names the pods of other RayClusters that are on their way to nodes of a group.
func (w *Writer) promised(i int) string {
	pods, names := map[string]int64{}, []string{}
	for _, p := range w.PromisedBeside(i) {
		if pods[p.RayCluster] == 0 {
			names = append(names, p.RayCluster)
		}
		pods[p.RayCluster] += p.Pods
	}
	for k, name := range names {
		names[k] = fmt.Sprintf("%s of RayCluster %s", phrase.Pods(pods[name]), name)
	}
	return phrase.List(names)
}

// assumed says which shape was assumed for the new nodes of pools whose nodes differ.
func (w *Writer) assumed(i int) string {
	var list []string
	for _, place := range w.Ceilings.NewNodesFor(i) {
		if place.Like != "" {
			list = append(
				list,
				fmt.Sprintf("nodes of pool %s differ, so a new one counts as the smallest that fits, %s",
					place.Pool, place.Like),
			)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "; " + strings.Join(list, "; ")
}

// beside says which other pods the most pods of a group does not count.
func (w *Writer) beside(i int) string {
	if w.Groups[i].Pod != nil {
		return "with what other pods leave free"
	}
	return "if no other pods use it"
}

// rivals names the pods of other groups that take room on the nodes of a group, if the group's own pods do not fill
// them.
func (w *Writer) rivals(i int, given []int64) string {
	if w.Groups[i].Current+given[i]+w.Groups[i].Hosts > w.Ceilings.Most[i] {
		return ""
	}
	var list []string
	for _, j := range w.Ceilings.Rivals(i) {
		if pods := w.Groups[j].Current + given[j]; pods > 0 {
			list = append(list, fmt.Sprintf("%s of group %s", phrase.Pods(pods), w.Groups[j].Name))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "; " + phrase.List(list) + " can use the same nodes"
}
