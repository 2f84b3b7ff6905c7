package controller

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"heliostat.dev/heliostat/internal/controller/breaker"
	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/memory"
	"heliostat.dev/heliostat/internal/controller/mode"
	"heliostat.dev/heliostat/internal/controller/pace"
	"heliostat.dev/heliostat/internal/controller/planbudget"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/nodepool/price"
)

// breakers returns the settings of the breakers.
func (c Config) breakers() breaker.Settings {
	return breaker.Settings{
		AllocationTimeout:  c.AllocationTimeout,
		Cooldown:           c.BreakerCooldown,
		UnschedulableGrace: c.AllocationTimeout / 5,
	}
}

// memory returns the settings of what is remembered and decided.
func (c *Config) memory() *memory.Settings {
	return &memory.Settings{
		Policy: c.Policy, Breakers: c.breakers(),
		AllocationTimeout: c.AllocationTimeout, DeadGrace: c.DeadGrace,
		DrainDeadline: c.DrainDeadline, DrainTimeout: c.DrainTimeout,
		NodeTimes: c.nodeTimes,
	}
}

// pace returns the limits of pauses.
func (c *Config) pace() pace.Settings {
	return pace.Settings{FastPoll: c.FastPoll, RestPoll: c.RestPoll, Jitter: c.Jitter,
		ReadsPerSecond: c.ReadsPerSecond, CyclesPerSecond: c.CyclesPerSecond}
}

// modes returns the rules that decide the mode of RayClusters.
func (c Config) modes() mode.Rules {
	return mode.Rules{Form: c.Form, Default: c.DefaultMode, ReadOnly: c.ReadOnly}
}

// Config holds the settings of the loop. Zero fields take the default named at each.
type Config struct {
	Form mode.Form // Fleet
	// DefaultMode applies to RayClusters without the annotation heliostat.dev/mode on themselves or on their
	// namespace. The default is shadow for a fleet, which scales nothing unasked, and managed for a sidecar, because
	// adding it to a head pod is a request to scale.
	DefaultMode nodepool.Mode
	// ReadOnly manages no RayCluster, whatever its annotation says, and does not write to ResourceRequests.
	ReadOnly bool
	// Policy is the planner's policy; its in-flight caps are set from the fields below.
	Policy planner.Policy

	// FastPoll is the shortest pause between two readings while anything moves, such as demand, pods on their way and
	// drains, and for 30 s after a change. 100 ms.
	FastPoll time.Duration
	// RestPoll is the shortest pause while nothing moves. 200 ms.
	RestPoll time.Duration
	// ReadsPerSecond bounds the readings of all clusters together, CyclesPerSecond those after which a decision is made
	// anew; see pace. 4000 and 400.
	ReadsPerSecond, CyclesPerSecond float64
	// JobsEvery is how often the loop reads for which jobs a Ray cluster works. 0 is never.
	JobsEvery time.Duration
	// GCSTimeout bounds each call to a head. 3 s.
	GCSTimeout time.Duration
	// GCSBackoff is the longest pause between two calls to a head that does not answer. 10 s.
	GCSBackoff time.Duration

	// PlanBudget bounds the time that the plans of one cycle take if there is very much different demand; see
	// planbudget.Budget. 2 s.
	PlanBudget time.Duration
	// MaxInFlight bounds the pods of one cluster that are requested and have not joined Ray, because one call of a
	// driver can ask for any number. 1000.
	MaxInFlight int
	// AllocationTimeout is how long a pod may take to join Ray before its group counts as failing. A fifth of it is how
	// long a pod may have no node, without a node autoscaler announcing one, before that proves that its group is out
	// of stock. That counts only if Events of node autoscalers are read and one has reported before. 5 min, and so
	// 60 s, the most that the Cluster Autoscaler takes to react to a pod in a big cluster
	// (docs/reference/facts.md#how-soon-node-autoscalers-act).
	AllocationTimeout time.Duration
	// BreakerCooldown is how long a failing group gets no launches at first; it doubles up to one hour. 5 min.
	BreakerCooldown time.Duration

	// DrainDeadline is how long work on a worker above a lowered maximum may continue. 10 min.
	DrainDeadline time.Duration
	// DrainTimeout is how long an accepted drain of an idle node may take to end the node. 60 s.
	DrainTimeout time.Duration
	// DeadGrace is how long a pod may stay with a dead Ray node that nobody drained before it is deleted by name;
	// KubeRay itself replaces containers that end. 30 s.
	DeadGrace time.Duration
	// ConsolidateAfter is how long a worker must be used a little before it is drained because others have room for its
	// work; Prices say what that saves, for groups without a price of their own. 10 min; nil has the built-in list
	// prices.
	ConsolidateAfter time.Duration
	Prices           *price.Book
	// ProtectBusy guards the head and busy workers against node autoscalers, see protect. GuardsPerSecond bounds the
	// guards written to all RayClusters together, and how many are written at once. 50.
	ProtectBusy     bool
	GuardsPerSecond float64
	// MaxDataAge is the oldest reading that a reduction may use. 10 s.
	MaxDataAge time.Duration
	// ReportEvery is the interval of equal reports to the GCS. 5 s.
	ReportEvery time.Duration

	// Now returns the time, Jitter a number in [0, 1). The wall clock and math/rand.
	Now    func() time.Time
	Jitter func() float64
	// Log gets one line per change. Discarded by default.
	Log *slog.Logger
	// Owned receives the status of ResourceRequests; nil writes none.
	Owned OwnedRequests
	// Published is called with every decision after it is applied, Forgotten when a RayCluster with decisions is gone.
	// Released is called when another process decides about one from now on. None may block. All may be nil.
	Published func(*decision.Decision)
	Forgotten func(nodepool.ClusterKey)
	Released  func(nodepool.ClusterKey)
	// plans computes plans within PlanBudget.
	plans *planbudget.Budget
	// nodeTimes is how long nodes of each pool take, for all RayClusters.
	nodeTimes *arrival.Pools
}

