package gcs

import (
	"cmp"
	"context"
	"encoding/hex"

	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/pkg/raydemand/jobs"
)

// submissionID is the key of a job's metadata with its submission id (ray: dashboard/modules/job/common.py).
const submissionID = "job_submission_id"

// Jobs lists the drivers that are connected, and what living actors hold. It reads two tables of the GCS, so callers
// make it seldom.
func (c *Client) Jobs(ctx context.Context) (jobs.Reading, error) {
	var read jobs.Reading
	drivers, err := c.jobs(ctx)
	if err != nil {
		return read, err
	}
	names := map[string]string{} // of jobs by their id
	for _, job := range drivers {
		submitted := job.GetConfig().GetMetadata()[submissionID]
		name := cmp.Or(submitted, hex.EncodeToString(job.GetJobId()))
		names[string(job.GetJobId())] = name // detached actors outlive their driver
		if !job.GetIsDead() {
			read.Jobs = append(read.Jobs, jobs.Job{Name: name, Submitted: submitted != "",
				Entrypoint: job.GetEntrypoint()})
		}
	}
	table, complete, err := c.actors(ctx, jobs.MostActors)
	if err != nil {
		return read, err
	}
	read.Truncated = !complete
	for _, actor := range table {
		node, err := raydemand.ParseNodeID(actor.GetNodeId())
		if actor.GetState() != raypb.ActorTableData_ALIVE || err != nil {
			continue
		}
		read.Actors = append(read.Actors, jobs.Actor{Job: names[string(actor.GetJobId())], Node: node,
			Resources: actor.GetRequiredResources()})
	}
	return read, nil
}
