// Command warmnodes measures what a node that is ready is worth: the time from .remote() to the Ray node of the worker
// that the task needs, and the minutes of machines that were paid for, with and without warm nodes. Ray, KubeRay and
// Karpenter are real; the machines are not, and take DELAY (60s) to start.
//
// A round has TRIALS tasks (3), one after the other. Each works for 20 s, and the next one comes QUIET (3m) later, when
// Karpenter has removed the machine. Both rounds are equally long, so their machine-minutes can be compared.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/devcluster/nodeagent"
	"heliostat.dev/heliostat/test/rig"
)

const (
	group = "gpu"
	// works is how long a task runs. patience bounds the start of its worker.
	works    = 20 * time.Second
	patience = 5 * time.Minute
	// idleSeconds is short, so that the machine of a task is not paid for long after it.
	idleSeconds = 5
)

func main() { rig.Main(run) }

func run(ctx context.Context) (err error) {
	delay, quiet := cmp.Or(os.Getenv("DELAY"), "60s"), 3*time.Minute
	if text := os.Getenv("QUIET"); text != "" {
		if quiet, err = time.ParseDuration(text); err != nil {
			return fmt.Errorf("reading QUIET: %w", err)
		}
	}
	trials := 3
	if text := os.Getenv("TRIALS"); text != "" {
		if trials, err = strconv.Atoi(text); err != nil || trials < 1 {
			return fmt.Errorf("reading TRIALS: %q: want a whole number from 1", text)
		}
	}
	r, err := rig.Start(ctx, rig.Options{Out: os.Stdout, AdoptNodes: true,
		Nodes: []nodeagent.NodeSpec{{Name: "heads", Labels: map[string]string{"heads": "yes"},
			Capacity: map[string]string{"cpu": "64", "memory": "64Gi"}}},
		InstanceTypes: []devcluster.InstanceType{{Name: "one-gpu", Price: 1,
			Resources: map[string]string{"cpu": "8", "memory": "8Gi", "nvidia.com/gpu": "1"}}}})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err = errors.Join(err, r.Stop(ctx))
	}()
	err = errors.Join(r.Cluster.AddNodeClass(ctx, "machine", delay), r.Cluster.AddNodePool(ctx, devcluster.NodePool{
		Name: group, Class: "machine", Types: []string{"one-gpu"}, Labels: map[string]string{"pool": group},
		ConsolidateAfter: "10s"}))
	if err != nil {
		return err
	}
	heliostat, err := r.Serve(ctx, "--warm-nodes")
	if err != nil {
		return err
	}
	defer heliostat.Kill()
	fmt.Printf("\nmachines that start in %s; %d tasks of %s, %s apart\n", delay, trials, works, quiet)
	without, err := round(ctx, r, "without", "", trials, quiet)
	if err != nil {
		return err
	}
	with, err := round(ctx, r, "with", `{"keepWarmNodes": [{"group": "`+group+`", "count": 1}]}`, trials, quiet)
	if err != nil {
		return err
	}
	fmt.Printf("\n%-20s  %-28s  %s\n", "warm nodes", ".remote() to Ray node alive", "machine-minutes paid")
	without.print("none")
	with.print("one")
	// The median, because a task without a warm node may find the machine of the task before it.
	if median(with.took) >= median(without.took) {
		return errors.New("a worker with a warm node came no sooner than one without")
	}
	return nil
}

// result is what one round measured.
type result struct {
	took []time.Duration // of each task
	paid time.Duration
	over time.Duration // how long the round was
}

func (r result) print(name string) {
	var each []string
	for _, took := range r.took {
		each = append(each, fmt.Sprintf("%.1f s", took.Seconds()))
	}
	fmt.Printf("%-20s  %-28s  %.1f in %.1f min\n", name, strings.Join(each, ", "), r.paid.Minutes(), r.over.Minutes())
}

// round runs the tasks on a RayCluster of its own.
func round(ctx context.Context, r *rig.Rig, name, policy string, trials int, quiet time.Duration) (result, error) {
	cluster := rig.Cluster{Namespace: name, Name: name, IdleSeconds: idleSeconds, NoTolerations: true,
		HeadNodes: map[string]string{"heads": "yes"}, Groups: []rig.Group{{Name: group, Max: 2,
			Params: map[string]string{"num-cpus": "0"}, Devices: map[string]int64{"nvidia.com/gpu": 1},
			NodeSelector: map[string]string{"pool": group}}}}
	if policy != "" {
		cluster.Annotations = map[string]string{"heliostat.dev/capacity-policy": policy}
	}
	if err := r.Create(ctx, cluster.Manifest()); err != nil {
		return result{}, err
	}
	if err := r.HeadAlive(ctx, name, name); err != nil {
		return result{}, err
	}
	driver, err := r.Driver(ctx, name, name, name)
	if err != nil {
		return result{}, err
	}
	defer driver.Kill()
	journal := rig.NewJournal(nil)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	r.Observe(watching, name, name, journal)
	r.ObserveMachines(watching, name, name, journal)

	var measured result
	began := time.Now()
	for n := range trials {
		if err := rest(ctx, began.Add(time.Duration(n+1)*quiet)); err != nil {
			return result{}, err
		}
		took, err := trial(ctx, driver, journal, fmt.Sprintf("%s-%d", name, n))
		if err != nil {
			return result{}, fmt.Errorf("task %d, %s warm nodes: %w", n+1, name, err)
		}
		fmt.Printf("  %s warm nodes: alive %.1f s after .remote()\n", name, took.Seconds())
		measured.took = append(measured.took, took)
	}
	if err := rest(ctx, began.Add(time.Duration(trials+1)*quiet)); err != nil {
		return result{}, err
	}
	ended := time.Now()
	measured.over, measured.paid = ended.Sub(began), paid(journal.Facts(), began, ended)
	return measured, nil
}

// trial submits a task and returns when its worker's Ray node was alive, since .remote().
func trial(ctx context.Context, driver *rig.Driver, journal *rig.Journal, id string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := driver.Do(rig.Command{Do: "task", ID: id, GPUs: 1}); err != nil {
		return 0, err
	}
	submitted, err := driver.Wait(ctx, id, "submitted")
	if err != nil {
		return 0, err
	}
	alive := func(f rig.Fact) bool { return f.Stage == rig.NodeAlive && f.Group == group && f.At.After(submitted.At) }
	err = journal.Wait(ctx, "the worker", func(facts []rig.Fact) bool { return slices.ContainsFunc(facts, alive) })
	if err != nil {
		return 0, err
	}
	joined, _ := rig.First(journal.Facts(), alive)
	if _, err := driver.Wait(ctx, id, "running"); err != nil {
		return 0, err
	}
	if err := rest(ctx, time.Now().Add(works)); err != nil {
		return 0, err
	}
	return joined.At.Sub(submitted.At), driver.Do(rig.Command{Do: "release", ID: id})
}

// paid adds up how long machines existed in a time, from their launch on.
func paid(facts []rig.Fact, from, to time.Time) (sum time.Duration) {
	launched := map[string]time.Time{}
	for _, f := range facts {
		switch f.Stage {
		case rig.MachineLaunched:
			launched[f.Machine] = f.At
		case rig.MachineGone:
			if at, known := launched[f.Machine]; known {
				sum += max(0, f.At.Sub(later(at, from)))
				delete(launched, f.Machine)
			}
		}
	}
	for _, at := range launched {
		sum += max(0, to.Sub(later(at, from)))
	}
	return sum
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// rest waits until a moment, or returns why ctx ended.
func rest(ctx context.Context, until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// median returns the middle of some times.
func median(took []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[len(sorted)/2]
}
