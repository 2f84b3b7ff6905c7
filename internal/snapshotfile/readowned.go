package snapshotfile

import (
	"math"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// ownedRequests reads requests with owners, each with a unique id.
func (in input) ownedRequests() []raydemand.Owned {
	seen := map[string]int{}
	var all []raydemand.Owned
	for i, each := range in.list() {
		field, done := each.fields()
		of := raydemand.Owned{
			ID: field("id").NonEmpty("the request's name"), Owner: field("owner").Text(),
			Priority:     int32(field("priority").Count(math.MinInt32, math.MaxInt32, 0)),
			AllOrNothing: field("allOrNothing").Flag(), Since: field("since").Time(),
			SatisfiedSince: field("satisfiedSince").Time(), Requests: field("requests").requests(),
		}
		field("id").unique(seen, of.ID, i)
		done()
		all = append(all, of)
	}
	return all
}
