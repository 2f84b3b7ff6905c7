// Command ray compares Heliostat's planner with the one of Ray's own autoscaler, on the same snapshots, on the same
// machine, in the same run.
//
//	ray snapshots DIR   writes the snapshots of the comparison of prices
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"heliostat.dev/heliostat/internal/planner"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("ray", flag.ContinueOnError)
	count := flags.Int("instances", 100, "the number of instances of each set")
	seed := flags.Uint64("seed", 1, "what the instances are drawn from")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch flags.Arg(0) {
	case "snapshots":
		return writeSnapshots(flags.Arg(1), append(instances(oneKind, *count, *seed), instances(mixedKinds, *count, *seed)...))
	}
	return fmt.Errorf("%q is no command: want snapshots", flags.Arg(0))
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
		if err := os.WriteFile(filepath.Join(dir, s.Name+".json"), raw, 0o644); err != nil {
			return fmt.Errorf("writing snapshot %s: %w", s.Name, err)
		}
	}
	return nil
}
