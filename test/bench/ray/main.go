// Command ray compares Heliostat's planner with the one of Ray's own autoscaler, on the same snapshots, on the same
// machine, in the same run.
//
//	ray speed           how long a decision takes; the program `autoscaler` is $HELIOSTAT_PROGRAM
//	ray quality         prices of plans for realistic instances, over a lower bound
//	ray diff            what the plans for random small snapshots differ in, by cause; fails when a cause is not known
//	ray snapshots DIR   writes the instances and the random snapshots to files, for `autoscaler plan --snapshot`
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"heliostat.dev/heliostat/internal/planner"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	// Ray's planner uses one core, so this one does too.
	runtime.GOMAXPROCS(1)
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// options are the command-line options.
type options struct {
	instances int
	samples   int
	seed      uint64
	limit     time.Duration
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("ray", flag.ContinueOnError)
	flags.IntVar(&o.instances, "instances", 100, "the number of instances of each set")
	flags.IntVar(&o.samples, "samples", 2000, "the number of random small snapshots")
	flags.Uint64Var(&o.seed, "seed", 1, "what instances and random snapshots are drawn from")
	flags.DurationVar(&o.limit, "limit", limitOfRay, "the CPU time that Ray's planner is given for a decision")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.Arg(0) == "snapshots" {
		return writeSnapshots(flags.Arg(1),
			slices.Concat(o.draw(oneKind), o.draw(mixedKinds), samples(o.samples, o.seed)))
	}
	for _, name := range flags.Args() {
		commands := map[string]func(context.Context, io.Writer) error{
			"speed": o.speed, "quality": o.quality, "diff": o.diff,
		}
		command, ok := commands[name]
		if !ok {
			return fmt.Errorf("%q is no command: want speed, quality, diff or snapshots", name)
		}
		if err := command(ctx, out); err != nil {
			return err
		}
	}
	return nil
}

func (o options) draw(set kindsOfGPU) []planner.Snapshot { return instances(set, o.instances, o.seed) }

// withRay calls use with Ray's planner, and with the interpreter that runs it.
func (o options) withRay(ctx context.Context, use func(ray *rayPlanner, python string) error) error {
	python, err := rayPython(ctx)
	if err != nil {
		return err
	}
	ray, err := startRayPlanner(ctx, python, o.limit)
	if err != nil {
		return err
	}
	return errors.Join(use(ray, python), ray.close())
}

func (o options) speed(ctx context.Context, out io.Writer) error {
	program := os.Getenv("HELIOSTAT_PROGRAM")
	if program == "" {
		return errors.New("HELIOSTAT_PROGRAM is empty: want the path of the program autoscaler")
	}
	dir, err := os.MkdirTemp("", "heliostat-bench-ray-")
	if err != nil {
		return fmt.Errorf("making a directory for snapshots: %w", err)
	}
	defer os.RemoveAll(dir)
	return o.withRay(ctx, func(ray *rayPlanner, _ string) error {
		return stopwatch{ray, program, dir}.speed(ctx, out)
	})
}

func (o options) quality(ctx context.Context, out io.Writer) error {
	return o.withRay(ctx, func(ray *rayPlanner, python string) error {
		solver, err := solverPython(ctx, python)
		if err != nil {
			return err
		}
		bounder, err := startPriceBounder(ctx, solver)
		if err != nil {
			return err
		}
		for _, set := range []kindsOfGPU{oneKind, mixedKinds} {
			if err := quality(ctx, out, set, o.draw(set), ray, bounder); err != nil {
				return errors.Join(err, bounder.close())
			}
		}
		return bounder.close()
	})
}

func (o options) diff(ctx context.Context, out io.Writer) error {
	return o.withRay(ctx, func(ray *rayPlanner, _ string) error {
		counted, err := duel{ray}.count(ctx, samples(o.samples, o.seed))
		if err != nil {
			return err
		}
		return errors.Join(counted.write(out), counted.err(openDir()))
	})
}

// writeSnapshots writes each snapshot to a file in dir that has its name.
func writeSnapshots(dir string, snapshots []planner.Snapshot) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the directory of snapshots: %w", err)
	}
	for _, s := range snapshots {
		raw, err := json.MarshalIndent(s, "", " ")
		if err != nil {
			return fmt.Errorf("writing snapshot %s: %w", s.Name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, fileName(s)), raw, 0o644); err != nil {
			return fmt.Errorf("writing snapshot %s: %w", s.Name, err)
		}
	}
	return nil
}

// fileName returns a snapshot's name without characters that are special to a file system or a shell.
func fileName(s planner.Snapshot) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, s.Name) + ".json"
}
