package controller

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// world is a RayCluster, its operator and its Ray, all in memory and on a clock that only the test moves.
type world struct {
	t    *testing.T
	now  time.Time
	kube *fakeKube
	ray  *fakeRay
	c    *Controller
	// features are on after the next restart.
	features features
	// dials counts connections; dialErr fails the next ones.
	dials   int
	dialErr error
	pods    int
}

var key = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}

// newWorld has a head and the given groups; every group starts with as many joined, idle workers as its replicas say.
func newWorld(t *testing.T, config Config, groups ...nodepool.WorkerGroup) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	w.kube = &fakeKube{now: func() time.Time { return w.now }, cluster: nodepool.Cluster{
		Key: key, UID: "uid-1", Generation: 1, ObservedGeneration: 1, InTreeAutoscaling: true, IdleTimeout: time.Minute,
		Head: nodepool.Head{Pod: "llm-head", PodUID: "head-uid", IP: "10.0.0.1", GCSPort: 6379, Ready: true},
	}}
	w.ray = &fakeRay{session: "session-1", refuse: map[string]bool{}}
	w.ray.nodes = []raydemand.Node{{
		ID: nodeID("llm-head"), Instance: "llm-head", Group: "headgroup", Head: true, Status: raydemand.Idle,
		Idle: time.Hour, Total: raydemand.Bundle{}, Available: raydemand.Bundle{},
	}}
	for i, g := range groups {
		g.Index, g.NumOfHosts = i, max(1, g.NumOfHosts)
		w.kube.cluster.Groups = append(w.kube.cluster.Groups, g)
	}
	w.operate()
	w.joinAll()
	w.restart(config)
	w.settle()
	return w
}

// settle lets the controller watch the Ray session for long enough to trust it, and starts the account anew.
func (w *world) settle() {
	w.t.Helper()
	w.cycle()
	w.now = w.now.Add(sessionPause)
	w.c.record(key).lastReport, w.c.record(key).reportedAt = raydemand.Report{}, time.Time{}
	w.dials, w.ray.reads, w.ray.reports, w.kube.events, w.kube.changes = 1, 0, nil, nil, nil
}

// restart begins with an empty memory, as a new process does.
func (w *world) restart(config Config) {
	w.t.Helper()
	config = complete(config)
	config.Now = func() time.Time { return w.now }
	config.Jitter = func() float64 { return 0.5 }
	if config.DefaultMode == "" {
		config.DefaultMode = nodepool.Managed // most tests are about what is managed
	}
	config.Addons = w.features.addons(w.kube, &config)
	w.c = New(w.kube, func(context.Context, nodepool.Cluster) (addon.Ray, error) {
		w.dials++
		return w.ray, w.dialErr
	}, config)
}

// complete returns the defaults with the fields that a test sets.
func complete(set Config) Config {
	config := DefaultConfig()
	to, from := reflect.ValueOf(&config).Elem(), reflect.ValueOf(set)
	for i := range from.NumField() {
		if field := to.Field(i); field.CanSet() && !from.Field(i).IsZero() {
			field.Set(from.Field(i))
		}
	}
	return config
}

// cycle runs one cycle and returns what it decided.
func (w *world) cycle() *addon.Decision {
	w.t.Helper()
	w.c.Cycle(context.Background(), key)
	d, ok := w.c.Decision(key)
	if !ok {
		w.t.Fatal("no decision was published")
	}
	return d
}

// after moves the clock, lets idle nodes get older, and runs one cycle.
func (w *world) after(d time.Duration) *addon.Decision {
	w.t.Helper()
	w.pass(d)
	return w.cycle()
}

// cycles moves the clock before each of so many cycles, and returns what the last one decided.
func (w *world) cycles(n int, pause time.Duration) (d *addon.Decision) {
	w.t.Helper()
	for range n {
		d = w.after(pause)
	}
	return d
}

// seconds has a cycle each second, minutes each half minute.
func (w *world) seconds(n int) *addon.Decision { return w.cycles(n, time.Second) }
func (w *world) minutes(n int) *addon.Decision { return w.cycles(2*n, 30*time.Second) }

func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	for i := range w.ray.nodes {
		if w.ray.nodes[i].Status == raydemand.Idle {
			w.ray.nodes[i].Idle += d
		}
	}
}

// operate does what KubeRay's operator does: named pods go, missing pods come.
func (w *world) operate() {
	cluster := &w.kube.cluster
	for _, g := range cluster.Groups {
		cluster.Workers = slices.DeleteFunc(cluster.Workers, func(p nodepool.Worker) bool {
			return slices.Contains(g.WorkersToDelete, p.Pod)
		})
		have := 0
		for _, p := range cluster.Workers {
			if p.Group == g.Name {
				have++
			}
		}
		for ; have < observe.GoalPods(g); have++ {
			w.pods++
			pod := nodepool.Worker{Pod: fmt.Sprintf("llm-%s-%d", g.Name, w.pods), UID: fmt.Sprint(w.pods), Group: g.Name, CreatedAt: w.now}
			if g.NumOfHosts > 1 {
				pod.Replica = fmt.Sprintf("%s-r%d", g.Name, have/g.NumOfHosts)
			}
			cluster.Workers = append(cluster.Workers, pod)
		}
	}
	cluster.ObservedGeneration = cluster.Generation
	w.ray.nodes = slices.DeleteFunc(w.ray.nodes, func(n raydemand.Node) bool {
		return !n.Head && n.Status != raydemand.Dead && !w.exists(n.Instance)
	})
}

