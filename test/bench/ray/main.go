// Command ray compares Heliostat's planner with the one of Ray's own autoscaler, on the same snapshots, on the same
// machine, in the same run.
//
//	ray speed           how long a decision takes; the program `autoscaler` is $HELIOSTAT_PROGRAM
//	ray quality         prices of plans for realistic instances, over a lower bound
//	ray snapshots DIR   writes these instances to files, for `autoscaler plan --snapshot`
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
	"strings"
	"syscall"
	"time"

	"heliostat.dev/heliostat/internal/planner"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	// Ray's planner has one core and no more, and so has this one.
	runtime.GOMAXPROCS(1)
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// options are what a run is asked.
type options struct {
	instances int
	seed      uint64
	limit     time.Duration
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("ray", flag.ContinueOnError)
	flags.IntVar(&o.instances, "instances", 100, "the number of instances of each set")
	flags.Uint64Var(&o.seed, "seed", 1, "what instances are drawn from")
	flags.DurationVar(&o.limit, "limit", limitOfRay, "the CPU time that Ray's planner is given for a decision")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch command := flags.Arg(0); command {
	case "speed":
		return o.speed(ctx, out)
	case "quality":
		return o.quality(ctx, out)
	case "snapshots":
		return writeSnapshots(flags.Arg(1), append(o.draw(oneKind), o.draw(mixedKinds)...))
	default:
		return fmt.Errorf("%q is no command: want speed, quality or snapshots", command)
	}
}

func (o options) draw(set kindsOfGPU) []planner.Snapshot { return instances(set, o.instances, o.seed) }

func (o options) speed(ctx context.Context, out io.Writer) (err error) {
	program := os.Getenv("HELIOSTAT_PROGRAM")
	if program == "" {
		return errors.New("HELIOSTAT_PROGRAM is empty: want the path of the program autoscaler")
	}
	python, err := rayPython(ctx)
	if err != nil {
		return err
	}
	ray, err := startRayPlanner(ctx, python, o.limit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ray.close()) }()
	dir, err := os.MkdirTemp("", "heliostat-bench-ray-")
	if err != nil {
		return fmt.Errorf("making a directory for snapshots: %w", err)
	}
	defer os.RemoveAll(dir)
	return stopwatch{ray, program, dir}.speed(ctx, out)
}

func (o options) quality(ctx context.Context, out io.Writer) (err error) {
	python, err := rayPython(ctx)
	if err != nil {
		return err
	}
	ray, err := startRayPlanner(ctx, python, o.limit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ray.close()) }()
	solver, err := solverPython(ctx, python)
	if err != nil {
		return err
	}
	bounder, err := startPriceBounder(ctx, solver)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bounder.close()) }()
	for _, set := range []kindsOfGPU{oneKind, mixedKinds} {
		if err := quality(ctx, out, set, o.draw(set), ray, bounder); err != nil {
			return err
		}
	}
	return nil
}

// writeSnapshots writes each snapshot to a file of its name in dir.
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

// fileName is what a snapshot's file is called: its name without what a file system or a shell minds.
func fileName(s planner.Snapshot) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, s.Name) + ".json"
}
