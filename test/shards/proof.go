package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"heliostat.dev/heliostat/test/rig"
	"heliostat.dev/heliostat/test/shards/fleet"
	"heliostat.dev/heliostat/test/shards/terms"
	"heliostat.dev/heliostat/test/shards/variant"
	"heliostat.dev/heliostat/test/simray"
)

// calm is how long all shards write without faults, before the first and after the last one. patience is for what must
// happen by itself.
const (
	calm     = 15 * time.Second
	patience = 3 * time.Minute
)

// proof is a run.
type proof struct {
	*rig.Rig
	settings
	program string
	fleet   *fleet.Fleet
	members []*member
	begun   time.Time

	restarting sync.Mutex // held while the API server restarts
	mu         sync.Mutex // guards what follows
	played     map[kind]int
	// processes is how many processes were started. ends are those that ended by themselves.
	processes int
	ends      []error
	// taken are the times that RayClusters were without a decision after a kill.
	taken []time.Duration
	// shards are the names of those that must have written.
	shards []string
}

// start builds Heliostat, makes the fleet, and starts the members.
func (p *proof) start(ctx context.Context) error {
	changes, name := variant.Clock, "autoscaler-clock"
	if p.mutant {
		name = "autoscaler-mutant"
		changes = append(append(append([]variant.Change{}, changes...), variant.WithoutDeadline...),
			variant.WithoutFence...)
	}
	built := p.Cluster.Awaiting("the build of " + name)
	var err error
	p.program, err = variant.Build(ctx, p.Dir, name, changes...)
	built()
	if err != nil {
		return err
	}
	begun := time.Now()
	// No two dev clusters of a machine have the same third number of the host's address.
	var number int
	if _, err := fmt.Sscanf(p.Cluster.Host(), "127.64.%d.1", &number); err != nil {
		return fmt.Errorf("reading the host %s: %w", p.Cluster.Host(), err)
	}
	p.fleet, err = fleet.Start(ctx, fleet.Config{API: p.Cluster.RESTConfig(), Etcd: p.Cluster.Etcd(),
		Network: fmt.Sprintf("127.%d", 100+number%100), Size: p.settings.fleet})
	if err != nil {
		return err
	}
	fmt.Printf("the fleet was made in %s\n", time.Since(begun).Round(time.Second))
	for i := range p.settings.shards {
		m, err := p.newMember(i)
		if err != nil {
			return err
		}
		p.members = append(p.members, m)
	}
	var starting sync.WaitGroup
	errs := make([]error, len(p.members))
	for i, m := range p.members {
		starting.Go(func() { errs[i] = m.start(ctx) })
	}
	starting.Wait()
	return errors.Join(errs...)
}

// run lets demand come, plays kills and faults, and judges.
func (p *proof) run(ctx context.Context) error {
	p.begun = time.Now()
	working, stop := context.WithCancel(ctx)
	defer stop()
	var demand sync.WaitGroup
	demand.Go(func() { p.demand(working) })
	if err := p.calm(ctx); err != nil {
		return err
	}
	if err := p.measureKills(ctx); err != nil {
		return err
	}
	if err := p.storm(ctx); err != nil {
		return err
	}
	if err := p.calm(ctx); err != nil {
		return err
	}
	stop()
	demand.Wait()
	if err := wait(ctx, 3*time.Second); err != nil { // for the last writes
		return err
	}
	return p.judge()
}

// calm waits until all RayClusters have decisions, and then lets all shards write for a while.
func (p *proof) calm(ctx context.Context) error {
	if _, err := p.settled(ctx, p.names()); err != nil {
		return err
	}
	p.shards = append(p.shards, p.names()...)
	return wait(ctx, calm)
}

// demand submits tasks to random RayClusters.
func (p *proof) demand(ctx context.Context) {
	random := rand.New(rand.NewPCG(p.seed, 1))
	for wait(ctx, time.Second/time.Duration(p.settings.demand)) == nil {
		p.fleet.Submit(random.IntN(p.fleet.Size()), simray.Task{Runs: time.Second})
	}
}

// judge judges the audit log, and prints the figures.
func (p *proof) judge() error {
	took := time.Since(p.begun)
	file, err := os.Open(p.Cluster.AuditLog())
	if err != nil {
		return fmt.Errorf("opening the audit log: %w", err)
	}
	defer file.Close()
	log, err := terms.Read(file)
	if err != nil {
		return err
	}
	verdict := terms.Judge(log.Writes)
	p.report(took, log, verdict)
	err = verdict.Vacuous(p.shards)
	switch broken := len(verdict.Violations); {
	case p.mutant && broken == 0:
		return errors.Join(err, errors.New("the judge finds nothing in what a mutant wrote"))
	case p.mutant:
		fmt.Println("the judge has caught the mutant")
	case broken > 0:
		return errors.Join(err, fmt.Errorf("%d times a rule was broken; seed %d", broken, p.seed))
	}
	return err
}

// mishaps returns what must not happen beside the writes.
func (p *proof) mishaps() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.ends...)
}

// close ends everything that the proof has started.
func (p *proof) close() {
	for _, m := range p.members {
		m.close()
	}
	if p.fleet != nil {
		p.fleet.Close()
	}
}

// wait waits until d is over, or returns the error of ctx.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// lines joins lines with an indent.
func lines[T fmt.Stringer](items []T, most int) string {
	var text strings.Builder
	for i, item := range items {
		if i == most {
			fmt.Fprintf(&text, "  and %d more\n", len(items)-most)
			break
		}
		fmt.Fprintln(&text, " ", item)
	}
	return text.String()
}
