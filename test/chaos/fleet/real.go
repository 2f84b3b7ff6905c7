package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"

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
}

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
	last := map[string]verdict.Worker{}
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
		spent := map[string]int64{}
		for pod, worker := range last {
			if _, alive := living[pod]; !alive || worker.Draining {
				spent[CPUGroup]++
			}
		}
		last = living
		waits, smallest := waiting(state)
		m.fleet.see(answer(m.Name, state))
		m.fleet.see(
			verdict.State{At: now, Cluster: m.Name, Workers: living, Waiting: waits, Smallest: smallest, Spent: spent})
	}
}

// Work submits a random task that ends by itself.
func (m *Real) Work(random *rand.Rand) error {
	m.next++
	seconds := 1 + 6*random.Float64()
	return m.driver.Do(rig.Command{Do: "task", ID: fmt.Sprint("task-", m.next), CPUs: 1, Seconds: seconds})
}

// Hold starts an actor that runs until Release.
func (m *Real) Hold() error {
	m.next++
	id := fmt.Sprint("actor-", m.next)
	m.held = append(m.held, id)
	return m.driver.Do(rig.Command{Do: "actor", ID: id, CPUs: 1})
}

// Release ends the actors of Hold.
func (m *Real) Release() error {
	var err error
	for _, id := range m.held {
		err = errors.Join(err, m.driver.Do(rig.Command{Do: "release", ID: id}))
	}
	m.held = nil
	return err
}

// Close ends the driver and the observer.
func (m *Real) Close() error {
	m.stop()
	m.tasks.Wait()
	m.driver.Kill()
	return m.conn.Close()
}
