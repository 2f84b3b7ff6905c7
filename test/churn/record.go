package main

import (
	"time"

	"heliostat.dev/heliostat/test/rig"
)

// ledger joins what was asked for with what the driver, the work and Kubernetes reported.
func (w *work) ledger(facts []rig.Fact) *ledger {
	l := &ledger{requests: w.requests, workers: workersOf(facts)}
	for _, f := range facts {
		if f.Stage == rig.GroupPatched && f.To > f.From {
			l.launches = append(l.launches, launch{group: f.Group, at: f.At, from: int(f.From), to: int(f.To)})
		}
	}
	events := w.driver.Events()
	for id, a := range w.asked {
		l.items = append(l.items, itemsOf(a, id, events, facts)...)
	}
	return l
}

// workersOf returns the lives of all workers.
func workersOf(facts []rig.Fact) []worker {
	var workers []worker
	for _, pod := range rig.Pods(facts, "") {
		created, _ := rig.First(facts, func(f rig.Fact) bool { return f.Pod == pod && f.Stage == rig.PodCreated })
		w := worker{group: created.Group, pod: pod, created: created.At}
		w.alive, _ = rig.OfPod(facts, pod, rig.NodeAlive)
		drained, _ := rig.OfPod(facts, pod, rig.Drained)
		stopping, _ := rig.OfPod(facts, pod, rig.PodStopping)
		w.leaving = earliest(drained, stopping)
		workers = append(workers, w)
	}
	return workers
}

// itemsOf returns the lives of the items of one id. A placement group's bundles are spread over the nodes it was placed
// on as they fit; Ray reports the nodes, and which bundle is where makes no difference to the room that is left.
func itemsOf(a ask, id string, events []rig.Event, facts []rig.Fact) []item {
	var asked, started, ended time.Time
	var pods []string
	for _, e := range events {
		if e.ID != id {
			continue
		}
		switch e.Event {
		case "submitted":
			asked = e.At
		case "running":
			started, pods = e.At, []string{e.Pod}
		case "placed":
			started, pods = e.At, podsOf(e.Nodes, facts)
		case "released", "lost", "done":
			ended = e.At
		}
	}
	items := make([]item, a.items)
	for i := range items {
		items[i] = item{group: a.group, size: a.size, asked: asked, started: started, ended: ended}
		if len(pods) > 0 {
			items[i].pod = pods[i%len(pods)]
		}
	}
	return items
}

// podsOf returns the pods of Ray nodes.
func podsOf(nodes []string, facts []rig.Fact) []string {
	var pods []string
	for _, id := range nodes {
		if f, ok := rig.First(facts, func(f rig.Fact) bool { return f.Node == id }); ok {
			pods = append(pods, f.Pod)
		}
	}
	return pods
}
