package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/devcluster/nodeagent"
	"heliostat.dev/heliostat/test/rig"
)

// lab is the shared dev cluster. fleet is the shared Heliostat, which tests may kill and restart.
var (
	lab   *rig.Rig
	fleet *rig.Heliostat
)

// nodes are the default nodes of the dev cluster and those of nodes.yaml.
var nodes []nodeagent.NodeSpec

func allNodes() ([]nodeagent.NodeSpec, error) {
	nodes, err := devcluster.DefaultNodes()
	if err != nil {
		return nil, err
	}
	file, err := os.Open("nodes.yaml")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	further, err := nodeagent.LoadNodes(file)
	return append(nodes, further...), err
}

// isSlow: only the tests that take minutes run, which make test-all skips.
var isSlow = os.Getenv("HELIOSTAT_TEST_SLOW") != ""

func slow(t *testing.T) {
	t.Helper()
	if !isSlow {
		t.Skip("it takes minutes: make nightly NAME=suspend")
	}
	t.Parallel()
}

// allocationTimeout is how long pods may take to join. A fifth of it is silence enough about a pod without a node.
const allocationTimeout = 5 * time.Minute

// serve starts a Heliostat that may be the fleet. It knows how far the pools of pools.yaml may grow, guards busy
// workers, drains workers with bad GPUs, takes GPUs for RayClusters of higher priority, and soon drains workers of RayClusters that let their work move.
func serve(ctx context.Context, arguments ...string) (*rig.Heliostat, error) {
	pools, err := filepath.Abs("pools.yaml")
	if err != nil {
		return nil, err
	}
	own := []string{"--pools", pools, "--protect-busy", "--drain-bad-gpus", "--consolidate-after", "5s",
		"--reclaim", "--reclaim-min-runtime", "1s", "--allocation-timeout", allocationTimeout.String()}
	return lab.Serve(ctx, append(own, arguments...)...)
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

// run starts the shared components and stops them, even if a test fails.
func run(m *testing.M) (status int) {
	rig.Quiet()
	ctx := context.Background()
	var err error
	if nodes, err = allNodes(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if lab, err = rig.Start(ctx, rig.Options{Out: os.Stderr, Nodes: nodes}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if fleet != nil {
			fleet.Stop(ctx)
		}
		if fleet != nil && status != 0 {
			fmt.Fprintf(os.Stderr, "Heliostat's last lines:\n%s\n", fleet.LastLines(40))
		}
		if err := lab.Stop(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}()
	if err := lab.AddSleeper(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if fleet, err = serve(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
