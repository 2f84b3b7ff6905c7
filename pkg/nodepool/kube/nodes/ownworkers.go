package nodes

import (
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// ownWorkers is where the workers of a RayCluster are. It is immutable.
type ownWorkers struct {
	list   []workerOn
	byNode landing.OnNodes
}

type workerOn struct{ node, group string }

// now returns where the workers are, and o itself if that is the same: a cycle without a change builds no map of
// thousands of workers.
func (o ownWorkers) now(workers []nodepool.Worker) (now ownWorkers, same bool) {
	at := 0
	for i := range workers {
		w := &workers[i]
		if w.Node == "" || w.Failed {
			continue
		}
		if at >= len(o.list) || o.list[at] != (workerOn{w.Node, w.Group}) {
			return ownWorkersOf(workers), false
		}
		at++
	}
	if at < len(o.list) || o.byNode == nil {
		return ownWorkersOf(workers), false
	}
	return o, true
}

func ownWorkersOf(workers []nodepool.Worker) ownWorkers {
	now := ownWorkers{byNode: landing.OnNodes{}}
	for i := range workers {
		if w := &workers[i]; w.Node != "" && !w.Failed {
			now.list = append(now.list, workerOn{w.Node, w.Group})
			now.byNode.Add(w.Node, w.Group)
		}
	}
	now.list = slices.Clip(now.list)
	return now
}
