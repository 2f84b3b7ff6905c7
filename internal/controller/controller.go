// Package controller is the loop: when to observe a RayCluster, in which order to act, and what to publish. Package
// planner makes every scaling decision; this package carries it out as far as the safety rules allow
// (docs/design/0001-the-loop.md). The packages below it are rules and values: observe (what is seen), scaledown (what
// may be removed). Whether anything may be written is in mode.go, the connection to Ray in connection.go. The loop uses
// Kubernetes and Ray only through small interfaces (Kube in config.go, Ray in package addon) and must not import their
// clients.
//
// Begin with cycle.go, which has the order of a cycle, decide.go, and apply.go, which has the list of steps. A step is
// in the file that is named after it. Optional features are steps too, of packages in internal/addon. When a RayCluster
// is read next is in pace.go and lookagain.go.
//
// A record is what the process keeps of one RayCluster: the connection to its head, and its memory. A memory adds up
// readings, and decides from them what to launch, what to take away (with package scaledown), and when nothing may be
// taken away (doubt.go). It makes no calls and does not ask for the time, and may be lost at any time: the goal is
// computed from what is observed, and what must survive a restart is in the Kubernetes API.
package controller

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/time/rate"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Controller decides for many RayClusters, one cycle at a time for each.
type Controller struct {
	kube   Kube
	dial   addon.Dialer
	config Config

	// cycles limits the cycles that events start, and those before their turn. So the RayClusters of a large fleet do
	// not connect to their heads all at once.
	cycles   *rate.Limiter
	promises promises
	// writes limits what features write beside RayClusters, such as guards, for all RayClusters together.
	writes *rate.Limiter
	// heavy is held while a heavy plan is computed, so that many RayClusters with very much demand take the memory of
	// one plan and at most one core. Other plans never wait.
	heavy sync.Mutex

	mu      sync.Mutex // guards all below, and motion of each record; a cycle locks it while it holds its record
	records map[nodepool.ClusterKey]*record
	// motions are how many records have each motion, except idle, because new records are not counted there.
	motions [motions]int
}

// New returns a controller that is ready for Cycle.
func New(kube Kube, dial addon.Dialer, config Config) *Controller {
	return &Controller{
		kube: current{kube, config.Now, config.Effective}, dial: dial, config: config,
		writes:  rate.NewLimiter(rate.Limit(config.GuardsPerSecond), max(1, int(config.GuardsPerSecond))),
		cycles:  rate.NewLimiter(rate.Limit(config.CyclesPerSecond), max(earlyCost, int(config.CyclesPerSecond))),
		records: map[nodepool.ClusterKey]*record{},
	}
}

func (c *Controller) record(key nodepool.ClusterKey) *record {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.records[key]
	if r == nil {
		r = newRecord(c)
		c.records[key] = r
	}
	return r
}

// all returns the records of all clusters, in no order.
func (c *Controller) all() []*record {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.records))
}

// forget drops a cluster that is gone, or about which another process decides now, and its connection. Forgotten is
// not called for one that never had a decision.
func (c *Controller) forget(key nodepool.ClusterKey, r *record) {
	r.gcs.Close()
	c.setMotion(r, idle)
	c.mu.Lock()
	delete(c.records, key)
	c.mu.Unlock()
	for i := range c.config.Addons {
		if forgotten := c.config.Addons[i].Forgotten; forgotten != nil {
			forgotten(key)
		}
	}
	if c.config.Forgotten != nil && r.decision.Load() != nil {
		c.config.Forgotten(key)
	}
}

// Watch notes what a RayCluster about which another process decides has on its way, and forgets what this process knew
// while it decided itself.
func (c *Controller) Watch(ctx context.Context, key nodepool.ClusterKey) {
	cluster, err := c.kube.Cluster(ctx, key)
	if r := c.known(key); r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		c.forget(key, r)
	}
	if err != nil {
		c.promises.Forget(key)
		return
	}
	c.promises.Note(&cluster, c.config.Now())
}

// known returns the record of a cluster, or nil.
func (c *Controller) known(key nodepool.ClusterKey) *record {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.records[key]
}

// Close closes all connections to Ray. It waits for running cycles, so end their context first; no cycle may begin
// later.
func (c *Controller) Close() {
	for _, r := range c.all() {
		r.mu.Lock()
		r.gcs.Close()
		r.mu.Unlock()
	}
}

// setMotion notes how much a RayCluster moves; the caller holds its record.
func (c *Controller) setMotion(r *record, motion motion) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.motions[r.motion]--
	c.motions[motion]++
	r.motion = motion
}

func (c *Controller) counts() counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	moving := c.motions[active]
	return counts{moving, c.motions[waiting], len(c.records) - moving}
}

// Decision returns the latest decision about a cluster.
func (c *Controller) Decision(key nodepool.ClusterKey) (*addon.Decision, bool) {
	r := c.known(key)
	if r == nil {
		return nil, false
	}
	d := r.decision.Load()
	return d, d != nil
}

// Decisions returns the latest decision about every cluster, sorted by namespace and name.
func (c *Controller) Decisions() []*addon.Decision {
	var all []*addon.Decision
	for _, r := range c.all() {
		if d := r.decision.Load(); d != nil {
			all = append(all, d)
		}
	}
	slices.SortFunc(all,
		func(a, b *addon.Decision) int { return strings.Compare(a.Cluster.String(), b.Cluster.String()) })
	return all
}
