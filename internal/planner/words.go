package planner

import (
	"heliostat.dev/heliostat/internal/planner/search"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// words writes why a decision is as it is. It reads the decision and changes nothing in it.
type words struct {
	*search.Search
	// owners are the gangs of items, once that was asked.
	owners map[*vector.Item]ownedBy
	// existing are the names of resources that a group or node has, once that was asked.
	existing []string
	// considering is what groups are considered for, once that was asked.
	considering []candidate
}

func newWords(p *search.Search) *words { return &words{Search: p} }
