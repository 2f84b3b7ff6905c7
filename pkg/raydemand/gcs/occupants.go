package gcs

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// internalNamespace is the beginning of the names of Ray's own namespaces, in which the dashboard's drivers connect
// (ray: dashboard/modules/job/utils.py leaves their jobs out too).
const internalNamespace = "_ray_internal_"

// Occupants lists the drivers that are connected, the actors that live and the placement groups that exist. Each call
// reads a table of the GCS, that of actors in part, so callers make it seldom. Anything that cannot be read is an
// error, and so is a table of actors that does not show whether one lives.
func (c *Client) Occupants(ctx context.Context) (raydemand.Occupants, error) {
	var all raydemand.Occupants
	jobs, err := c.jobs(ctx)
	if err != nil {
		return all, err
	}
	for _, job := range jobs {
		if !job.GetIsDead() {
			all.Drivers.Add(cmp.Or(job.GetEntrypoint(), hex.EncodeToString(job.GetJobId())))
		}
	}
	lives := func(actor *raypb.ActorTableData) bool { return actor.GetState() != raypb.ActorTableData_DEAD }
	actors, complete, err := c.actors(ctx)
	if err != nil {
		return all, err
	}
	for _, actor := range actors {
		if lives(actor) {
			all.Actors.Add(cmp.Or(actor.GetName(), actor.GetClassName(), hex.EncodeToString(actor.GetActorId())))
		}
	}
	if all.Actors.More = !complete; all.Actors.More && all.Actors.Count == 0 {
		return all, fmt.Errorf("the Ray cluster has more than %d actors; it is not known whether one lives",
			mostActors)
	}
	groups := &raypb.GetAllPlacementGroupReply{}
	if err := c.list(ctx, raypb.PlacementGroupInfoGcsService_GetAllPlacementGroup_FullMethodName,
		&raypb.GetAllPlacementGroupRequest{}, groups); err != nil {
		return all, err
	}
	for _, group := range groups.GetPlacementGroupTableData() {
		if group.GetState() != raypb.PlacementGroupTableData_REMOVED {
			all.PlacementGroups.Add(cmp.Or(group.GetName(), hex.EncodeToString(group.GetPlacementGroupId())))
		}
	}
	return all, nil
}

// jobs lists the jobs of users, those that have ended included.
func (c *Client) jobs(ctx context.Context) ([]*raypb.JobTableData, error) {
	reply := &raypb.GetAllJobInfoReply{}
	if err := c.list(ctx, raypb.JobInfoGcsService_GetAllJobInfo_FullMethodName, &raypb.GetAllJobInfoRequest{
		SkipSubmissionJobInfoField: proto.Bool(true), SkipIsRunningTasksField: proto.Bool(true)}, reply); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(reply.GetJobInfoList(), func(job *raypb.JobTableData) bool {
		return strings.HasPrefix(job.GetConfig().GetRayNamespace(), internalNamespace)
	}), nil
}