func (w *world) exists(pod string) bool {
	return slices.ContainsFunc(w.kube.cluster.Workers, func(p nodepool.Worker) bool { return p.Pod == pod })
}

// joinAll makes every pod without a Ray node join, idle since now.
func (w *world) joinAll() {
	for i := range w.kube.cluster.Workers {
		p := &w.kube.cluster.Workers[i]
		known := slices.ContainsFunc(w.ray.nodes, func(n raydemand.Node) bool { return n.Instance == p.Pod })
		if known {
			continue
		}
		g, _ := w.kube.cluster.Group(p.Group)
		p.Running, p.Ready = true, true
		w.ray.nodes = append(w.ray.nodes, raydemand.Node{
			ID: nodeID(p.Pod), Instance: p.Pod, Group: p.Group, Status: raydemand.Idle,
			Total: g.Resources.Clone(), Available: g.Resources.Clone(),
		})
	}
}

// node returns the Ray node of a pod to change it.
func (w *world) node(pod string) *raydemand.Node {
	w.t.Helper()
	for i := range w.ray.nodes {
		if w.ray.nodes[i].Instance == pod {
			return &w.ray.nodes[i]
		}
	}
	w.t.Fatalf("no Ray node of pod %s", pod)
	return nil
}

// busy gives the node work that takes all of it.
func (w *world) busy(pod string) {
	n := w.node(pod)
	n.Status, n.Idle, n.Available = raydemand.Running, 0, raydemand.Bundle{}
	n.Activity = []string{raydemand.ActiveWorkers}
}

// idles ends all work of the node.
func (w *world) idles(pod string) {
	n := w.node(pod)
	n.Status, n.Available, n.Activity, n.Idle = raydemand.Idle, n.Total.Clone(), nil, 0
}

// works makes pods busy for so long that Ray shows what it has placed there.
func (w *world) works(pods ...string) {
	for _, pod := range pods {
		w.busy(pod)
	}
	w.after(100 * time.Millisecond)
	w.after(observe.PlacedShown)
}

// want sets the pending requests.
func (w *world) want(count int64, bundle raydemand.Bundle) {
	w.ray.demand.Requests = nil
	if count > 0 {
		w.ray.demand.Requests = []raydemand.Request{{Bundle: bundle, Count: count}}
	}
}

// group returns the group of that name to change it.
func (w *world) group(name string) *nodepool.WorkerGroup {
	w.t.Helper()
	g, ok := w.kube.cluster.Group(name)
	if !ok {
		w.t.Fatalf("no group %s", name)
	}
	return g
}

func (w *world) pod(i int) string { return w.kube.cluster.Workers[i].Pod }

// nothingWritten fails when the cluster was patched or a node drained.
func (w *world) nothingWritten(why string) {
	w.t.Helper()
	if len(w.kube.changes) > 0 {
		w.t.Errorf("%s: patched %+v", why, w.kube.changes)
	}
	if len(w.ray.drains) > 0 {
		w.t.Errorf("%s: drained %v", why, w.ray.drained())
	}
}

// lastChange returns the only target of the only patch since the last call.
func (w *world) lastChange() nodepool.Target {
	w.t.Helper()
	if len(w.kube.changes) != 1 || len(w.kube.changes[0].Targets) != 1 {
		w.t.Fatalf("want one patch with one target, got %+v", w.kube.changes)
	}
	target := w.kube.changes[0].Targets[0]
	w.kube.changes = nil
	return target
}

// patchedTo fails unless the only patch since the last call has one target, with so many replicas.
func (w *world) patchedTo(replicas int, why string) {
	w.t.Helper()
	if got := w.lastChange(); got.Replicas != replicas {
		w.t.Errorf("target = %+v, want %d replicas: %s", got, replicas, why)
	}
}

// target fails unless this is the only target of the only patch since the last call.
func (w *world) target(want nodepool.Target) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.lastChange()); diff != "" {
		w.t.Errorf("target (-want +got):\n%s", diff)
	}
}

// drains fails unless so many nodes were asked to leave.
func (w *world) drains(count int, why string) {
	w.t.Helper()
	if got := w.ray.drained(); len(got) != count {
		w.t.Fatalf("drained %v, want %d: %s", got, count, why)
	}
}

// emitted fails unless there were so many Events with a reason.
func (w *world) emitted(reason string, count int, why string) {
	w.t.Helper()
	if got := w.kube.emitted(reason); got != count {
		w.t.Errorf("Events %v, want %s %d times: %s", w.kube.events, reason, count, why)
	}
}

func nodeID(pod string) raydemand.NodeID {
	var id raydemand.NodeID
	copy(id[:], pod)
	return id
}

func gpu(n int64) raydemand.Bundle { return raydemand.Bundle{raydemand.GPU: raydemand.Whole(n)} }

// gpuGroup has one GPU per worker.
func gpuGroup(name string, replicas, least, most int) nodepool.WorkerGroup {
	return nodepool.WorkerGroup{Name: name, Resources: raydemand.Bundle{raydemand.CPU: raydemand.Whole(4), raydemand.GPU: raydemand.One},
		Replicas: replicas, Min: least, Max: most}
}
