package neighbours

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/devcluster/nodeagent"
	"heliostat.dev/heliostat/test/rig"
)

// machines is a dev cluster in which Karpenter launches nodes that run real Ray. All scenarios share it.
type machines struct {
	*testing.T
	*rig.Rig
	heliostat *rig.Heliostat
	began     time.Time
}

// workload is a RayCluster with a group on each of some NodePools, a driver, and the record of what happened.
type workload struct {
	*machines
	name    string
	driver  *rig.Driver
	journal *rig.Journal
}

// startMachines starts a dev cluster with Karpenter and Heliostat, and stops it after the last scenario.
func startMachines(t *testing.T, arguments ...string) *machines {
	t.Helper()
	m := &machines{T: t, began: time.Now()}
	gpus := func(n string) map[string]string {
		return map[string]string{"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": n}
	}
	var err error
	m.Rig, err = rig.Start(t.Context(), rig.Options{
		Out: os.Stderr, AdoptNodes: true,
		Nodes: []nodeagent.NodeSpec{{Name: "heads", Labels: map[string]string{"heads": "yes"},
			Taints:   []corev1.Taint{{Key: "heads", Effect: corev1.TaintEffectPreferNoSchedule}},
			Capacity: map[string]string{"cpu": "64", "memory": "64Gi"}}},
		InstanceTypes: []devcluster.InstanceType{
			{Name: "one", Resources: gpus("1"), Offers: []devcluster.Offer{{Price: 1}, {CapacityType: "spot", Price: 0.4}}},
			{Name: "two", Resources: gpus("2"), Offers: []devcluster.Offer{{Price: 1.9}, {CapacityType: "spot", Price: 0.7}}},
		},
	})
	must(t, err)
	t.Cleanup(func() { m.stop(t) })
	must(t, rig.InstallCRDs(t.Context(), m.Dynamic))
	must(t, m.Cluster.AddNodeClass(t.Context(), "machine", "2s"))
	if m.heliostat, err = m.Serve(t.Context(), append([]string{"--log-level", "debug"}, arguments...)...); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machines) stop(t *testing.T) { stopLab(t, m.Rig, m.heliostat) }

// scenario runs a scenario beside the others.
func (m *machines) scenario(t *testing.T, name string, do func(*machines)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		do(&machines{T: t, Rig: m.Rig, heliostat: m.heliostat, began: m.began})
	})
}

// say logs a message with the time since the start.
func (m *machines) say(format string, args ...any) {
	m.Helper()
	m.Logf("%7.2fs %s", time.Since(m.began).Seconds(), fmt.Sprintf(format, args...))
}

// workload creates a RayCluster with a group of workers with one GPU on each of these NodePools, and connects a driver.
// Groups have the names of their pools, and a Ray resource of that name keeps the work of one from the others.
func (m *machines) workload(cluster rig.Cluster, most, replicas int64, pools ...devcluster.NodePool) *workload {
	m.Helper()
	w := &workload{machines: m, name: cluster.Name, journal: rig.NewJournal(nil)}
	for _, pool := range pools {
		pool.Class, pool.Labels = "machine", map[string]string{"pool": pool.Name}
		must(m, m.Cluster.AddNodePool(m.Context(), pool))
		cluster.Groups = append(cluster.Groups, rig.Group{Name: pool.Name, Max: most, Replicas: replicas,
			NodeSelector: pool.Labels,
			Params:       map[string]string{"num-cpus": "0", "resources": fmt.Sprintf(`'{"%s": 2}'`, pool.Name)},
			Devices:      map[string]int64{"nvidia.com/gpu": 1}})
	}
	cluster.Namespace = w.name
	cluster.HeadNodes, cluster.NoTolerations = map[string]string{"heads": "yes"}, true
	m.Observe(m.Context(), w.name, w.name, w.journal)
	m.ObserveMachines(m.Context(), w.name, w.name, w.journal)
	must(m, errors.Join(m.Create(m.Context(), cluster.Manifest()), m.HeadAlive(m.Context(), w.name, w.name)))
	var err error
	if w.driver, err = m.Driver(m.Context(), w.name, w.name, w.name); err != nil {
		m.Fatal(err)
	}
	m.Cleanup(w.driver.Kill)
	return w
}

// task submits a task that Ray does not retry, for workers on a NodePool. Zero seconds mean until end.
func (w *workload) task(id, pool string, gpus, seconds float64) {
	w.Helper()
	command := rig.Command{Do: "task", ID: id, GPUs: gpus, Seconds: seconds, Resources: map[string]float64{pool: gpus}}
	must(w, w.driver.Do(command))
}

// end lets a task end: with finish by itself, with release by a cancellation.
func (w *workload) end(how, id string) {
	w.Helper()
	must(w, w.driver.Do(rig.Command{Do: how, ID: id}))
}

// wait waits for an event of a task. It returns the pod that the event is about.
func (w *workload) wait(id, event string) rig.Event {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	e, err := w.driver.Wait(ctx, id, event)
	must(w, err)
	w.say("%s %s: %s", w.name, event, strings.TrimSpace(id+" "+e.Pod))
	return e
}

// until calls check until it returns no error.
func (w *workload) until(what string, check func(context.Context) error) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for err := check(ctx); err != nil; err = check(ctx) {
		select {
		case <-ctx.Done():
			w.Fatalf("not within %v: %s: %v", patience, what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	w.say("%s: %s", w.name, what)
}

// served fails the test if a task of a pool was lost or ran twice. Its tasks have names that begin like the pool.
func (w *workload) served(pool string) {
	w.Helper()
	for _, problem := range w.driver.Unserved() {
		if strings.HasPrefix(problem, pool) {
			w.Errorf("%s: %s", w.name, problem)
		}
	}
}

// reclaim deletes the NodeClaim of a pod's node.
func (w *workload) reclaim(pod string) (node string) {
	w.Helper()
	node, err := w.DeleteNodeClaim(w.Context(), w.name, pod)
	must(w, err)
	w.say("%s: the NodeClaim of node %s is deleted", w.name, node)
	return node
}

func TestMain(m *testing.M) {
	rig.Quiet()
	// Scenarios of one dev cluster spend most of their time waiting, so all of them run in parallel on any number of
	// cores.
	if err := flag.Set("test.parallel", "16"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
