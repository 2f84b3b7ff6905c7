package planner

import (
	"cmp"
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
)

// bindPools lowers the room of groups on a ledger to that of their pools, with the pods given on their way.
func (p *Placer) bindPools(l *ledger, given []int64) {
	if p.Ceilings == nil {
		return
	}
	l.ceilings, l.taken, l.pods = p.Ceilings, p.Occupied(given), make([]int64, len(p.Groups))
	for i := range p.Groups {
		l.pods[i] = p.Groups[i].Current + given[i]
		l.room[i] = min(l.room[i], l.ceilings.Room(l.taken, i, l.pods[i]))
	}
}

// occupy books launched pods and lowers the room of all groups that compete with them.
func (l *ledger) occupy(group int, count int64) {
	if l.ceilings == nil || len(l.ceilings.Uses[group]) == 0 {
		return
	}
	l.ceilings.Occupy(l.taken, group, count)
	l.pods[group] += count
	for i := range l.room {
		l.room[i] = min(l.room[i], l.ceilings.Room(l.taken, i, l.pods[i]))
	}
}

// poolLimit says that a group's pools hold no more replicas of it.
func (w *words) poolLimit(i int, given []int64) (model.Reason, bool) {
	if w.PoolRoom(i, given) >= w.Groups[i].Hosts {
		return model.Reason{}, false
	}
	g := &w.Groups[i]
	names := make([]string, len(g.Pools))
	for k, pool := range g.Pools {
		names[k] = cmp.Or(pool.Name, "of nodes without a name")
	}
	word := "pool "
	if len(names) > 1 {
		word = "pools "
	}
	return model.Reason{Code: model.CodePoolCeiling, Message: fmt.Sprintf("%s%s can hold no more pods of group %s, at most %d without others (%s)",
		word, strings.Join(names, ", "), g.Name, w.Ceilings.Most[i], w.having(i, given[i]))}, true
}
