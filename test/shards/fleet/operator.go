package fleet

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/rig"
	"heliostat.dev/heliostat/test/rig/podstore"
	"heliostat.dev/heliostat/test/simray"
)

// startTime is how long a worker takes from its pod to its Ray node, and retryAfter the pause after a failed call.
const (
	startTime  = 500 * time.Millisecond
	retryAfter = 300 * time.Millisecond
)

// cluster is one RayCluster as the operator knows it.
type cluster struct {
	index int
	owner podstore.Owner
	ip    string
	head  *simray.Head

	mu sync.Mutex // guards what follows
	// newest is the newest generation that was seen, and acting whether a goroutine acts on it.
	newest *unstructured.Unstructured
	acting bool
	pods   []string
	made   int
	nodes  map[string]raydemand.NodeID
}

// follow acts on all changes of RayClusters. A watch that ends is opened again.
func (f *Fleet) follow(ctx context.Context) {
	clusters := f.objects.Resource(rig.RayClusters).Namespace(Namespace)
	for ; ctx.Err() == nil; pause(ctx, retryAfter) {
		w, err := clusters.Watch(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for event := range w.ResultChan() {
			object, is := event.Object.(*unstructured.Unstructured)
			if !is {
				break
			}
			if c := f.byName[object.GetName()]; c != nil && c.news(object) {
				f.tasks.Go(func() { f.reconcile(ctx, c) })
			}
		}
		w.Stop()
	}
}

// news notes a state of the RayCluster, and reports whether somebody must begin to act.
func (c *cluster) news(object *unstructured.Unstructured) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.newest != nil && object.GetGeneration() <= c.newest.GetGeneration() {
		return false
	}
	c.newest = object
	begins := !c.acting
	c.acting = true
	return begins
}

// reconcile acts on the newest state until it has acted on all.
func (f *Fleet) reconcile(ctx context.Context, c *cluster) {
	for ctx.Err() == nil {
		c.mu.Lock()
		object := c.newest
		c.mu.Unlock()
		if err := f.act(ctx, c, object); err != nil {
			pause(ctx, retryAfter) // the API server restarts
			continue
		}
		c.mu.Lock()
		done := c.newest == object
		c.acting = !done
		c.mu.Unlock()
		if done {
			return
		}
	}
}

// act deletes the named pods, makes the missing ones, and says which generation it has seen.
func (f *Fleet) act(ctx context.Context, c *cluster, object *unstructured.Unstructured) error {
	replicas, named, err := replicasOf(object)
	if err != nil {
		return err
	}
	if err := f.scale(ctx, c, replicas, named); err != nil {
		return err
	}
	status := fmt.Sprintf(`{"status":{"observedGeneration":%d}}`, object.GetGeneration())
	_, err = f.objects.Resource(rig.RayClusters).Namespace(Namespace).Patch(ctx, c.owner.Name, types.MergePatchType,
		[]byte(status), metav1.PatchOptions{}, "status")
	return err
}

// scale brings the pods in line with replicas.
func (f *Fleet) scale(ctx context.Context, c *cluster, replicas int64, named []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pod := range named {
		at := slices.Index(c.pods, pod)
		if at < 0 {
			continue
		}
		if err := f.pods.Remove(ctx, pod); err != nil {
			return err
		}
		c.pods = slices.Delete(c.pods, at, at+1)
		if id, joined := c.nodes[pod]; joined {
			delete(c.nodes, pod)
			c.head.KillNode(id)
			c.head.Forget()
		}
	}
	for int64(len(c.pods)) < replicas {
		c.made++
		pod := fmt.Sprintf("%s-%d", c.owner.Name, c.made)
		ip := fmt.Sprintf("10.%d.%d.%d", c.index>>8, c.index&255, 1+c.made%250)
		if err := f.pods.Add(ctx, f.pods.Running(c.owner, "worker", group, pod, ip)); err != nil {
			return err
		}
		c.pods = append(c.pods, pod)
		f.tasks.Go(func() { c.join(ctx, pod, ip) })
	}
	return nil
}

// join lets the Ray node of a pod join, if the pod is still there.
func (c *cluster) join(ctx context.Context, pod, ip string) {
	pause(ctx, startTime)
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.pods, pod) {
		c.nodes[pod] = c.head.AddNode(simray.Node{Instance: pod, Group: group, IP: ip,
			Resources: raydemand.Bundle{raydemand.CPU: raydemand.One, group: raydemand.One}})
	}
}

// replicasOf returns the replicas of the group and the pods that it names for deletion.
func replicasOf(object *unstructured.Unstructured) (replicas int64, named []string, err error) {
	groups, _, err := unstructured.NestedSlice(object.Object, "spec", "workerGroupSpecs")
	if err != nil || len(groups) != 1 {
		return 0, nil, fmt.Errorf("RayCluster %s has %d groups, want 1: %w", object.GetName(), len(groups), err)
	}
	only, _ := groups[0].(map[string]any)
	if replicas, _, err = unstructured.NestedInt64(only, "replicas"); err != nil {
		return 0, nil, err
	}
	named, _, err = unstructured.NestedStringSlice(only, "scaleStrategy", "workersToDelete")
	return replicas, named, err
}

// pause waits, or returns when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
