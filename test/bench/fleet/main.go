// Command fleet measures `autoscaler serve` with FLEET (1000) RayClusters of WORKERS (50) workers each: how old the
// data behind decisions is, how soon a task that nothing can run leads to a patch, and what that costs. 50 RayClusters
// share a namespace; NAMESPACES is another number of namespaces.
//
// The API server is real, and so is the wire to the Ray heads, which are simulated in a process of their own. BUSY (5)
// percent of the RayClusters get tasks again and again; the others rest, and one of them per second gets a task, to
// measure how soon a task is noticed there. The command plays the operator: it creates the pods that a patch requests,
// and deletes those that it names. It measures for SECONDS (60). PROFILES=DIR keeps profiles of serve.
//
// All pods are on one node that limits nothing. With NODES=N they are on N nodes, each with room for eight more
// workers.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"heliostat.dev/heliostat/test/rig"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == headsCommand {
		if err := serveHeads(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	rig.Main(run)
}

// number reads a count from the environment.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n >= 0 {
		return n
	}
	return otherwise
}

func run(ctx context.Context) (err error) {
	clusters, workers := number("FLEET", 1000), number("WORKERS", 50)
	busy := clusters * number("BUSY", 5) / 100
	r, err := rig.Start(ctx, rig.Options{ControlPlaneOnly: true, Out: os.Stdout})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err = errors.Join(err, r.Stop(ctx))
	}()
	f, err := newFleet(ctx, r, clusters, workers)
	if f != nil {
		defer f.close()
	}
	if err != nil {
		return err
	}
	fmt.Printf("\n%d RayClusters with %d workers each, made in %.0f s\n", clusters, workers, f.madeIn.Seconds())
	if err := f.serve(ctx); err != nil {
		return err
	}
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	operator := f.startOperator(work)
	d := f.startDemand(work, operator, busy)
	time.Sleep(time.Duration(number("WARM_SECONDS", 30)) * time.Second)
	return f.measure(ctx, d, time.Duration(number("SECONDS", 60))*time.Second)
}
