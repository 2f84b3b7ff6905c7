package place

import (
	"slices"
)

// hide holds empty nodes back until a step needs them.
func (l *Ledger) hide() {
	l.Stepwise = true
	for i := range l.Classes {
		class := &l.Classes[i]
		class.hidden = class.Phase != Running && class.Shape.Group != HeadGroup && !class.touched &&
			slices.Equal(class.Free, class.Shape.Total)
	}
}

// hiddenOf counts the hidden nodes of each group.
func (l *Ledger) hiddenOf(groups int) []int64 {
	counts := make([]int64, groups)
	for i := range l.Classes {
		if class := &l.Classes[i]; class.hidden {
			counts[class.Shape.Group] += class.Count
		}
	}
	return counts
}

// reveal offers n more nodes of a group to all demand that is placed from now on.
func (l *Ledger) reveal(group int, n int64) {
	for i := 0; i < len(l.Classes) && n > 0; i++ {
		if !l.Classes[i].hidden || l.Classes[i].Shape.Group != group {
			continue
		}
		count := min(n, l.Classes[i].Count)
		l.Classes[l.split(i, count)].hidden = false
		n -= count
	}
}

// revealMinimum offers the nodes that a minimum keeps in any case.
func (p *placer) revealMinimum(l *Ledger) {
	short := make([]int64, len(p.Groups))
	for i := range p.Groups {
		short[i] = p.Groups[i].MinPods
	}
	for i := range l.Classes {
		if class := &l.Classes[i]; class.Shape.Group != HeadGroup && !class.hidden {
			short[class.Shape.Group] -= class.Count
		}
	}
	for i, n := range short {
		l.reveal(i, n)
	}
}

// holdsBack reports whether nodes of a group are hidden.
func (l *Ledger) holdsBack(group int) bool {
	return l.Stepwise &&
		slices.ContainsFunc(l.Classes, func(class NodeClass) bool { return class.hidden && class.Shape.Group == group })
}
