package limits

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/sharedlimits"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// shortages are the sentences that say what keeps more pods of groups from their nodes, for some launches. They are
// kept, because many shapes of demand ask for them.
type shortages struct {
	given []int64
	texts map[int]string
	// on is the nodes with these launches; nil until a group asks.
	on *landing.Taken
}

// nodes returns the nodes with the launches, which all groups share: to place the pods takes longer than to ask why no
// more fit.
func (s *shortages) nodes(on *sharedlimits.Ceilings) *landing.Taken {
	if s.on == nil {
		s.on = on.AllOccupied(s.given)
	}
	return s.on
}

// shortage says what keeps more pods of a group from the nodes.
func (w *Writer) shortage(i int, given []int64) string {
	if w.shortages.texts == nil || !slices.Equal(w.shortages.given, given) {
		w.shortages = shortages{given: slices.Clone(given), texts: map[int]string{}}
	}
	text, known := w.shortages.texts[i]
	if !known {
		if w.Groups[i].Pod != nil { // otherwise, only the number of pods on a pool is known
			text = describeShortage(w.Ceilings.Shortage(w.shortages.nodes(w.Ceilings), i))
			switch hosts := w.Groups[i].NumOfHosts; {
			case text != "":
			case w.Ceilings.Most[i] == 0:
				text = w.withoutPlace(i)
			case hosts > 1:
				text = fmt.Sprintf("what is left has room for fewer than the %d hosts of a replica", hosts)
			}
		}
		w.shortages.texts[i] = text
	}
	return text
}

// withoutPlace says why no node has anything left for pods of a group.
func (w *Writer) withoutPlace(i int) string {
	why := "other pods leave no room for them"
	if g := &w.Groups[i]; g.Trying() {
		why = g.NodeFit.Why
	}
	return why + ", and its pools may add no node"
}

// describeShortage returns "" if nothing is left on any node that accepts the pods.
func describeShortage(short landing.Shortage) string {
	unit := strings.Replace(short.Resource, "ephemeral-storage", "memory", 1) // both are in bytes
	taken, total := phrase.Pair(unit, short.Total-short.Left, short.Total)
	need, _ := phrase.Pair(unit, short.Need, short.Need)
	switch {
	case short.Rule != "":
		return short.Rule + " keeps its pods off all nodes that have room for them"
	case short.Cards:
		return "no card has enough left for one of its pods"
	case short.Resource == "":
		return ""
	case short.Left < short.Need:
		return fmt.Sprintf("%s of %s %s are taken", taken, total, short.Resource)
	}
	return fmt.Sprintf("%s of %s %s are taken, and no node has the %s left that one of its pods needs",
		taken, total, short.Resource, need)
}
