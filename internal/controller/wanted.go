package controller

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"slices"

	"heliostat.dev/heliostat/internal/planner"
)

// wanted is what makes a decision another one: equal for decisions that want the same. Pods that come up as they were meant to are
// nothing new.
type wanted [sha256.Size]byte

func wantedBy(d *Decision) wanted {
	w := wants{sha256.New()}
	w.text(string(d.Mode), d.Err)
	w.counts(d.Plan.Launch)
	w.number(len(d.Plan.Groups))
	for _, g := range d.Plan.Groups {
		w.text(g.Name)
		w.number(g.Desired)
	}
	w.number(len(d.Plan.Terminate))
	for _, t := range d.Plan.Terminate {
		w.text(t.Reason, t.Pod)
	}
	w.counts(unmetByCode(&d.Plan))
	return wanted(w.Sum(nil))
}

func unmetByCode(p *planner.Plan) map[string]int {
	unmet := map[string]int{}
	for _, list := range [][]planner.UnmetRequest{p.InfeasibleRequests, p.InfeasibleRequestResources} {
		for _, u := range list {
			unmet[u.Reason.Code] += int(u.Count)
		}
	}
	for _, u := range p.InfeasibleGangRequests {
		unmet[u.Reason.Code]++
	}
	return unmet
}

// wants adds up what a decision wants.
type wants struct{ hash.Hash }

func (w wants) text(parts ...string) {
	for _, part := range parts {
		w.number(len(part))
		_, _ = w.Write([]byte(part)) // never fails
	}
}

func (w wants) number(n int) {
	var text [8]byte
	binary.LittleEndian.PutUint64(text[:], uint64(n))
	_, _ = w.Write(text[:]) // never fails
}

func (w wants) counts(by map[string]int) {
	w.number(len(by))
	for _, name := range slices.Sorted(maps.Keys(by)) {
		w.text(name)
		w.number(by[name])
	}
}
