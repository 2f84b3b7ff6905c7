package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/test/chaos/verdict"
	"heliostat.dev/heliostat/test/rig"
)

// RealReplicas is the maximum of the only group of a RayCluster on a real Ray. Its processes share the machine.
const RealReplicas = 2

// realMachine is the node of the dev cluster whose pods are processes.
const realMachine = "cpu-0"

// Real is a RayCluster on a real Ray, among the RayClusters of a fleet. Its head cannot lie, but it is under all faults
// of what they share, and a driver reports work that is lost.
type Real struct {
	Name   string
	fleet  *Fleet
	driver *rig.Driver
	conn   *grpc.ClientConn
	tasks  sync.WaitGroup
	stop   context.CancelFunc
	next   int
	held   []string
	// submitted is how many tasks and actors the driver has been asked for.
	submitted int
	// starts: a pod has not joined Ray yet.
	starts atomic.Bool
}

// RealBacklog is how much work a RayCluster on a real Ray has at most. Its tasks end in the calm after a storm: a
// worker takes up to 10 s to start on a busy machine, two workers then need 3 × 7 s, and a drained one 3 s idle time
// and 5 s until its container has ended.
const RealBacklog = 3 * RealReplicas

// AddReal makes a RayCluster on a real Ray.
func (f *Fleet) AddReal(ctx context.Context, r *rig.Rig, i int) (*Real, error) {
	m := &Real{Name: fmt.Sprintf("real-%d", i), fleet: f}
	real := map[string]string{corev1.LabelHostname: realMachine}
	manifest := rig.Cluster{Namespace: f.Namespace, Name: m.Name, IdleSeconds: IdleSeconds, HeadNodes: real,
		Groups: []rig.Group{{Name: CPUGroup, Max: RealReplicas, NodeSelector: real}}}
	if err := r.Create(ctx, manifest.Manifest()); err != nil {
		return nil, err
	}
	if err := r.HeadAlive(ctx, f.Namespace, m.Name); err != nil {
		return nil, err
	}
	address, err := r.Head(ctx, f.Namespace, m.Name)
	if err != nil {
		return nil, err
	}
	if m.conn, err = grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		return nil, fmt.Errorf("connecting to the head of %s: %w", m.Name, err)
	}
	label := f.Namespace + "-" + m.Name
	if m.driver, err = r.Driver(ctx, f.Namespace, m.Name, label); err != nil {
		return nil, errors.Join(err, m.conn.Close())
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.stop = stop
	m.tasks.Go(func() { m.observe(running) })
	return m, nil
}

// observe reports the state of the head, and work that the driver lost.
func (m *Real) observe(ctx context.Context) {
	client := autoscalerpb.NewAutoscalerStateServiceClient(m.conn)
	joined := map[string]bool{}
	lost := 0
	for ; ctx.Err() == nil; pause(ctx, 200*time.Millisecond) {
		for _, e := range m.driver.Lost()[lost:] {
			lost++
			m.fleet.see(
				verdict.End{At: e.At, Cluster: m.Name, Group: CPUGroup, Pod: e.Pod, Cause: verdict.Deleted, Busy: true},
			)
		}
		reply, err := client.GetClusterStatus(ctx, &autoscalerpb.GetClusterStatusRequest{})
		if err != nil {
			continue
		}
		now, state := time.Now(), reply.GetClusterResourceState()
		living := workers(state)
		pods, err := m.fleet.kubelet.list(
			labels.SelectorFromSet(labels.Set{"ray.io/cluster": m.Name, "ray.io/node-type": "worker"}))
		if err != nil {
			continue
		}
		spent := map[string]int64{CPUGroup: spentOf(pods, living, joined)}
		m.starts.Store(start(pods, joined))
		waits, smallest := waiting(state)
		m.fleet.see(answer(m.Name, state))
		m.fleet.see(
			verdict.State{At: now, Cluster: m.Name, Workers: living, Waiting: waits, Smallest: smallest, Spent: spent})
	}
}

