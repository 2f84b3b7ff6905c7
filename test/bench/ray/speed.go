package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner"
)

// stopwatch times both planners.
type stopwatch struct {
	ray *rayPlanner
	// program is Heliostat; its whole `plan` command is timed too.
	program string
	// dir is the directory of the snapshot files.
	dir string
}

// speed prints how long a decision takes for each scenario.
func (w stopwatch) speed(ctx context.Context, out io.Writer) error {
	fmt.Fprintf(
		out,
		"\nOne decision on one core: CPU seconds of Ray's schedule() and of Heliostat's Compute, "+
			"the same snapshot file\n"+
			"for both. `autoscaler plan` is the whole command, with the reading of the file.\n\n",
	)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "scenario\tRay\tHeliostat\tratio\tautoscaler plan\tpods\t$/h\tunserved")
	for _, each := range scenarios() {
		row, err := w.row(ctx, each)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "timed: %s\n", each.name)
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	return table.Flush()
}

// row plans one scenario with both planners. Values of both are written as "Ray's, Heliostat's".
func (w stopwatch) row(ctx context.Context, each scenario) ([]string, error) {
	s, err := clone(each.snapshot)
	if err != nil {
		return nil, err
	}
	plan, seconds, err := measure(s)
	if err != nil {
		return nil, err
	}
	ours := answerOf(s, plan)
	command, err := w.command(ctx, s, plan)
	if err != nil {
		return nil, err
	}
	rays, raySeconds, err := w.ray.plan(s)
	if errors.Is(err, errUnfinished) {
		unfinished := fmt.Sprintf("did not finish in %.0f s", w.ray.limit.Seconds())
		return []string{
			each.name,
			unfinished,
			significant(seconds) + " s",
			fmt.Sprintf("> %s", significant(w.ray.limit.Seconds()/seconds)),
			significant(command) + " s",
			fmt.Sprintf("–, %d", ours.pods()),
			fmt.Sprintf("–, %.2f", ours.price(s)),
			fmt.Sprintf("–, %d", ours.unserved()),
		}, nil
	}
	if err != nil {
		return nil, err
	}
	return []string{
		each.name,
		significant(raySeconds) + " s",
		significant(seconds) + " s",
		significant(raySeconds / seconds),
		significant(command) + " s",
		fmt.Sprintf("%d, %d", rays.pods(), ours.pods()),
		fmt.Sprintf("%.2f, %.2f", rays.price(s), ours.price(s)),
		fmt.Sprintf("%d, %d", rays.unserved(), ours.unserved()),
	}, nil
}

// significant formats a number with two significant digits, without an exponent.
func significant(x float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 2, 64), 64)
	if err != nil {
		return "?"
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// command runs `autoscaler plan` on the snapshot's file and returns its CPU seconds. The output must be the plan that
// was timed.
func (w stopwatch) command(ctx context.Context, s planner.Snapshot, timed planner.Plan) (float64, error) {
	if err := writeSnapshots(w.dir, []planner.Snapshot{s}); err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, w.program, "plan", "--snapshot", filepath.Join(w.dir, fileName(s)))
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	printed, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("running autoscaler plan on %s: %w", s.Name, err)
	}
	var plan planner.Plan
	if err := json.Unmarshal(printed, &plan); err != nil {
		return 0, fmt.Errorf("reading the plan of %s: %w", s.Name, err)
	}
	if diff := cmp.Diff(timed.Launch, plan.Launch); diff != "" {
		return 0, fmt.Errorf("autoscaler plan decides otherwise than Compute on %s:\n%s", s.Name, diff)
	}
	spent := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return spent.Seconds(), nil
}

// limitOfRay is the default limit of a decision of Ray's planner.
const limitOfRay = time.Minute
