package main

import (
	"slices"
	"time"
)

// units are what a worker of either group has: quarters of a GPU, or halves of a CPU pair. All sizes of work divide it,
// so putting the largest first never wastes a worker.
const units = 4

// lag is how old the state may be on which a launch was decided: raylets report to the GCS once a second, Heliostat
// reads the GCS ten times a second, and the patch takes a moment. late allows for what this observer learns late.
const (
	lag  = 1500 * time.Millisecond
	late = 300 * time.Millisecond
)

// item is one piece of work that needs a place: a task, an actor, or one bundle of a placement group.
type item struct {
	group string
	size  int
	// asked and ended bound its life; started is when it had its place, on pod. Zero times are still to come.
	asked, started, ended time.Time
	pod                   string
}

// worker is the life of one worker. Before alive it is on its way; from leaving on nothing is placed on it.
type worker struct {
	group, pod              string
	created, alive, leaving time.Time
}

// request is a REST request for that many whole workers of a group, from asked until ended.
type request struct {
	group        string
	workers      int
	asked, ended time.Time
}

// launch is one patch that raised the replicas of a group.
type launch struct {
	group    string
	at       time.Time
	from, to int
}

// ledger is everything that happened, by the clocks of the driver, of the work itself and of the Kubernetes API.
type ledger struct {
	items    []item
	workers  []worker
	requests []request
	launches []launch
}

// beyond counts the workers of a launch that no demand needed at any moment on whose state it may have been decided.
func (l *ledger) beyond(launch launch) int {
	needed := 0
	for _, t := range l.moments(launch) {
		needed = max(needed, l.needed(launch, t))
	}
	return max(0, launch.to-launch.from-needed)
}

// moments are the times at which something changed within the window of a launch, and its ends.
func (l *ledger) moments(launch launch) []time.Time {
	begin, end := launch.at.Add(-lag), launch.at.Add(late)
	times := []time.Time{begin, launch.at, end}
	add := func(t time.Time) {
		if t.After(begin) && t.Before(end) {
			times = append(times, t)
		}
	}
	for _, i := range l.items {
		add(i.asked)
		add(i.started)
		add(i.ended)
	}
	for _, w := range l.workers {
		add(w.created)
		add(w.alive)
		add(w.leaving)
	}
	for _, r := range l.requests {
		add(r.asked)
		add(r.ended)
	}
	return times
}

// needed is how many new workers of the launch's group were needed at t: what waits goes first to the room on workers
// that are there, then to workers on their way, and the rest needs new ones. A request is for workers whatever they do.
func (l *ledger) needed(launch launch, t time.Time) int {
	room := l.room(launch.group, t)
	here := len(room)
	onTheWay := max(0, launch.from-here)
	for range onTheWay {
		room = append(room, units)
	}
	waiting := l.waiting(launch.group, t)
	slices.SortFunc(waiting, func(a, b int) int { return b - a })
	existing := len(room)
	for _, size := range waiting {
		room = place(room, size)
	}
	return max(len(room)-existing, l.requested(launch.group, t)-here-onTheWay)
}

// place puts a size into the first room that has it, or into a new worker.
func place(room []int, size int) []int {
	for i := range room {
		if room[i] >= size {
			room[i] -= size
			return room
		}
	}
	return append(room, units-size)
}

// room returns the free units of each living worker of a group at t.
func (l *ledger) room(group string, t time.Time) []int {
	var room []int
	for _, w := range l.workers {
		if w.group != group || !within(t, w.alive, w.leaving) {
			continue
		}
		free := units
		for _, i := range l.items {
			if i.pod == w.pod && within(t, i.started, i.ended) {
				free -= i.size
			}
		}
		room = append(room, free)
	}
	return room
}

// waiting returns the sizes of the work that had no place at t.
func (l *ledger) waiting(group string, t time.Time) []int {
	var sizes []int
	for _, i := range l.items {
		if i.group == group && within(t, i.asked, earliest(i.started, i.ended)) {
			sizes = append(sizes, i.size)
		}
	}
	return sizes
}

// requested returns how many workers REST requests wanted at t.
func (l *ledger) requested(group string, t time.Time) int {
	want := 0
	for _, r := range l.requests {
		if r.group == group && within(t, r.asked, r.ended) {
			want = r.workers
		}
	}
	return want
}

// within says whether t lies in [from, to); a zero from has not come, a zero to is open.
func within(t, from, to time.Time) bool {
	return !from.IsZero() && !t.Before(from) && (to.IsZero() || t.Before(to))
}

// earliest returns the earlier of two times of which either may not have come.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
