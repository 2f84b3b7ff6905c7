package costs

import (
	"context"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/pkg/nodepool/price"
	"heliostat.dev/heliostat/pkg/raydemand/jobs"
)

// Costs adds up what the workers of published decisions cost.
type Costs struct {
	Ledger *ledger.Ledger
	book   *price.Book
	// parts are buffers for one observation.
	parts sync.Pool
}

// New returns Costs with the prices of nodes.
func New(book *price.Book) *Costs {
	return &Costs{Ledger: ledger.New(ledger.Limits{}), book: book,
		parts: sync.Pool{New: func() any { return new([]ledger.Pod) }}}
}

// Observe adds up a decision. One that did not see the RayCluster adds nothing: the one before it holds meanwhile.
func (c *Costs) Observe(d *addon.Decision) {
	if d.ObserveFailed {
		return
	}
	parts := c.parts.Get().(*[]ledger.Pod)
	defer c.parts.Put(parts)
	*parts = Of((*parts)[:0], d, c.book)
	c.Ledger.Observe(ledger.Observation{At: d.At, Cluster: d.Cluster, Pods: *parts})
	clear(*parts) // the buffer must not keep the names of pods' groups alive
}

// jobsStale is how many times the interval of readings a reading counts while later ones fail.
const jobsStale = 3

// Jobs returns the addon that reads for which jobs a Ray cluster works, at most once in each interval; 0 is never.
func Jobs(every time.Duration) addon.Addon {
	return addon.Addon{New: func(loop addon.Loop) addon.Feature {
		j := &jobReader{loop: loop, every: every}
		return addon.Feature{Last: func(ctx context.Context, c *addon.Cycle) { c.Jobs = j.readJobs(ctx, &c.View) }}
	}}
}

// jobReader reads the jobs of one RayCluster.
type jobReader struct {
	loop  addon.Loop
	every time.Duration
	last  jobReading
}

// jobReading is the last reading of the jobs of a Ray session.
type jobReading struct {
	held *jobs.Held
	// at is when the last one was tried, and read when the last one succeeded.
	at, read time.Time
	session  string
	failed   bool // the last one failed, which the log says once
}

// readJobs reads for which jobs a Ray cluster works, at most once in each interval, and returns what is known. A
// reading that fails changes no decision; after jobsStale intervals without one, nothing is known.
func (j *jobReader) readJobs(ctx context.Context, v *observe.View) *jobs.Held {
	every, last := j.every, &j.last
	if every <= 0 || !v.Live() || j.loop.Ray() == nil {
		return nil
	}
	if last.session != v.State.Session {
		*last = jobReading{session: v.State.Session}
	}
	if v.Now.Sub(last.at) >= every {
		last.at = v.Now
		within, cancel := context.WithTimeout(ctx, j.loop.CallTimeout())
		defer cancel()
		read, err := j.loop.Ray().Jobs(within)
		switch {
		case err == nil:
			last.held, last.read = read.On(v.State.Nodes), v.Now
		case !last.failed && ctx.Err() == nil:
			j.loop.Log().WarnContext(ctx, "cannot read the jobs, so costs have none after a while", "cluster",
				v.Cluster.Key.String(), "err", err)
		}
		last.failed = err != nil
	}
	if v.Now.Sub(last.read) >= jobsStale*every {
		return nil
	}
	return last.held
}
