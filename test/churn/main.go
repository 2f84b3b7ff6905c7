// Command churn lets random work come and go on a real Ray for minutes, with idle time-outs so short that workers are
// taken away and brought back all the time, and counts what must not happen:
//
//   - tasks or actors that a scale-down destroyed: Ray retries nothing, so it reports each as lost;
//   - workers beyond what demand needed: for each patch that raised a group, the workers that nothing asked for at any
//     moment on whose state the patch may have been decided (see ledger);
//   - workers that stay: 10 s after the idle time-out at the end, all must be gone.
//
// It ends with status 0 only when all three are zero. DURATION (5m) and SEED (of the clock) may be set.
//
// With KARPENTER=1, the workers are on machines that the real Karpenter launches, consolidates and expires meanwhile.
// Then workers that replace those of machines that go are beyond demand, so they are only counted, and all machines
// must be gone at the end. PROTECT=off takes the guard of busy workers away, to show what it prevents.
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

const (
	namespace, name = "churn", "churn"
	// idleSeconds is the idle time-out. goneWithin is how long after it the last worker may take to be gone.
	idleSeconds = 5
	goneWithin  = 10 * time.Second
)

func main() { rig.Main(run) }

func run(ctx context.Context) (err error) {
	duration, seed, err := settings()
	if err != nil {
		return err
	}
	machines := machinesFromEnv()
	r, err := rig.Start(ctx, machines.rig())
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err = errors.Join(err, r.Stop(ctx))
	}()
	if err := machines.prepare(ctx, r); err != nil {
		return err
	}
	heliostat, err := r.Serve(ctx, machines.flags()...)
	if err != nil {
		return err
	}
	defer heliostat.Kill()
	journal := rig.NewJournal(nil)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	r.Observe(watching, namespace, name, journal)
	if machines.karpenter {
		r.ObserveMachines(watching, namespace, name, journal)
	}
	if err := r.Create(ctx, machines.cluster().Manifest()); err != nil {
		return err
	}
	if err := r.HeadAlive(ctx, namespace, name); err != nil {
		return err
	}
	driver, err := r.Driver(ctx, namespace, name, "driver")
	if err != nil {
		return err
	}
	defer driver.Kill()

	fmt.Printf("\n%s of random work, seed %d\n", duration, seed)
	w := newWork(driver, heliostat, seed)
	gone, err := w.followed(ctx, journal, duration)
	if err != nil {
		return err
	}
	return errors.Join(report(w, journal.Facts(), gone, machines), machines.report(ctx, journal))
}

// followed churns, waits until all workers are gone, and shows progress meanwhile. It returns how long the workers took
// to go.
func (w *work) followed(ctx context.Context, journal *rig.Journal, duration time.Duration) (time.Duration, error) {
	begun := time.Now()
	following, stop := context.WithCancel(ctx)
	state := func() progress { return w.progressOf(journal.Facts(), time.Since(begun), duration) }
	shown := newReporter(os.Stderr).follow(following, state)
	defer func() { stop(); shown.Wait() }()
	if err := w.churn(ctx, duration); err != nil {
		return 0, err
	}
	return waitGone(ctx, journal, time.Now())
}

// settings reads DURATION and SEED.
func settings() (time.Duration, uint64, error) {
	duration, seed := 5*time.Minute, uint64(time.Now().UnixNano())
	var err error
	if text := os.Getenv("DURATION"); text != "" {
		if duration, err = time.ParseDuration(text); err != nil {
			return 0, 0, fmt.Errorf("reading DURATION: %w", err)
		}
	}
	if text := os.Getenv("SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return 0, 0, fmt.Errorf("reading SEED: %w", err)
		}
	}
	return duration, seed, nil
}

// cluster has two groups that share no resource, so that each item of work has one group to go to.
func cluster() rig.Cluster {
	noCPU := map[string]string{"num-cpus": "0"}
	return rig.Cluster{Namespace: namespace, Name: name, IdleSeconds: idleSeconds, Groups: []rig.Group{
		{Name: cpuGroup, Max: 4, CPU: "2"},
		{Name: gpuGroup, Max: 5, Params: noCPU, Devices: map[string]int64{"nvidia.com/gpu": 1}},
	}}
}

// waitGone waits until no worker is left and returns how long that took.
func waitGone(ctx context.Context, journal *rig.Journal, ended time.Time) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	err := journal.Wait(ctx, "the end of all workers",
		func(facts []rig.Fact) bool { return len(rig.Living(facts, "")) == 0 })
	return time.Since(ended), err
}

// report prints what was counted, and says what should not have been.
func report(w *work, facts []rig.Fact, gone time.Duration, machines machines) error {
	l := w.ledger(facts)
	lost, beyond := w.driver.Lost(), 0
	for _, launch := range l.launches {
		if n := l.beyond(launch); n > 0 {
			beyond += n
			fmt.Printf("  beyond demand: %d of group %s at %s, %d → %d\n", n, launch.group,
				launch.at.Format(time.TimeOnly), launch.from, launch.to)
		}
	}
	for _, e := range lost {
		fmt.Printf("  lost: %s at %s: %s\n", e.ID, e.At.Format(time.TimeOnly), e.Error)
	}
	limit := idleSeconds*time.Second + goneWithin + machines.startTime()
	fmt.Println()
	for _, line := range []struct {
		what  string
		value any
	}{
		{"tasks", w.count["task"]}, {"actors", w.count["actor"]}, {"placement groups", w.count["group"]},
		{"REST requests", w.count["request"]},
		{"patches that scale up", len(l.launches)}, {"workers created", len(l.workers)},
		{"tasks or actors lost", len(lost)}, {"work that ran twice", len(w.driver.Doubled())},
		{"workers beyond demand", beyond},
		{"last worker gone after", fmt.Sprintf("%.1fs (at most %s)", gone.Seconds(), limit)},
	} {
		fmt.Printf("  %-24s  %v\n", line.what, line.value)
	}
	var errs []error
	if len(lost) > 0 {
		errs = append(errs, fmt.Errorf("%d tasks or actors were lost", len(lost)))
	}
	for _, problem := range w.driver.Doubled() {
		errs = append(errs, errors.New(problem))
	}
	if beyond > 0 && !machines.karpenter {
		errs = append(errs, fmt.Errorf("%d workers were beyond demand", beyond))
	}
	if gone > limit {
		errs = append(errs, fmt.Errorf("the last worker was gone after %s, later than %s", gone, limit))
	}
	if len(l.launches) == 0 {
		errs = append(errs, errors.New("nothing was ever scaled up, so nothing was tested"))
	}
	return errors.Join(errs...)
}
