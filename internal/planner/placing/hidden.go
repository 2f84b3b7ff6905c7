package placing

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
)

// Hide holds empty nodes back until a step needs them.
func (l *Ledger) Hide() {
	l.Stepwise = true
	for i := range l.Classes {
		class := &l.Classes[i]
		class.hidden = class.Phase != fleet.Running && class.Shape.Group != fleet.HeadGroup && !class.Touched &&
			slices.Equal(class.Free, class.Shape.Total)
	}
}

// HiddenOf counts the hidden nodes of each group.
func (l *Ledger) HiddenOf(groups int) []int64 {
	counts := make([]int64, groups)
	for i := range l.Classes {
		if class := &l.Classes[i]; class.hidden {
			counts[class.Shape.Group] += class.Count
		}
	}
	return counts
}

// Reveal offers n more nodes of a group to all demand that is placed from now on.
func (l *Ledger) Reveal(group int, n int64) {
	for i := 0; i < len(l.Classes) && n > 0; i++ {
		if !l.Classes[i].hidden || l.Classes[i].Shape.Group != group {
			continue
		}
		count := min(n, l.Classes[i].Count)
		l.Classes[l.split(i, count)].hidden = false
		n -= count
	}
}

// RevealMinimum offers the nodes that a minimum keeps in any case.
func (p *Placer) RevealMinimum(l *Ledger) {
	short := make([]int64, len(p.Groups))
	for i := range p.Groups {
		short[i] = p.Groups[i].MinPods
	}
	for i := range l.Classes {
		if class := &l.Classes[i]; class.Shape.Group != fleet.HeadGroup && !class.hidden {
			short[class.Shape.Group] -= class.Count
		}
	}
	for i, n := range short {
		l.Reveal(i, n)
	}
}

// holdsBack reports whether nodes of a group are hidden.
func (l *Ledger) holdsBack(group int) bool {
	return l.Stepwise &&
		slices.ContainsFunc(l.Classes, func(class NodeClass) bool { return class.hidden && class.Shape.Group == group })
}
