// Package reasons writes sentences: why a group launches nothing, why demand is not served, why one group was chosen
// over another. It must not change a decision, and packages that decide must not import it.
package reasons

import (
	"heliostat.dev/heliostat/internal/planner/limits"
	"heliostat.dev/heliostat/internal/planner/search"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// Writer explains one decision. It reads the decision and never changes it.
type Writer struct {
	*limits.Writer
	// owners maps items to their gangs. It is filled on first use.
	owners map[*vector.Item]ownedBy
	// existing lists the resources of all groups and nodes. It is filled on first use.
	existing []string
	// considering lists the demand that groups are considered for. It is filled on first use.
	considering []Candidate
	// claiming lists the requests that the pods of claimingOf are launched for. It is filled on first use.
	claiming   claimants
	claimingOf *search.Outcome
}

func New(p *search.Search) *Writer { return &Writer{Writer: limits.New(p)} }
