package plannertest

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// DrawOwned draws a snapshot with requests of owners.
func DrawOwned(t *rapid.T) model.Snapshot {
	s := DrawSnapshot(t)
	for i := range rapid.IntRange(1, 5).Draw(t, "owners") {
		s.OwnedRequests = append(s.OwnedRequests, raydemand.Owned{
			ID:           fmt.Sprintf("r%d", i),
			Owner:        "o",
			Priority:     int32(rapid.IntRange(0, 2).Draw(t, "priority")),
			AllOrNothing: rapid.Bool().Draw(t, "allOrNothing"),
			Since:        time.Unix(int64(rapid.IntRange(1, 3).Draw(t, "since")), 0).UTC(),
			Requests:     drawRequests(t, "of owner", 3),
		})
	}
	return s
}
