// Command loop measures how long it takes from asking Ray for something to the patch of the RayCluster that brings it,
// on a real Ray head, at random moments, for a task and for a placement group. It also measures what Heliostat uses at
// rest. With SIDECAR=1 it does the same with Ray's own autoscaler on the same machine.
//
// Heliostat's workers are real pods of the real operator whose command does nothing: a worker that joined Ray would
// take the demand away before the next trial, and a slow machine would be measured instead of the loop.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"heliostat.dev/heliostat/test/rig"
)

// restFor is how long the use at rest is measured. settle lets everything come to rest before.
const (
	restFor = 30 * time.Second
	settle  = 10 * time.Second
)

func main() { rig.Main(run) }

func run(ctx context.Context) (err error) {
	r, err := rig.Start(ctx, rig.Options{Out: os.Stdout})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if stopping := r.Stop(ctx); err == nil {
			err = stopping
		}
	}()
	if err := r.AddSleeper(); err != nil {
		return err
	}
	if err := measureHeliostat(ctx, r, number("TRIALS", 50)); err != nil {
		return err
	}
	if os.Getenv("SIDECAR") != "" {
		return measureSidecar(ctx, r, number("SIDECAR_TRIALS", 15))
	}
	return nil
}

// number reads a count from the environment.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// measureHeliostat runs the trials with Heliostat, and then measures what it uses at rest.
func measureHeliostat(ctx context.Context, r *rig.Rig, trials int) error {
	heliostat, err := r.Serve(ctx)
	if err != nil {
		return err
	}
	defer heliostat.Kill()
	b, err := newBench(ctx, r,
		rig.Cluster{Namespace: "bench", Name: "heliostat", IdleSeconds: 600, Groups: groups(rig.SleeperImage)})
	if err != nil {
		return err
	}
	defer b.close()
	fmt.Printf("\nHeliostat, %d trials of each kind\n\n", trials)
	if err := b.table(ctx, trials, task, gang); err != nil {
		return err
	}
	return rest(ctx, "heliostat serve", heliostat.PID())
}

// measureSidecar runs the trials with Ray's own autoscaler in the head pod. It gets real workers, since it loses its
// way when somebody else takes workers away: the patch comes before they matter, and the pauses between trials are
// longer.
func measureSidecar(ctx context.Context, r *rig.Rig, trials int) error {
	b, err := newBench(ctx, r,
		rig.Cluster{Namespace: "bench", Name: "sidecar", IdleSeconds: 1, InTree: true, Groups: groups("")})
	if err != nil {
		return err
	}
	defer b.close()
	fmt.Printf("\nRay's own sidecar, %d trials\n\n", trials)
	if err := b.table(ctx, trials, task); err != nil {
		return err
	}
	pid, err := rig.FindProcess("--cluster-name", "sidecar")
	if err != nil {
		return err
	}
	return rest(ctx, "ray kuberay-autoscaler", pid)
}

// groups returns one GPU group with room for every trial.
func groups(image string) []rig.Group {
	return []rig.Group{{Name: "gpu", Max: 8, Image: image, Devices: map[string]int64{"nvidia.com/gpu": 1}}}
}

// rest measures a process that has nothing to do.
func rest(ctx context.Context, name string, pid int) error {
	if err := sleep(ctx, settle); err != nil {
		return err
	}
	before, err := rig.UsageOf(pid)
	if err != nil {
		return err
	}
	if err := sleep(ctx, restFor); err != nil {
		return err
	}
	after, err := rig.UsageOf(pid)
	if err != nil {
		return err
	}
	busy := 100 * (after.CPU - before.CPU).Seconds() / restFor.Seconds()
	fmt.Printf("\nat rest for %s: %s uses %.1f %% of a core, %d MiB resident (peak %d MiB)\n", restFor, name, busy,
		after.Resident>>20, after.Peak>>20)
	return nil
}

// sleep waits for d, or returns why ctx ended.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
