// Command chaos lets Heliostat scale a fleet of RayClusters under faults, for as long as DURATION says, and judges from
// what the API server and the Ray heads themselves say that no rule of safety is broken (package verdict).
//
// A fleet has simulated heads with the true wire and pods without containers, which the real KubeRay operator makes and
// package fleet runs. The real operator is used because its choices are part of what can go wrong. The kubelets are
// played because real Ray processes would allow only a few RayClusters on a machine, and a head cannot lie.
//
// A run is a sequence of rounds. Each has a storm, in which faults of a seeded schedule happen while random work comes
// and goes; a calm without faults, with work that stays; and a rest, in which all work must be served and nothing may
// be written. If a rule is broken, the round is replayed with fewer and fewer faults, and the shortest schedule that
// still fails is printed. SEED and SCHEDULE, a file, repeat it.
//
// Environment: DURATION (2h), SEED (of the clock), CLUSTERS (12), REAL (0) RayClusters on a real Ray besides, FAULTS
// per round (16), REPLAYS (12) after a failure, or 0 to go on with the next round, SCHEDULE (none). With REAL, the
// storage never goes back, because real nodes would not notice.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"heliostat.dev/heliostat/test/chaos/schedule"
	"heliostat.dev/heliostat/test/chaos/verdict"
	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/devcluster/nodeagent"
	"heliostat.dev/heliostat/test/rig"
)

func main() { rig.Main(run) }

// settings are the settings of a run.
type settings struct {
	duration                        time.Duration
	seed                            uint64
	clusters, real, faults, replays int
	// storm, calm and rest are the lengths of the phases of a round. settles is how long before a rest the last work of
	// the storm ends.
	storm, calm, settles, rest time.Duration
	// schedule replaces the faults of every round.
	schedule []schedule.Fault
}

// defaults are the settings without an environment. A rest begins late enough for the slowest legal way to an end: a
// reading after a pause of a broken head, an idle timeout, a drain, and the operator.
func defaults() settings {
	return settings{duration: 2 * time.Hour, seed: uint64(time.Now().UnixNano()), clusters: 12, faults: 16,
		replays: 12, storm: 30 * time.Second, calm: 30 * time.Second, settles: simulatedSettles,
		rest: 8 * time.Second}
}

// realCalm is the shortest calm with RayClusters on a real Ray, whose containers take seconds to start and to end: see
// fleet.RealBacklog.
const realCalm = 45 * time.Second

// fromEnvironment reads the settings.
func fromEnvironment() (settings, error) {
	s := defaults()
	var err error
	if value := os.Getenv("DURATION"); value != "" {
		if s.duration, err = time.ParseDuration(value); err != nil {
			return s, fmt.Errorf("reading DURATION: %w", err)
		}
	}
	if value := os.Getenv("SEED"); value != "" {
		if s.seed, err = strconv.ParseUint(value, 10, 64); err != nil {
			return s, fmt.Errorf("reading SEED: %w", err)
		}
	}
	numbers := map[string]*int{
		"CLUSTERS": &s.clusters, "REAL": &s.real, "FAULTS": &s.faults, "REPLAYS": &s.replays,
	}
	for name, to := range numbers {
		if value := os.Getenv(name); value != "" {
			if *to, err = strconv.Atoi(value); err != nil {
				return s, fmt.Errorf("reading %s: %w", name, err)
			}
		}
	}
	if s.clusters < 2 || s.clusters > 200 {
		return s, fmt.Errorf("CLUSTERS is %d, want 2 to 200", s.clusters)
	}
	if s.real > 0 {
		s.calm, s.settles = realCalm, realSettles
	}
	if value := os.Getenv("SCHEDULE"); value != "" {
		file, err := os.ReadFile(value)
		if err != nil {
			return s, fmt.Errorf("reading SCHEDULE: %w", err)
		}
		if s.schedule, err = schedule.Parse(string(file)); err != nil {
			return s, err
		}
	}
	return s, nil
}

func run(ctx context.Context) (err error) {
	s, err := fromEnvironment()
	if err != nil {
		return err
	}
	return chaos(ctx, s)
}

// chaos runs on a dev cluster of its own.
func chaos(ctx context.Context, s settings) (err error) {
	options := rig.Options{Out: os.Stderr, Nodes: []nodeagent.NodeSpec{}}
	if s.real > 0 {
		options.Nodes = nil // the nodes of real processes
	}
	r, err := rig.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err = errors.Join(err, r.Stop(ctx))
	}()
	p := &program{Rig: r, settings: s}
	restarts, stop := context.WithCancel(ctx)
	defer stop()
	go p.restartParts(restarts)
	return p.run(ctx)
}

