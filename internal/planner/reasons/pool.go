package reasons

import (
	"cmp"
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
)

// poolLimit reports that a group's pools have no room for another replica.
func (w *Writer) poolLimit(i int, given []int64) (model.Reason, bool) {
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
	return model.Reason{
		Code: model.CodePoolCeiling,
		Message: fmt.Sprintf("%s%s cannot hold more pods of group %s: at most %d if no other pods use it (%s)",
			word, strings.Join(names, ", "), g.Name, w.Ceilings.Most[i], w.having(i, given[i])),
	}, true
}
