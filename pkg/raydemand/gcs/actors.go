package gcs

import (
	"context"

	"google.golang.org/protobuf/proto"

	"heliostat.dev/heliostat/api/proto/raypb"
)

// mostActors is how many rows of the actor table are read at most. A GCS keeps up to 100,000 actors that have ended,
// and a reply with all of them would stop it for a while.
const mostActors = 10_000

// actors reads the actor table, and reports whether all actors that exist are among the rows.
func (c *Client) actors(ctx context.Context) (table []*raypb.ActorTableData, complete bool, err error) {
	reply := &raypb.GetAllActorInfoReply{}
	if err := c.list(ctx, raypb.ActorInfoGcsService_GetAllActorInfo_FullMethodName,
		&raypb.GetAllActorInfoRequest{Limit: proto.Int64(mostActors)}, reply); err != nil {
		return nil, false, err
	}
	table = reply.GetActorTableData()
	return table, len(table) < mostActors || endedLast(table), nil
}

// endedLast reports whether the table ends with actors that have ended for good. A GCS lists these after all others
// (docs/reference/facts.md#the-actor-table), so no living one is missing. Among the others are dead actors that Ray may
// still restart. A living one after them shows another order, of which nothing follows.
func endedLast(table []*raypb.ActorTableData) (ended bool) {
	for _, actor := range table {
		dead := actor.GetState() == raypb.ActorTableData_DEAD
		switch {
		case ended && !dead:
			return false
		case dead && actor.GetMaxRestarts() == 0:
			ended = true
		}
	}
	return ended
}
