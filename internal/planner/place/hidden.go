package place

import (
	"slices"
)

// hide holds empty nodes back until a step needs them.
func (l *Ledger) hide() {
	l.stepwise = true
	for i := range l.classes {
		class := &l.classes[i]
		class.hidden = class.phase != running && class.Shape.group != HeadGroup && !class.touched &&
			slices.Equal(class.free, class.Shape.Total)
	}
}

// hiddenOf counts the hidden nodes of each group.
func (l *Ledger) hiddenOf(groups int) []int64 {
	counts := make([]int64, groups)
	for i := range l.classes {
		if class := &l.classes[i]; class.hidden {
			counts[class.Shape.group] += class.count
		}
	}
	return counts
}

// reveal offers n more nodes of a group to all demand that is placed from now on.
func (l *Ledger) reveal(group int, n int64) {
	for i := 0; i < len(l.classes) && n > 0; i++ {
		if !l.classes[i].hidden || l.classes[i].Shape.group != group {
			continue
		}
		count := min(n, l.classes[i].count)
		l.classes[l.split(i, count)].hidden = false
		n -= count
	}
}

// revealMinimum offers the nodes that a minimum keeps in any case.
func (p *Search) revealMinimum(l *Ledger) {
	short := make([]int64, len(p.Groups))
	for i := range p.Groups {
		short[i] = p.Groups[i].MinPods
	}
	for i := range l.classes {
		if class := &l.classes[i]; class.Shape.group != HeadGroup && !class.hidden {
			short[class.Shape.group] -= class.count
		}
	}
	for i, n := range short {
		l.reveal(i, n)
	}
}

// holdsBack reports whether nodes of a group are hidden.
func (l *Ledger) holdsBack(group int) bool {
	return l.stepwise &&
		slices.ContainsFunc(l.classes, func(class NodeClass) bool { return class.hidden && class.Shape.group == group })
}
