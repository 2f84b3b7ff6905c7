package controller

import (
	"context"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/raydemand/jobs"
)

// jobsStale is how many times the interval of readings a reading counts while later ones fail.
const jobsStale = 3

// readJobs reads for which jobs a Ray cluster works, at most once in each interval, and returns what is known. A
// reading that fails changes no decision; after jobsStale intervals without one, nothing is known.
func (c *Controller) readJobs(ctx context.Context, r *record, v *observe.View) *jobs.Held {
	every, last := c.config.JobsEvery, &r.jobs
	if every <= 0 || !v.Live() || r.gcs.Ray == nil {
		return nil
	}
	if last.session != v.State.Session {
		*last = jobReading{session: v.State.Session}
	}
	if v.Now.Sub(last.at) >= every {
		last.at = v.Now
		within, cancel := context.WithTimeout(ctx, c.config.GCSTimeout)
		defer cancel()
		read, err := r.gcs.Ray.Jobs(within)
		switch {
		case err == nil:
			last.held, last.read = read.On(v.State.Nodes), v.Now
		case !last.failed && ctx.Err() == nil:
			c.config.Log.WarnContext(ctx, "cannot read the jobs, so costs have none after a while", "cluster",
				v.Cluster.Key.String(), "err", err)
		}
		last.failed = err != nil
	}
	if v.Now.Sub(last.read) >= jobsStale*every {
		return nil
	}
	return last.held
}
