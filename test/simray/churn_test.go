package simray_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/pkg/raydemand/gcs"
	"heliostat.dev/heliostat/test/simray"
)

// churn is random work on a simulated Ray behind its true wire, with an operator whose pods take their time, on a clock
// that the test moves by 100 ms a step. The state is skewed as a real one is: each raylet's report is up to a second
// old, and each has an age of its own (docs/reference/facts.md#load-report-lag).
type churn struct {
	t      *testing.T
	c      *controller.Controller
	kube   *fakeKube
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

var key = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}

// fakeKube keeps one RayCluster, and carries patches out as the API server and the operator do.
type fakeKube struct {
	controller.Kube // nil: nothing else is written
	cluster         nodepool.Cluster
	pods            int // how many were created
	patches, events int
}

func (k *fakeKube) NamespaceMode(string) (nodepool.Mode, string) { return "", "" }
func (k *fakeKube) MayWrite(nodepool.ClusterKey) bool            { return true }
func (k *fakeKube) Event(nodepool.Cluster, bool, string, string) { k.events++ }

func (k *fakeKube) OwnerEvent(nodepool.Cluster, bool, string, string) {}

func (k *fakeKube) Cluster(context.Context, nodepool.ClusterKey) (nodepool.Cluster, error) {
	c := k.cluster
	c.Groups, c.Workers = slices.Clone(c.Groups), slices.Clone(c.Workers)
	for i := range c.Groups {
		c.Groups[i].WorkersToDelete = slices.Clone(c.Groups[i].WorkersToDelete)
	}
	return c, nil
}

func (k *fakeKube) Fresh(ctx context.Context, key nodepool.ClusterKey) (nodepool.Cluster, error) {
	return k.Cluster(ctx, key)
}

func (k *fakeKube) Apply(_ context.Context, change nodepool.Change) (int64, error) {
	names := slices.ContainsFunc(change.Targets, func(t nodepool.Target) bool { return len(t.WorkersToDelete) > 0 })
	if names && change.Generation != k.cluster.Generation {
		return 0, nodepool.ErrConflict
	}
	for _, t := range change.Targets {
		g := &k.cluster.Groups[t.Index]
		if g.Name != t.Group || g.Replicas != t.From || change.UID != k.cluster.UID {
			return 0, nodepool.ErrConflict
		}
		g.Replicas = t.Replicas
		if t.WorkersToDelete != nil {
			g.WorkersToDelete = slices.Clone(t.WorkersToDelete)
		}
	}
	k.patches++
	k.cluster.Generation++
	k.cluster.ScaledBy = nodepool.FieldManager
	return k.cluster.Generation, nil
}

// operate does what KubeRay's operator does: named pods go, missing pods come.
func (k *fakeKube) operate(now time.Time) {
	c := &k.cluster
	for _, g := range c.Groups {
		c.Workers = slices.DeleteFunc(c.Workers, func(p nodepool.Worker) bool {
			return slices.Contains(g.WorkersToDelete, p.Pod)
		})
		for have := len(c.Workers); have < g.Goal(); have++ {
			k.pods++
			c.Workers = append(c.Workers, nodepool.Worker{Pod: fmt.Sprintf("llm-%s-%d", g.Name, k.pods),
				UID: fmt.Sprint(k.pods), Group: g.Name, CreatedAt: now})
		}
	}
	c.ObservedGeneration = c.Generation
}

func (k *fakeKube) exists(pod string) bool {
	return slices.ContainsFunc(k.cluster.Workers, func(p nodepool.Worker) bool { return p.Pod == pod })
}

func (k *fakeKube) group(name string) *nodepool.WorkerGroup {
	g, _ := k.cluster.Group(name)
	return g
}

