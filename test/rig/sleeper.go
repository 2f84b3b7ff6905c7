package rig

import (
	"fmt"
	"os"
	"path/filepath"
)

// SleeperImage is the image of workers that never join Ray.
const SleeperImage = "rig/sleeper:dev"

// sleeper answers to the name ray in a worker's pod: it passes the checks of KubeRay's init container and then waits.
// It ends on a signal, which the first process of a PID namespace does only on purpose.
const sleeper = `#!/bin/sh
case "$1" in
start)
	trap 'exit 0' TERM
	sleep 1000000 &
	wait
	;;
esac
`

// AddSleeper gives pods SleeperImage, for tests of what is launched and where it is scheduled: a Ray node takes seconds
// of a core to start.
func (r *Rig) AddSleeper() error {
	dir := filepath.Join(r.Dir, "sleeper")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the sleeper's image: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ray"), []byte(sleeper), 0o755); err != nil {
		return fmt.Errorf("making the sleeper's image: %w", err)
	}
	r.Cluster.Agent().SetImage(SleeperImage, dir)
	return nil
}
