package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/devcluster/kit"
	"heliostat.dev/heliostat/test/rig"
)

const (
	namespace, name, group = "matrix", "matrix", "gpu"
	// idleSeconds is the idle time-out of the group.
	idleSeconds = 5
	// patience is the limit of a step. On an idle machine, none takes 30 s.
	patience = 4 * time.Minute
)

// trial is a run of one combination.
type trial struct {
	Combination
	rig       *rig.Rig
	heliostat *rig.Heliostat
	journal   *rig.Journal
	driver    *rig.Driver // nil until the first step is over
	// observing ends with the trial.
	observing context.Context
	stop      context.CancelFunc
}

// try runs the steps until one fails, and returns what ran. It returns an error if nothing ran, because the dev cluster
// or Heliostat did not start.
func try(ctx context.Context, c Combination) (ran []Step, err error) {
	t, err := begin(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := t.end(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	for _, s := range steps {
		done := t.take(ctx, s)
		ran = append(ran, done)
		if done.Failed != "" {
			fmt.Printf("  %s failed: %s\n%s\n", s.name, done.Failed, t.heliostat.LastLines(20))
			return ran, nil
		}
		fmt.Printf("  %s: %.1f s\n", s.name, done.Seconds)
	}
	return ran, nil
}

// begin starts a dev cluster of the combination, and Heliostat.
func begin(ctx context.Context, c Combination) (*trial, error) {
	r, err := rig.Start(ctx, rig.Options{Out: os.Stdout, Ray: c.Ray, KubeRay: c.KubeRay, Kubernetes: c.Kubernetes})
	if err != nil {
		return nil, err
	}
	t := &trial{Combination: c, rig: r, journal: rig.NewJournal(nil)}
	t.observing, t.stop = context.WithCancel(ctx)
	if err = t.confirm(); err == nil {
		t.heliostat, err = r.Serve(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, t.end())
	}
	return t, nil
}

// confirm reads from the programs that run, and from the files of Ray, that they are of the combination.
func (t *trial) confirm() error {
	plane, err := t.rig.Kube.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("reading the version of the API server: %w", err)
	}
	operator, err := buildinfo.ReadFile(t.rig.Cluster.Bin(devcluster.Operator))
	if err != nil {
		return fmt.Errorf("reading the version of the operator: %w", err)
	}
	packages := filepath.Join(t.rig.Cluster.RayEnv(t.Ray), "lib", "python3.*", "site-packages")
	rays, err := filepath.Glob(filepath.Join(packages, "ray-"+t.Ray+".dist-info"))
	if err != nil || len(rays) != 1 {
		return fmt.Errorf("reading the version of Ray: %d packages ray %s in %s, %w", len(rays), t.Ray, packages, err)
	}
	got := fmt.Sprint(plane.GitVersion, " ", operator.Main.Path, " ", operator.Main.Version)
	want := fmt.Sprint("v", t.Kubernetes, " ", kit.KubeRay, " v", t.KubeRay)
	if got != want {
		return fmt.Errorf("%s runs in place of %s", got, want)
	}
	return nil
}

// end stops everything.
func (t *trial) end() error {
	t.stop()
	if t.driver != nil {
		t.driver.Kill()
	}
	if t.heliostat != nil {
		t.heliostat.Kill()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return t.rig.Stop(ctx)
}

// take runs one step. Work that Ray reports as lost fails it.
func (t *trial) take(ctx context.Context, s step) Step {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	took, err := s.run(ctx, t)
	if t.driver != nil {
		for _, lost := range t.driver.Lost() {
			err = errors.Join(err, fmt.Errorf("%w: %s: %s", rig.ErrLost, lost.ID, lost.Error))
		}
	}
	if err != nil {
		return Step{Name: s.name, Failed: reason(err)}
	}
	return Step{Name: s.name, Seconds: float64(took.Milliseconds()) / 1000}
}

// reason returns an error as one line that fits into a cell.
func reason(err error) string {
	line := []rune(strings.Join(strings.Fields(err.Error()), " "))
	return string(line[:min(len(line), 300)])
}
