package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/test/rig"
)

// quietFor is how long nothing may change in steps in which Heliostat must do nothing. It acts on demand within a
// second.
const quietFor = idleSeconds*time.Second + 3*time.Second

// step is a step of the short form of the loop. Its name is a heading of the table. run returns the time that counts.
type step struct {
	name string
	run  func(context.Context, *trial) (time.Duration, error)
}

// steps are the steps in order; each relies on those before it.
var steps = []step{
	{"head starts", startHead},
	{"demand to patch", patched},
	{"patch to work", joined},
	{"end of work to drained and gone", drained},
	{"request kept, then gone", requested},
	{"freeze, then patch", frozen},
}

// startHead creates the RayCluster and connects a driver. It takes until the head is alive.
func startHead(ctx context.Context, t *trial) (time.Duration, error) {
	began := time.Now()
	t.rig.Observe(t.observing, namespace, name, t.journal)
	cluster := rig.Cluster{
		Namespace: namespace, Name: name, Ray: t.Ray, IdleSeconds: idleSeconds,
		Groups: []rig.Group{{Name: group, Max: 2, Devices: map[string]int64{"nvidia.com/gpu": 1}}},
	}
	if err := t.rig.Create(ctx, cluster.Manifest()); err != nil {
		return 0, err
	}
	if err := t.rig.HeadAlive(ctx, namespace, name); err != nil {
		return 0, err
	}
	took := time.Since(began)
	var err error
	if t.driver, err = t.rig.Driver(ctx, namespace, name, "driver"); err != nil {
		return 0, err
	}
	go rig.FollowDriver(t.observing, t.driver, t.journal)
	return took, nil
}

// patched submits a task that needs a GPU. It takes from the moment at which the GCS reports the demand until
// Heliostat has patched the group.
func patched(ctx context.Context, t *trial) (time.Duration, error) {
	if err := t.driver.Do(rig.Command{Do: "task", ID: "first", GPUs: 1}); err != nil {
		return 0, err
	}
	seen, err := t.fact(ctx, 0, "Ray to report the demand", func(f rig.Fact) bool { return f.Stage == rig.DemandSeen })
	if err != nil {
		return 0, err
	}
	grown, err := t.fact(ctx, 0, "the group to grow", toReplicas(1))
	return max(0, grown.At.Sub(seen.At)), err
}

// joined takes from the patch until the task runs on the new worker.
func joined(ctx context.Context, t *trial) (time.Duration, error) {
	ran, err := t.driver.Wait(ctx, "first", "running")
	if err != nil {
		return 0, err
	}
	if workers := t.workers(); len(workers) != 1 || workers[0] != ran.Pod {
		return 0, fmt.Errorf("the task runs on %q, and the workers are %v", ran.Pod, workers)
	}
	grown, err := t.fact(ctx, 0, "the group to grow", toReplicas(1))
	return ran.At.Sub(grown.At), err
}

// drained ends the task. It takes until the worker is gone, after the idle time-out and a drain.
func drained(ctx context.Context, t *trial) (time.Duration, error) {
	began := time.Now()
	if err := t.release(ctx, "first"); err != nil {
		return 0, err
	}
	err := t.empty(ctx)
	return time.Since(began), err
}

// requested requests a GPU over REST, sees that its worker stays idle beyond the idle time-out, and withdraws the
// request. It takes from then until the worker is gone.
func requested(ctx context.Context, t *trial) (time.Duration, error) {
	if err := t.call(ctx, http.MethodPost, `{"bundles": [{"GPU": 1}]}`); err != nil {
		return 0, err
	}
	if err := t.join(ctx, 2); err != nil {
		return 0, err
	}
	if err := t.quiet(ctx, "a request keeps the worker"); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := t.call(ctx, http.MethodDelete, ""); err != nil {
		return 0, err
	}
	err := t.empty(ctx)
	return time.Since(began), err
}