// withDefaults fills in zero fields.
func (c Config) withDefaults() Config {
	orDuration := func(d *time.Duration, fallback time.Duration) {
		if *d == 0 {
			*d = fallback
		}
	}
	orDuration(&c.FastPoll, 100*time.Millisecond)
	orDuration(&c.RestPoll, 200*time.Millisecond)
	orDuration(&c.GCSTimeout, 3*time.Second)
	orDuration(&c.GCSBackoff, 10*time.Second)
	orDuration(&c.PlanBudget, 2*time.Second)
	orDuration(&c.AllocationTimeout, 5*time.Minute)
	orDuration(&c.BreakerCooldown, 5*time.Minute)
	orDuration(&c.ConsolidateAfter, 10*time.Minute)
	orDuration(&c.DrainDeadline, 10*time.Minute)
	orDuration(&c.DrainTimeout, time.Minute)
	orDuration(&c.DeadGrace, 30*time.Second)
	orDuration(&c.MaxDataAge, 10*time.Second)
	orDuration(&c.ReportEvery, 5*time.Second)
	if c.Form == "" {
		c.Form = mode.Fleet
	}
	if c.MaxInFlight == 0 {
		c.MaxInFlight = 1000
	}
	c.Policy.MaxInFlight = min(c.MaxInFlight, math.MaxInt32)
	if c.ReadsPerSecond == 0 {
		c.ReadsPerSecond = 4000
	}
	if c.CyclesPerSecond == 0 {
		c.CyclesPerSecond = 400
	}
	if c.GuardsPerSecond == 0 {
		c.GuardsPerSecond = 50
	}
	c.plans, c.nodeTimes = planbudget.New(c.PlanBudget), &arrival.Pools{}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Jitter == nil {
		c.Jitter = rand.Float64
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate returns an error that names every invalid field.
func (c Config) Validate() error {
	var errs []error
	if c.Form != "" && c.Form != mode.Fleet && c.Form != mode.Sidecar {
		errs = append(errs, fmt.Errorf("form is %q, want fleet or sidecar", c.Form))
	}
	if c.DefaultMode != "" && !c.DefaultMode.Valid() {
		errs = append(errs, fmt.Errorf("mode is %q, want managed, shadow or off", c.DefaultMode))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"fast poll", c.FastPoll}, {"rest poll", c.RestPoll}, {"GCS timeout", c.GCSTimeout},
		{"GCS back-off", c.GCSBackoff}, {"plan budget", c.PlanBudget},
		{"allocation timeout", c.AllocationTimeout},
		{"breaker cool-down", c.BreakerCooldown},
		{"drain deadline", c.DrainDeadline}, {"drain timeout", c.DrainTimeout}, {"dead grace", c.DeadGrace},
		{"consolidation delay", c.ConsolidateAfter},
		{"data age", c.MaxDataAge}, {"report interval", c.ReportEvery}, {"interval of jobs", c.JobsEvery},
	} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("%s is %v, want a positive duration", d.name, d.value))
		}
	}
	if c.MaxInFlight < 0 {
		errs = append(errs, fmt.Errorf("in-flight cap is %d, want 0 or more", c.MaxInFlight))
	}
	for _, rate := range []struct {
		name  string
		value float64
	}{{"reads", c.ReadsPerSecond}, {"cycles", c.CyclesPerSecond}} {
		if rate.value != 0 && !(rate.value >= 0.001 && rate.value <= 1e6) {
			errs = append(errs,
				fmt.Errorf("%s per second is %v, want a number from 0.001 to 1000000", rate.name, rate.value))
		}
	}
	if c.GuardsPerSecond < 0 {
		errs = append(errs, fmt.Errorf("guards per second is %v, want a positive number", c.GuardsPerSecond))
	}
	if cost := c.Policy.WaitingCost; !(cost >= 0 && cost <= 1e9) {
		errs = append(errs, fmt.Errorf("waiting cost is %v, want a number from 0 to 1000000000", cost))
	}
	return errors.Join(errs...)
}
