package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"heliostat.dev/heliostat/test/chaos/apiproxy"
	"heliostat.dev/heliostat/test/devcluster"
)

// kind is a kind of fault.
type kind string

// The kinds of faults. All but those of the API server and roll concern one process.
const (
	kill      kind = "process killed"
	suspend   kind = "process suspended"
	clockStep kind = "wall clock steps"
	cutOff    kind = "cut off"
	apiServer kind = "API server restarts"
	roll      kind = "rolling update"
)

// weights say how often each kind is drawn.
var weights = []struct {
	kind kind
	of   int
}{{kill, 5}, {suspend, 5}, {clockStep, 4}, {cutOff, 6}, {apiServer, 1}, {roll, 1}}

// step is by how many seconds a wall clock is wrong, before or behind.
const step = 60

// fault is a fault that begins After the begin of the one before, and lasts For.
type fault struct {
	After, For time.Duration
	Kind       kind
	// Member is the number of the process, Cut the way in which it is cut off, and Behind whether its clock is slow.
	Member int
	Cut    apiproxy.Cut
	Behind bool
}

// String is one line.
func (f fault) String() string { return fmt.Sprintf("%s of %d for %s", f.Kind, f.Member, f.For) }

// draw returns faults. Each lasts about as long as a Lease, so that some members are lost and some are not; one that is
// suspended always misses its Lease of 6 s.
func draw(seed uint64, count, members int) []fault {
	random := rand.New(rand.NewPCG(seed, 3))
	upTo := func(d time.Duration) time.Duration {
		return time.Duration(random.Int64N(int64(d))).Round(time.Millisecond)
	}
	var deck []kind
	for _, w := range weights {
		for range w.of {
			deck = append(deck, w.kind)
		}
	}
	faults := make([]fault, count)
	for i := range faults {
		f := fault{After: time.Second + upTo(5*time.Second), For: time.Second + upTo(11*time.Second),
			Kind: deck[random.IntN(len(deck))], Member: random.IntN(members),
			Cut: apiproxy.Cuts[random.IntN(len(apiproxy.Cuts))], Behind: random.IntN(2) == 0}
		if f.Kind == suspend {
			f.For = 7*time.Second + upTo(6*time.Second)
		}
		faults[i] = f
	}
	return faults
}

// storm plays the faults, and returns when all have ended.
func (p *proof) storm(ctx context.Context) error {
	var playing sync.WaitGroup
	faults := draw(p.seed, p.faults, len(p.members))
	errs := make([]error, len(faults)+1)
	for i, f := range faults {
		if errs[len(faults)] = wait(ctx, f.After); errs[len(faults)] != nil {
			break
		}
		if (i+1)%20 == 0 {
			fmt.Printf("fault %d of %d after %s\n", i+1, len(faults), time.Since(p.begun).Round(time.Second))
		}
		playing.Go(func() {
			if err := p.play(ctx, f); err != nil {
				errs[i] = fmt.Errorf("playing %s: %w", f, err)
			}
		})
	}
	playing.Wait()
	return errors.Join(errs...)
}

// play plays one fault. Those that need the same thing wait for each other.
func (p *proof) play(ctx context.Context, f fault) error {
	m := p.members[f.Member]
	err := p.playOn(ctx, f, m)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.played[f.Kind]++
	return err
}

func (p *proof) playOn(ctx context.Context, f fault, m *member) error {
	switch f.Kind {
	case kill:
		m.turn.Lock()
		defer m.turn.Unlock()
		m.kill()
		if err := wait(ctx, f.For); err != nil {
			return err
		}
		return m.start(ctx)
	case suspend:
		m.turn.Lock()
		defer m.turn.Unlock()
		return m.suspend(ctx, f.For)
	case clockStep:
		seconds := step
		if f.Behind {
			seconds = -step
		}
		if err := m.setClock(seconds); err != nil {
			return err
		}
		return errors.Join(wait(ctx, f.For), m.setClock(0))
	case cutOff:
		end := m.proxy.Add(apiproxy.Fault{Cut: f.Cut})
		defer end()
		return wait(ctx, f.For)
	case apiServer:
		p.restarting.Lock()
		defer p.restarting.Unlock()
		return p.Cluster.RestartPart(ctx, devcluster.APIServer)
	case roll:
		return p.roll(ctx)
	}
	return fmt.Errorf("no such fault: %s", f.Kind)
}

// roll replaces all processes, one after the other.
func (p *proof) roll(ctx context.Context) error {
	for _, m := range p.members {
		m.turn.Lock()
		err := m.replace(ctx)
		m.turn.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}
