// Command demo shows the whole loop on one machine: a real Ray asks for GPUs in several ways, and Heliostat sees it,
// scales the worker groups of a real RayCluster under the real KubeRay operator, and removes the workers when they are
// idle. It prints each step when it happens, and reads it from its source: the Kubernetes API, Ray's GCS, the work
// itself. It never relies on what Heliostat reports.
//
// With DEMO_EXIT=1 it exits after the story, with status 0 only if every step happened; otherwise it keeps the cluster
// until Ctrl-C. Either way, it leaves nothing behind but what was built.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"heliostat.dev/heliostat/test/rig"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second Ctrl-C ends the program at once; what it started ends with it.
	context.AfterFunc(ctx, stop)
	rig.Quiet()
	os.Exit(run(ctx, os.Getenv("DEMO_EXIT") != ""))
}

// run plays the story and cleans up. It returns the exit status.
func run(ctx context.Context, exit bool) int {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	show := newNarrator(os.Stdout)
	d := &demo{narrator: show, abort: end}
	err := d.play(ctx, exit)
	if err == nil && !exit {
		show.waiting()
		<-ctx.Done()
	}
	died := errors.Is(context.Cause(ctx), errDied)
	if died {
		err = context.Cause(ctx)
	}
	interrupted := ctx.Err() != nil && !died
	if err != nil && !interrupted {
		show.failed(err, d.logs())
	}
	if cleaning := d.close(); cleaning != nil {
		fmt.Fprintln(os.Stderr, cleaning)
		return 1
	}
	switch {
	case interrupted && exit:
		return 130
	case err != nil && !interrupted:
		return 1
	}
	return 0
}

// clusterName is the name of the demo's dev cluster; two demos on one machine have two.
func clusterName() string { return fmt.Sprintf("demo-%d", os.Getpid()) }

// demo is what the story needs, and what must be ended after it.
type demo struct {
	narrator  *narrator
	rig       *rig.Rig
	heliostat *rig.Heliostat
	driver    *rig.Driver
	journal   *rig.Journal
	stop      context.CancelFunc      // ends the observers
	abort     context.CancelCauseFunc // ends the story
}

// errDied says that a part of the dev cluster has ended, so that there is nothing to wait for any more.
var errDied = errors.New("a part of the dev cluster has ended")

// endWithTheCluster ends the story when a part of the dev cluster ends unasked.
func (d *demo) endWithTheCluster(ctx context.Context) {
	select {
	case death := <-d.rig.Cluster.Deaths():
		d.abort(fmt.Errorf("%w: %w", errDied, death.Err))
	case <-ctx.Done():
	}
}

// play prepares everything and lets the chapters happen one after the other.
func (d *demo) play(ctx context.Context, exit bool) error {
	if err := d.prepare(ctx); err != nil {
		return err
	}
	for _, c := range chapters {
		if err := d.chapter(ctx, c); err != nil {
			return err
		}
	}
	if err := d.end(ctx); err != nil {
		return err
	}
	facts := d.journal.Facts()
	if err := verify(facts, d.driver.Lost()); err != nil {
		return err
	}
	d.narrator.table()
	d.narrator.further(d.rig.Cluster.Kubeconfig(), d.heliostat.URL, d.rig.Program, exit)
	return nil
}

// prepare starts the dev cluster, Heliostat, a RayCluster without workers, and a driver.
func (d *demo) prepare(ctx context.Context) error {
	d.narrator.title()
	var err error
	if d.rig, err = rig.Start(ctx, rig.Options{Out: os.Stdout, Name: clusterName()}); err != nil {
		return err
	}
	go d.endWithTheCluster(ctx)
	d.narrator.ready("dev cluster", "Kubernetes, KubeRay operator, nodes with simulated GPUs")

	if err := rig.InstallCRDs(ctx, d.rig.Dynamic); err != nil {
		return err
	}
	if d.heliostat, err = d.rig.Serve(ctx); err != nil {
		return err
	}
	d.narrator.ready("Heliostat", d.heliostat.URL)

	d.journal = rig.NewJournal(d.narrator.fact)
	observing, stop := context.WithCancel(context.WithoutCancel(ctx))
	d.stop = stop
	cluster, err := manifest()
	if err != nil {
		return err
	}
	d.rig.Observe(observing, namespace, name, d.journal)
	if err := d.rig.Create(ctx, cluster); err != nil {
		return err
	}
	if err := d.rig.HeadAlive(ctx, namespace, name); err != nil {
		return err
	}
	d.narrator.ready("RayCluster", namespace+"/"+name+", groups cpu, gpu and mig, no workers yet")

	if d.driver, err = d.rig.Driver(ctx, namespace, name, "driver"); err != nil {
		return err
	}
	d.narrator.ready("Ray driver", "connected")
	go rig.FollowDriver(observing, d.driver, d.journal)
	return nil
}

// close ends everything that prepare started, also after a start that failed half-way.
func (d *demo) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if d.stop != nil {
		d.stop()
	}
	if d.rig == nil {
		return nil
	}
	d.narrator.cleaning()
	if d.driver != nil {
		d.driver.Kill() // its cluster is removed too, so it need not disconnect
	}
	if d.heliostat != nil {
		d.heliostat.Stop(ctx)
	}
	return d.rig.Stop(ctx)
}

// logs is the end of Heliostat's log, "" before it ran.
func (d *demo) logs() string {
	if d.heliostat == nil {
		return ""
	}
	return d.heliostat.LastLines(8)
}
