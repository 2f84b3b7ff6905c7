package controller

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/head"
	"heliostat.dev/heliostat/internal/simray"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/pkg/raydemand/gcs"
)

// churn is random work on a simulated Ray behind its true wire, with an operator whose pods take their time, on a clock
// that the test moves by 100 ms a step. The state is skewed as a real one is: each raylet's report is up to a second
// old, and each has an age of its own (docs/reference/facts.md#load-report-lag).
type churn struct {
	*world
	t      *testing.T
	clock  *manualClock
	head   *simray.Head
	random *rand.Rand
	// joins says when a pod's raylet comes up, nodes which node runs in a pod.
	joins map[string]time.Time
	nodes map[string]raydemand.NodeID
	// due is when the next reading is. event: Kubernetes has reported a change since the last cycle.
	due   time.Time
	event bool
	// needs is how much work waited or ran at each of the latest steps.
	needs []int
}

type manualClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *manualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *manualClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newChurn(t *testing.T, seed uint64, config Config, groups ...nodepool.WorkerGroup) *churn {
	t.Helper()
	w := newWorld(t, config, groups...)
	w.kube.cluster.IdleTimeout = 5 * time.Second
	clock := &manualClock{now: w.now}
	head, err := simray.Start(simray.Options{Clock: clock, Head: simray.Node{Instance: "llm-head", Group: "headgroup"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(head.Close)
	c := &churn{world: w, t: t, clock: clock, head: head, random: rand.New(rand.NewPCG(seed, 1)),
		joins: map[string]time.Time{}, nodes: map[string]raydemand.NodeID{}}
	config = complete(config)
	config.Now, config.Jitter = clock.Now, func() float64 { return 0.5 }
	config.Published = c.check
	config.DefaultMode = nodepool.Managed
	w.c = New(w.kube, c.dial, config)
	t.Cleanup(w.c.Close)
	return c
}

func (c *churn) dial(context.Context, nodepool.Cluster) (head.Ray, error) {
	client, err := gcs.Dial(gcs.Config{Address: c.head.Addr()})
	if err != nil {
		return nil, err
	}
	return &skewed{Client: client, churn: c}, nil
}

// reportAge is how old the truth behind a reading can be: a second of the raylets' reports and the steps around it.
const reportAge = 12

// check looks at every decision: replicas stay within limits, and a goal is never raised above what work needed at any
// moment that Ray's reports can speak of.
func (c *churn) check(d *decision.Decision) {
	if d.Err != "" || d.RayErr != "" {
		c.t.Fatalf("%v: %s%s", d.At, d.Err, d.RayErr)
	}
	counts := c.head.Counts()
	for _, a := range d.Actions {
		if a.Kind != decision.ActionPatch || a.Result != decision.ResultOK {
			continue
		}
		if g := c.group(a.Group); a.To < g.Min || a.To > g.Max {
			c.t.Errorf("%v: replicas %d outside [%d, %d]", d.At, a.To, g.Min, g.Max)
		}
		// Every task takes one whole worker, so the work that waits or runs is the number of workers it needs.
		if need := slices.Max(c.needs); a.To > a.From && a.To > max(need, c.group(a.Group).Min) {
			c.t.Errorf("%v: replicas %d → %d for %d pieces of work; seen %s and nodes %v", d.At, a.From, a.To, need,
				shapesText(d.Snapshot.Requests), states(d.Snapshot))
		}
	}
	if counts.Lost > 0 {
		c.t.Fatalf("%v: %d pieces of work were lost", d.At, counts.Lost)
	}
}

// step moves the clock, the operator, the raylets and the loop by one tick.
func (c *churn) step() {
	c.clock.move(100 * time.Millisecond)
	c.now = c.clock.Now()
	if c.random.IntN(3) == 0 {
		before, pods := c.kube.cluster.ObservedGeneration, len(c.kube.cluster.Workers)
		c.operate()
		c.event = c.event || c.kube.cluster.ObservedGeneration != before || len(c.kube.cluster.Workers) != pods
	}
	for _, p := range c.kube.cluster.Workers {
		if c.joins[p.Pod].IsZero() {
			c.joins[p.Pod] = c.now.Add(time.Duration(1000+c.random.IntN(6000)) * time.Millisecond)
		}
		if _, joined := c.nodes[p.Pod]; !joined && c.now.After(c.joins[p.Pod]) {
			g, _ := c.kube.cluster.Group(p.Group)
			c.nodes[p.Pod] = c.head.AddNode(simray.Node{Instance: p.Pod, Group: p.Group, Resources: g.Resources})
		}
	}
	for pod, id := range c.nodes {
		if !c.exists(pod) {
			c.head.KillNode(id) // whatever still ran there is lost
			delete(c.nodes, pod)
		}
	}
	counts := c.head.Counts()
	c.needs = append(c.needs, counts.Waiting+counts.Running)
	c.needs = c.needs[max(0, len(c.needs)-reportAge):]
	c.decide()
}

// decide does what a worker of the manager does.
func (c *churn) decide() {
	if !c.event && c.now.Before(c.due) {
		return
	}
	next, stands := time.Duration(0), false
	if !c.event {
		next, stands = c.c.Stands(context.Background(), key)
	}
	if !stands {
		next = c.c.Cycle(context.Background(), key)
	}
	c.event, c.due = false, c.now.Add(next)
}

// submit adds a task or an actor that takes one whole worker.
func (c *churn) submit() {
	task := simray.Task{Bundle: gpu(1), Actor: c.random.IntN(3) == 0, Runs: time.Duration(200+c.random.IntN(9000)) * time.Millisecond}
	c.head.Submit(task)
}

// skewed gives every reading the age that raylets' reports have.
type skewed struct {
	*gcs.Client
	churn *churn
	past  []reported
}

type reported struct {
	at    time.Time
	state raydemand.State
}

func (s *skewed) Repeats(ctx context.Context, fingerprint uint64) (raydemand.State, error) {
	return withoutNodes(s.State(ctx))(fingerprint)
}

func (s *skewed) State(ctx context.Context) (raydemand.State, error) {
	state, err := s.Client.State(ctx)
	if err != nil {
		return state, err
	}
	now := s.churn.clock.Now()
	s.past = append(s.past, reported{now, state})
	state.Nodes = slices.Clone(state.Nodes)
	if len(s.past) > 12 {
		s.past = s.past[1:]
	}
	// The raylet that waits for its tasks reports on one tick, every worker on a tick of its own a few steps later.
	state.Demand.Requests = s.asOf(lastTick(now, 0)).Demand.Requests
	for i := range state.Nodes {
		n := &state.Nodes[i]
		if n.Head || n.Status == raydemand.Dead || n.Status == raydemand.Draining {
			continue
		}
		phase := time.Duration(int(n.ID[0])%4) * 100 * time.Millisecond
		for _, old := range s.asOf(lastTick(now, phase)).Nodes {
			if old.ID == n.ID {
				*n = old
			}
		}
	}
	state.Fingerprint = printOf(state)
	return state, nil
}

// lastTick is the last moment at which a raylet with that phase was asked: once a second.
func lastTick(now time.Time, phase time.Duration) time.Time {
	return now.Add(-phase).Truncate(time.Second).Add(phase)
}

// asOf is the newest state that is not newer than at.
func (s *skewed) asOf(at time.Time) raydemand.State {
	for i := len(s.past) - 1; i >= 0; i-- {
		if !s.past[i].at.After(at) {
			return s.past[i].state
		}
	}
	return s.past[0].state
}

func TestChurnLosesNoWorkAndLaunchesNoWorkerTooMany(t *testing.T) {
	seeds, steps := uint64(5), 1800 // three minutes each
	if testing.Short() {
		seeds, steps = 1, 600
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			c := newChurn(t, seed, Config{}, gpuGroup("gpu", 0, 0, 12))
			for range steps {
				if c.random.IntN(12) == 0 {
					for range 1 + c.random.IntN(4) {
						c.submit()
					}
				}
				c.step()
			}
			for range 350 { // the last work of 9 s, then the idle timeout of 5 s and 10 s more, and queues before
				c.step()
			}
			if counts := c.head.Counts(); counts.Waiting+counts.Running+counts.Lost > 0 {
				t.Errorf("work left or lost: %+v", counts)
			}
			if got := len(c.kube.cluster.Workers); got != 0 {
				t.Errorf("%d idle workers are left", got)
			}
			t.Logf("%d patches, %d events", len(c.kube.changes), len(c.kube.events))
		})
	}
}
