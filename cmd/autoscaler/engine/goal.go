package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"slices"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
)

// goal is a hash of what a decision wants: equal for decisions that want the same. Pods that start as planned change
// nothing.
type goal [sha256.Size]byte

func goalOf(d *addon.Decision) goal {
	w := goalHash{sha256.New()}
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
	return goal(w.Sum(nil))
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

// goalHash adds up what a decision wants.
type goalHash struct{ hash.Hash }

func (w goalHash) text(parts ...string) {
	for _, part := range parts {
		w.number(len(part))
		_, _ = w.Write([]byte(part)) // never fails
	}
}

func (w goalHash) number(n int) {
	var text [8]byte
	binary.LittleEndian.PutUint64(text[:], uint64(n))
	_, _ = w.Write(text[:]) // never fails
}

func (w goalHash) counts(by map[string]int) {
	w.number(len(by))
	for _, name := range slices.Sorted(maps.Keys(by)) {
		w.text(name)
		w.number(by[name])
	}
}
