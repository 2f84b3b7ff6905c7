package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/test/rig"
	"heliostat.dev/heliostat/test/rig/podstore"
)

// startTime is how long a worker takes from its pod to its Ray node.
const startTime = 500 * time.Millisecond

// operator makes and deletes the pods of group burst as KubeRay's operator does, and tells when replicas change.
type operator struct {
	fleet    *fleet
	clusters map[string]*operated
}

// operated is one RayCluster as the operator knows it.
type operated struct {
	index int
	owner podstore.Owner

	mu   sync.Mutex // guards what follows
	pods []string
	made int
	// observed is the newest generation that the operator has acted on.
	observed int64
	replicas int64
	// changed is closed when replicas or pods change.
	changed chan struct{}
}

func (f *fleet) startOperator(ctx context.Context) *operator {
	o := &operator{f, map[string]*operated{}}
	for i, of := range f.owners {
		o.clusters[of.Name] = &operated{index: i, owner: of, changed: make(chan struct{})}
	}
	go o.follow(ctx)
	return o
}

func (o *operator) follow(ctx context.Context) {
	client := o.fleet.objects.Resource(rig.RayClusters)
	for ctx.Err() == nil {
		watch, err := client.Watch(ctx, metav1.ListOptions{})
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		for event := range watch.ResultChan() {
			cluster, isCluster := event.Object.(*unstructured.Unstructured)
			if !isCluster {
				break
			}
			if c := o.clusters[cluster.GetName()]; c != nil && c.news(cluster) {
				go o.reconcile(ctx, c, cluster)
			}
		}
		watch.Stop()
	}
}

// news notes the replicas of a RayCluster, and reports whether the operator must act.
func (c *operated) news(cluster *unstructured.Unstructured) bool {
	replicas, _, err := replicasOf(cluster)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.observed == 0
	if cluster.GetGeneration() <= c.observed {
		return false
	}
	c.observed, c.replicas = cluster.GetGeneration(), replicas
	c.tell()
	return !first
}

// tell wakes those that wait. The caller holds mu.
func (c *operated) tell() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// until waits until a condition holds, and reports false if ctx ended first.
func (c *operated) until(ctx context.Context, holds func(replicas int64, pods int) bool) bool {
	for {
		c.mu.Lock()
		done, changed := holds(c.replicas, len(c.pods)), c.changed
		c.mu.Unlock()
		if done {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// reconcile deletes the named pods, makes the missing ones, and says which generation it has seen.
func (o *operator) reconcile(ctx context.Context, c *operated, cluster *unstructured.Unstructured) {
	replicas, named, err := replicasOf(cluster)
	if err == nil {
		err = o.act(ctx, c, replicas, named)
	}
	if err == nil {
		status := fmt.Sprintf(`{"status":{"observedGeneration":%d}}`, cluster.GetGeneration())
		client := o.fleet.objects.Resource(rig.RayClusters).Namespace(o.fleet.space(c.index).name)
		_, err = client.Patch(ctx, c.owner.Name, types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func (o *operator) act(ctx context.Context, c *operated, replicas int64, named []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.tell()
	storage := o.fleet.space(c.index).storage
	for _, pod := range named {
		at := slices.Index(c.pods, pod)
		if at < 0 {
			continue
		}
		c.pods = slices.Delete(c.pods, at, at+1)
		if err := storage.Remove(ctx, pod); err != nil {
			return err
		}
		if err := o.fleet.heads.do(order{Do: "leave", Cluster: c.index, Pod: pod}); err != nil {
			return err
		}
	}
	for int64(len(c.pods)) < replicas {
		c.made++
		pod, ip := fmt.Sprintf("%s-burst-%d", c.owner.Name, c.made), workerAddress(c.index, 60+c.made%190)
		running := o.fleet.nodes.bind(storage.Running(c.owner, "worker", burst, pod, ip), c.index, 60+c.made)
		if err := storage.Add(ctx, running); err != nil {
			return err
		}
		c.pods = append(c.pods, pod)
		time.AfterFunc(startTime, func() {
			if err := o.fleet.heads.do(
				order{Do: "join", Cluster: c.index, Pod: pod, IP: ip},
			); err != nil &&
				ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, err)
			}
		})
	}
	return nil
}
