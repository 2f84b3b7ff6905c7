// Command memory measures the memory of `autoscaler serve` on a real API server that holds many large ResourceRequests:
// HOSTILE (2000) of the largest that the CustomResourceDefinition admits, in NAMESPACES (3) namespaces, each with its
// RayCluster, beside the small requests of an honest owner in a namespace of its own. In each namespace, 400 count.
//
// It measures twice: while the objects come, through the watch, and after a restart that finds all of them, through the
// list. For each it prints resident and peak memory, how long a new request of the honest owner waits for its place in
// a plan, and what the statuses of the objects say. It fails where the peak exceeds AIM_MIB (256), where a request of
// the honest owner is not served, and where a large object has no status, or another number of them counts.
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

func main() { rig.Main(run) }

// number reads a count from the environment.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n >= 0 {
		return n
	}
	return otherwise
}

func run(ctx context.Context) (err error) {
	r, err := rig.Start(ctx, rig.Options{ControlPlaneOnly: true, Out: os.Stdout})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err = errors.Join(err, r.Stop(ctx))
	}()
	if err := rig.InstallCRDs(ctx, r.Dynamic); err != nil {
		return err
	}
	s, err := newScene(ctx, r, number("NAMESPACES", 3))
	if s != nil {
		defer s.close()
	}
	if err != nil {
		return err
	}
	return s.measure(ctx)
}

// measure runs both parts, and reports what should not have been once all is printed.
func (s *scene) measure(ctx context.Context) error {
	objects, aim := number("HOSTILE", 2000), int64(number("AIM_MIB", 256))<<20
	if err := s.serve(ctx); err != nil {
		return err
	}
	if err := s.honest(ctx, "before"); err != nil {
		return err
	}
	s.row("without large objects", "")
	begun := time.Now()
	during := s.sample(ctx)
	if err := s.flood(ctx, objects); err != nil {
		return err
	}
	fmt.Printf("%d of the largest objects in %d namespaces, made in %.0f s\n", objects, len(s.hostile),
		time.Since(begun).Seconds())
	peaks := []int64{s.part(ctx, "while they come", during)}
	s.restart(ctx)
	if err := s.serve(ctx); err != nil {
		return err
	}
	after := s.sample(ctx)
	peaks = append(peaks, s.part(ctx, "after a restart that finds them", after))
	for _, peak := range peaks {
		if peak > aim {
			s.wrong(fmt.Errorf("serve had %d MiB resident, the aim is at most %d MiB", peak>>20, aim>>20))
		}
	}
	return errors.Join(s.faults...)
}

// part measures a Heliostat that has the objects before it, and returns the most memory that it had.
func (s *scene) part(ctx context.Context, name string, samples *samples) int64 {
	begun := time.Now()
	if err := s.honest(ctx, "honest-"+strconv.Itoa(s.asked)); err != nil {
		s.wrong(err)
	}
	planned := time.Since(begun)
	s.wrong(s.keepProfile(ctx, name))
	lines, err := s.settled(ctx)
	if err != nil {
		s.wrong(err)
	}
	settled := time.Since(begun)
	samples.end()
	peak := s.row(
		name,
		fmt.Sprintf("; a new small request is served after %.2f s; all statuses are written after %.0f s:",
			planned.Seconds(), settled.Seconds()),
	)
	for _, line := range lines {
		fmt.Println("  " + line)
	}
	return peak
}