// program runs trials one after the other.
type program struct {
	*rig.Rig
	settings
	trials int
	// restarting is held by whoever restarts parts of the dev cluster.
	restarting sync.Mutex
}

// restartParts restarts parts of the dev cluster that end by themselves, as a kubelet would: the controller manager
// ends when it cannot renew its lease because the API server restarts.
func (p *program) restartParts(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case death := <-p.Cluster.Deaths():
			fmt.Printf("restarting the %s, which ended: %v\n", death.Part, death.Err)
			if err := p.restartPart(ctx, death.Part); err != nil && ctx.Err() == nil {
				fmt.Println("  it did not start:", err)
			}
		}
	}
}

func (p *program) restartPart(ctx context.Context, part devcluster.Part) error {
	p.restarting.Lock()
	defer p.restarting.Unlock()
	return p.Cluster.RestartPart(ctx, part)
}

// run lets rounds follow each other until the time is over. After a violation it looks for the shortest schedule.
func (p *program) run(ctx context.Context) error {
	fmt.Printf("chaos for %s: %d RayClusters, %d on a real Ray, seed %d\n", p.duration, p.clusters+p.real, p.real,
		p.seed)
	t, err := p.trial(ctx)
	if err != nil {
		return errors.Join(err, t.close())
	}
	begun, round, known := time.Now(), 1, 0
	var failures error
	for ; ; round++ {
		faults := p.faultsOf(round)
		if err := t.round(ctx, round, faults); err != nil {
			return errors.Join(err, t.close())
		}
		fmt.Printf("round %d after %s: %s\n", round, time.Since(begun).Round(time.Second), t.summary())
		if violations := t.violations()[known:]; len(violations) > 0 {
			for _, v := range violations {
				fmt.Println("  VIOLATION", v)
			}
			fmt.Println(t.evidence(ctx))
			known += len(violations)
			if p.replays == 0 {
				failures = errors.Join(failures, p.failure(violations[0].Rule, round, 0, faults))
			}
		}
		if known > 0 && p.replays > 0 {
			err := t.close() // the replays use the addresses of its heads
			return errors.Join(p.shrink(ctx, round, faults, t.violations()[0].Rule), err)
		}
		if time.Since(begun) >= p.duration {
			break
		}
	}
	t.report(time.Since(begun), round)
	return errors.Join(failures, t.vacuous(), t.close())
}

// faultsOf returns the faults of a round.
func (p *program) faultsOf(round int) []schedule.Fault {
	if p.schedule != nil {
		return p.schedule
	}
	faults := schedule.Draw(p.seed, round, p.faults, p.clusters, p.storm)
	return slices.DeleteFunc(faults, func(f schedule.Fault) bool { return p.real > 0 && f.Kind == schedule.APIOlder })
}

// shrink replays a round that failed, each time with a new fleet, and returns an error with the shortest schedule.
func (p *program) shrink(ctx context.Context, round int, faults []schedule.Fault, rule verdict.Rule) error {
	fmt.Printf("looking for the shortest schedule, with at most %d replays\n", p.replays)
	shortest, replayed := schedule.Shrink(faults, p.replays, func(some []schedule.Fault) bool {
		if ctx.Err() != nil {
			return false
		}
		failed, err := p.replay(ctx, round, some, rule)
		if err != nil {
			fmt.Println("  a replay did not work:", err)
		}
		fmt.Printf("  with %d faults, it fails: %t\n", len(some), failed)
		return failed
	})
	return p.failure(rule, round, replayed, shortest)
}

// failure says how to see a violation again: by a schedule, whose lines are as SCHEDULE reads them. It is the shortest
// that was found, or that of the round if nothing is replayed.
func (s *settings) failure(rule verdict.Rule, round, replayed int, faults []schedule.Fault) error {
	what := "all faults of the round"
	if s.replays > 0 {
		what = fmt.Sprintf("the shortest schedule that still fails, after %d replays", replayed)
	}
	var lines strings.Builder
	for _, fault := range faults {
		fmt.Fprintln(&lines, "   ", fault)
	}
	return fmt.Errorf("%s, in round %d of seed %d; %s:\n%s", rule, round, s.seed, what, lines.String())
}

// replay reports whether a round breaks a rule again.
func (p *program) replay(ctx context.Context, round int, faults []schedule.Fault, rule verdict.Rule) (bool, error) {
	t, err := p.trial(ctx)
	if err == nil {
		err = t.round(ctx, round, faults)
	}
	failed := false
	for _, v := range t.violations() {
		failed = failed || v.Rule == rule
	}
	return failed, errors.Join(err, t.close())
}
