// Package reasons writes sentences: why a group launches nothing, why demand is not served, why one group was taken
// before another. It reads a decision and changes nothing in it, and no package that decides may import it.
package reasons

import (
	"heliostat.dev/heliostat/internal/planner/search"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// Writer writes why a decision is as it is. It reads the decision and changes nothing in it.
type Writer struct {
	*search.Search
	// owners are the gangs of items, once that was asked.
	owners map[*vector.Item]ownedBy
	// existing are the names of resources that a group or node has, once that was asked.
	existing []string
	// considering is what groups are considered for, once that was asked.
	considering []Candidate
}

func New(p *search.Search) *Writer { return &Writer{Search: p} }