// spentOf counts the pods that can take no work: their Ray node drains or has ended, or they are ending, which it marks
// in living. It keeps in joined the pods that have had a Ray node.
func spentOf(pods []*corev1.Pod, living map[string]verdict.Worker, joined map[string]bool) (spent int64) {
	for pod := range living {
		joined[pod] = true
	}
	exists := map[string]bool{}
	for _, pod := range pods {
		exists[pod.Name] = true
		w, alive := living[pod.Name]
		if alive && pod.DeletionTimestamp != nil {
			w.Ending = true
			living[pod.Name] = w
		}
		if joined[pod.Name] && !alive || w.Draining || pod.DeletionTimestamp != nil {
			spent++
		}
	}
	maps.DeleteFunc(joined, func(pod string, _ bool) bool { _, alive := living[pod]; return !alive && !exists[pod] })
	return spent
}

// start reports whether a pod will have its first Ray node.
func start(pods []*corev1.Pod, joined map[string]bool) bool {
	return slices.ContainsFunc(pods,
		func(pod *corev1.Pod) bool { return !joined[pod.Name] && pod.DeletionTimestamp == nil })
}

// Work submits a random task that ends by itself, unless there is much work already.
func (m *Real) Work(random *rand.Rand) error {
	seconds := 1 + 6*random.Float64()
	if outstanding(m.submitted, m.driver.Events()) >= RealBacklog {
		return nil
	}
	m.next++
	return m.submit(rig.Command{Do: "task", ID: fmt.Sprint("task-", m.next), CPUs: 1, Seconds: seconds})
}

// Hold starts an actor that runs until Release.
func (m *Real) Hold() error {
	m.next++
	id := fmt.Sprint("actor-", m.next)
	m.held = append(m.held, id)
	return m.submit(rig.Command{Do: "actor", ID: id, CPUs: 1})
}

// submit reports the work that there will be, and then asks the driver for it. A head is read every 200 ms, which may
// be later than Heliostat's decision, and no decision may be seen before the demand that it knows.
func (m *Real) submit(c rig.Command) error {
	m.submitted++
	m.fleet.see(verdict.Answer{At: time.Now(), Cluster: m.Name,
		Demand: map[string]int64{CPUGroup: outstanding(m.submitted, m.driver.Events())}})
	return m.driver.Do(c)
}

// outstanding is how much of the submitted work has not ended, as far as the driver says. Each piece needs a worker.
func outstanding(submitted int, events []rig.Event) int64 {
	left := int64(submitted)
	for _, e := range events {
		switch e.Event {
		case "done", "released", "lost":
			left--
		}
	}
	return left
}

// Release ends the actors of Hold. It first calls those that run: Ray tells nobody that an idle actor is lost.
func (m *Real) Release(ctx context.Context) error {
	var err error
	for _, id := range m.held {
		lost := false
		if m.runs(id) {
			err = errors.Join(err, m.driver.Do(rig.Command{Do: "ask", ID: id}))
			asked, cancel := context.WithTimeout(ctx, 10*time.Second)
			_, answered := m.driver.Wait(asked, id, "answered")
			cancel()
			if lost = errors.Is(answered, rig.ErrLost); !lost {
				err = errors.Join(err, answered)
			}
		}
		if !lost {
			err = errors.Join(err, m.driver.Do(rig.Command{Do: "release", ID: id}))
		}
	}
	m.held = nil
	return err
}

// runs reports whether an actor has started.
func (m *Real) runs(id string) bool {
	return slices.ContainsFunc(m.driver.Events(), func(e rig.Event) bool { return e.ID == id && e.Event == "running" })
}

// Worked reports whether all tasks have ended, the actors of Hold run, and no pod starts: Heliostat keeps such a pod
// until it has joined Ray or its container has ended, which takes a minute and more on a busy machine.
func (m *Real) Worked() bool {
	events := m.driver.Events()
	return !m.starts.Load() && outstanding(m.submitted, events) <= int64(len(m.held)) &&
		!slices.ContainsFunc(m.held, func(id string) bool { return !m.runs(id) })
}

// Close ends the driver and the observer.
func (m *Real) Close() error {
	m.stop()
	m.tasks.Wait()
	m.driver.Kill()
	return m.conn.Close()
}