// fingerprint is that of a head whose readings have this state.
func fingerprint(state raydemand.State) uint64 {
	sum := fnv.New64a()
	for _, n := range state.Nodes {
		n.Idle = 0
		fmt.Fprint(sum, n)
	}
	fmt.Fprint(sum, state.Session, state.Demand)
	return sum.Sum64() | 1
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

func newChurn(t *testing.T, seed uint64, groups ...nodepool.WorkerGroup) *churn {
	t.Helper()
	clock := &manualClock{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	head, err := simray.Start(simray.Options{Clock: clock, Head: simray.Node{Instance: "llm-head", Group: "headgroup"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(head.Close)
	c := &churn{t: t, clock: clock, head: head, random: rand.New(rand.NewPCG(seed, 1)),
		kube: &fakeKube{cluster: nodepool.Cluster{
			Key: key, UID: "uid-1", Generation: 1, ObservedGeneration: 1, InTreeAutoscaling: true, IdleTimeout: 5 * time.Second,
			Head:   nodepool.Head{Pod: "llm-head", PodUID: "head-uid", IP: "10.0.0.1", GCSPort: 6379, Ready: true},
			Groups: groups,
		}},
		joins: map[string]time.Time{}, nodes: map[string]raydemand.NodeID{}}
	config := controller.DefaultConfig()
	config.Now, config.Jitter = clock.Now, func() float64 { return 0.5 }
	config.Published = c.check
	config.DefaultMode = nodepool.Managed
	c.c = controller.New(c.kube, c.dial, config)
	t.Cleanup(c.c.Close)
	return c
}

func (c *churn) dial(context.Context, nodepool.Cluster) (addon.Ray, error) {
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
func (c *churn) check(d *addon.Decision) {
	if d.Err != "" || d.RayErr != "" {
		c.t.Fatalf("%v: %s%s", d.At, d.Err, d.RayErr)
	}
	counts := c.head.Counts()
	for _, a := range d.Actions {
		if a.Kind != addon.ActionPatch || a.Result != addon.ResultOK {
			continue
		}
		if g := c.kube.group(a.Group); a.To < g.Min || a.To > g.Max {
			c.t.Errorf("%v: replicas %d outside [%d, %d]", d.At, a.To, g.Min, g.Max)
		}
		// Every task takes one whole worker, so the work that waits or runs is the number of workers it needs.
		if need := slices.Max(c.needs); a.To > a.From && a.To > max(need, c.kube.group(a.Group).Min) {
			c.t.Errorf("%v: replicas %d → %d for %d pieces of work; seen %v and nodes %v", d.At, a.From, a.To, need,
				d.Snapshot.Requests, d.Snapshot.Nodes)
		}
	}
	if counts.Lost > 0 {
		c.t.Fatalf("%v: %d pieces of work were lost", d.At, counts.Lost)
	}
}

// step moves the clock, the operator, the raylets and the loop by one tick.
func (c *churn) step() {
	c.clock.move(100 * time.Millisecond)
	now := c.clock.Now()
	if c.random.IntN(3) == 0 {
		before, pods := c.kube.cluster.ObservedGeneration, len(c.kube.cluster.Workers)
		c.kube.operate(now)
		c.event = c.event || c.kube.cluster.ObservedGeneration != before || len(c.kube.cluster.Workers) != pods
	}
	for _, p := range c.kube.cluster.Workers {
		if c.joins[p.Pod].IsZero() {
			c.joins[p.Pod] = now.Add(time.Duration(1000+c.random.IntN(6000)) * time.Millisecond)
		}
		if _, joined := c.nodes[p.Pod]; !joined && now.After(c.joins[p.Pod]) {
			g := c.kube.group(p.Group)
			c.nodes[p.Pod] = c.head.AddNode(simray.Node{Instance: p.Pod, Group: p.Group, Resources: g.Resources})
		}
	}
	for pod, id := range c.nodes {
		if !c.kube.exists(pod) {
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
	if !c.event && c.clock.Now().Before(c.due) {
		return
	}
	next, stands := time.Duration(0), false
	if !c.event {
		next, stands = c.c.Stands(context.Background(), key)
	}
	if !stands {
		next = c.c.Cycle(context.Background(), key)
	}
	c.event, c.due = false, c.clock.Now().Add(next)
}

// submit adds a task or an actor that takes one whole worker.
func (c *churn) submit() {
	task := simray.Task{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One}, Actor: c.random.IntN(3) == 0, Runs: time.Duration(200+c.random.IntN(9000)) * time.Millisecond}
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
	state, err := s.State(ctx)
	if state.Fingerprint == fingerprint {
		state.Nodes = nil
	}
	return state, err
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
	state.Fingerprint = fingerprint(state)
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
			c := newChurn(t, seed, nodepool.WorkerGroup{Name: "gpu", Max: 12, NumOfHosts: 1,
				Resources: raydemand.Bundle{raydemand.CPU: raydemand.Whole(4), raydemand.GPU: raydemand.One}})
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
			t.Logf("%d patches, %d events", c.kube.patches, c.kube.events)
		})
	}
}
