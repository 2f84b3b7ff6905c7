package doctor

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// tolerationMissing reports taints to groups that request GPUs or other accelerators: a group without them may have
// nodes elsewhere, and taints of nodes with devices are there to keep it on those.
func tolerationMissing(x *inventory, g rayGroup, report reporter) {
	blocking := x.blockedBy(g)
	if len(blocking.Taints) == 0 || !g.requestsDevices() {
		return
	}
	list := g.template().Get("tolerations")
	var operations []operation
	for i, taint := range blocking.Taints {
		toleration := map[string]any{"key": taint.Key, "operator": "Exists", "effect": taint.Effect}
		if i == 0 && !list.Has() {
			operations = append(operations, add(list.Path(), []any{toleration}))
		} else {
			operations = append(operations, add(list.Path().Key("-"), toleration))
		}
	}
	report(occurrence{
		Object: g.Of, Path: list.Path(), Seen: fmt.Sprintf("taint %s on node %s", blocking.Taints[0], blocking.Node),
		Fix: patch(g.Of, operations...),
	})
}

// groupNoNode reports what plans report. If taints are the only reason, tolerationMissing has a patch.
func groupNoNode(x *inventory, g rayGroup, report reporter) {
	if len(x.blockedBy(g).Taints) > 0 && g.requestsDevices() {
		return
	}
	if f, none := x.noNode(g); none {
		report(occurrence{Object: g.Of, Path: g.template().Path(), Severity: f.Severity, Seen: f.Seen, Why: f.Why,
			Fix: edit(g.Of, f.Fix)})
	}
}

// mostMaximum bounds what is compared: nobody means a larger maxReplicas as a number of nodes.
const mostMaximum = 100_000

func nodeMaximumBelowOurs(x *inventory, g rayGroup, report reporter) {
	most, list, known := mostPods(x, g)
	hosts := max(1, g.Workers.NumOfHosts)
	pods := int64(g.Workers.Max) * int64(hosts)
	if !known || g.Workers.Max <= 0 || g.Workers.Max > mostMaximum || hosts > 1000 || pods <= most {
		return
	}
	at := g.Path("maxReplicas")
	patch := patch(g.Of, set(g.Of, at, max(int64(g.Workers.Min), most/int64(hosts))))
	report(occurrence{
		Object: g.Of, Path: at, Fix: patch.Hint("or raise the maximum of the node pool"),
		Seen: fmt.Sprintf("maxReplicas %d, but the node pools have room for at most %d pods: %s", g.Workers.Max, most,
			strings.Join(list, ", ")),
	})
}

// mostPods returns how many pods of the group all pools on whose nodes they fit may ever hold, were they empty, and
// which pools these are. It returns false if one of them is not bounded: a pool without a known ceiling may grow.
func mostPods(x *inventory, g rayGroup) (most int64, list []string, known bool) {
	for _, pool := range x.poolsOf(g) {
		room, bounded := pool.Most()
		if !bounded {
			return 0, nil, false
		}
		most += room
		if pool.Pool == "" {
			list = append(list, "nodes without a pool, of which there will be no more")
			continue
		}
		list = append(list, pool.Pool+" by "+ceiling(x.room(pool.Pool)))
	}
	return most, list, len(list) > 0
}

// ceiling says where the ceiling of a pool comes from.
func ceiling(room landing.Room) string {
	if room.MaxNodes != nil {
		return fmt.Sprintf("%s (%d nodes)", room.Source, *room.MaxNodes)
	}
	return room.Source + " (limits)"
}