// frozen freezes the RayCluster before a task is submitted, sees that nothing is patched, and takes the freeze away. It
// takes from then until the group is patched. The task must run, and its worker go, as without a freeze.
func frozen(ctx context.Context, t *trial) (time.Duration, error) {
	if err := t.freeze(ctx, `"true"`); err != nil {
		return 0, err
	}
	before := len(t.journal.Facts())
	if err := t.driver.Do(rig.Command{Do: "task", ID: "second", GPUs: 1}); err != nil {
		return 0, err
	}
	_, err := t.fact(
		ctx,
		before,
		"Ray to report the demand",
		func(f rig.Fact) bool { return f.Stage == rig.DemandSeen },
	)
	if err != nil {
		return 0, err
	}
	if err := t.quiet(ctx, "the RayCluster is frozen"); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := t.freeze(ctx, "null"); err != nil {
		return 0, err
	}
	grown, err := t.fact(ctx, before, "the group to grow", toReplicas(1))
	if err != nil {
		return 0, err
	}
	if _, err := t.driver.Wait(ctx, "second", "running"); err != nil {
		return 0, err
	}
	if err := t.release(ctx, "second"); err != nil {
		return 0, err
	}
	return max(0, grown.At.Sub(began)), t.empty(ctx)
}

// fact waits for the first fact after the given number of facts.
func (t *trial) fact(ctx context.Context, after int, what string, is func(rig.Fact) bool) (fact rig.Fact, err error) {
	err = t.journal.Wait(ctx, what, func(facts []rig.Fact) (ok bool) {
		fact, ok = rig.First(facts[after:], is)
		return ok
	})
	return fact, err
}

// toReplicas recognizes a patch that raises the group to n replicas.
func toReplicas(n int64) func(rig.Fact) bool {
	return func(f rig.Fact) bool {
		return f.Stage == rig.GroupPatched && f.Group == group && f.From < n && f.To == n
	}
}

// workers returns the pods of the group that exist.
func (t *trial) workers() []string { return rig.Living(t.journal.Facts(), group) }

// join waits until the group has had the given number of workers in all, and the last one is alive in Ray.
func (t *trial) join(ctx context.Context, workers int) error {
	return t.journal.Wait(ctx, "a worker to join", func(facts []rig.Fact) bool {
		pods := rig.Pods(facts, group)
		if len(pods) != workers {
			return false
		}
		_, alive := rig.OfPod(facts, pods[workers-1], rig.NodeAlive)
		return alive
	})
}

// release ends a task.
func (t *trial) release(ctx context.Context, id string) error {
	if err := t.driver.Do(rig.Command{Do: "release", ID: id}); err != nil {
		return err
	}
	_, err := t.driver.Wait(ctx, id, "released")
	return err
}

// empty waits until no worker is left, and returns an error if the operator stopped one before Ray had drained it, or
// if the group keeps replicas.
func (t *trial) empty(ctx context.Context) error {
	err := t.journal.Wait(
		ctx,
		"the worker to go",
		func(facts []rig.Fact) bool { return len(rig.Living(facts, group)) == 0 },
	)
	if err != nil {
		return err
	}
	if early := rig.StoppedUndrained(t.journal.Facts(), group); len(early) > 0 {
		return fmt.Errorf("workers %v were stopped before Ray had drained them", early)
	}
	object, err := t.rig.Dynamic.Resource(rig.RayClusters).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the RayCluster: %w", err)
	}
	if n := rig.Replicas(object)[group]; n != 0 {
		return fmt.Errorf("no worker is left, and the group keeps %d replicas", n)
	}
	return nil
}

// quiet returns an error if for a while a group is patched, or a pod created or stopped.
func (t *trial) quiet(ctx context.Context, why string) error {
	before := len(t.journal.Facts())
	select {
	case <-time.After(quietFor):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var errs []error
	for _, f := range t.journal.Facts()[before:] {
		if f.Stage == rig.GroupPatched || f.Stage == rig.PodCreated || f.Stage == rig.PodStopping {
			errs = append(errs, fmt.Errorf("%s, but %s %s %s", why, f.Stage, f.Group+f.Pod, f.Detail))
		}
	}
	return errors.Join(errs...)
}

// call sends a request for resources to Heliostat.
func (t *trial) call(ctx context.Context, method, body string) error {
	status, answer, err := t.heliostat.Call(ctx, method, rig.RequestPath(namespace, name), body)
	if err == nil && status >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s request_resources: status %d: %s", method, status, answer)
	}
	return err
}

// freeze sets the annotation that freezes the RayCluster to a JSON value; null removes it.
func (t *trial) freeze(ctx context.Context, value string) error {
	patch := []byte(`{"metadata": {"annotations": {"heliostat.dev/freeze": ` + value + `}}}`)
	_, err := t.rig.Dynamic.Resource(rig.RayClusters).Namespace(namespace).
		Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("freezing the RayCluster: %w", err)
	}
	return nil
}
