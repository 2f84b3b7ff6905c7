package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"heliostat.dev/heliostat/test/rig"
)

const (
	// redrawPause separates two states of the line on a terminal, linePause two lines elsewhere.
	redrawPause = time.Second
	linePause   = 30 * time.Second
)

// progress is how far a run has come.
type progress struct {
	elapsed, total time.Duration
	// done and inFlight count pieces of work: tasks, actors and placement groups.
	done, inFlight int64
	// patches count changes of replicas, workers the pods that are there.
	patches, workers int
}

func (p progress) String() string {
	at := fmt.Sprintf("%s of %s", clock(min(p.elapsed, p.total)), clock(p.total))
	if p.elapsed > p.total {
		at = fmt.Sprintf("%s, the last work ends", clock(p.elapsed))
	}
	return fmt.Sprintf("%s: %d pieces of work done, %d in flight; %d patches, %d workers", at, p.done, p.inFlight,
		p.patches, p.workers)
}

// clock writes minutes and seconds, 4:07.
func clock(d time.Duration) string {
	seconds := int(d.Seconds())
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}

// progressOf reads how far the work has come.
func (w *work) progressOf(facts []rig.Fact, elapsed, total time.Duration) progress {
	p := progress{elapsed: elapsed, total: total, done: w.released.Load(), workers: len(rig.Living(facts, ""))}
	p.inFlight = w.begun.Load() - p.done
	for _, f := range facts {
		if f.Stage == rig.GroupPatched {
			p.patches++
		}
	}
	return p
}

// reporter shows progress: one line that is drawn again on a terminal, a line now and then elsewhere.
type reporter struct {
	out      io.Writer
	terminal bool
}

func newReporter(out *os.File) reporter {
	return reporter{out: out, terminal: term.IsTerminal(int(out.Fd()))}
}

func (r reporter) pause() time.Duration {
	if r.terminal {
		return redrawPause
	}
	return linePause
}

func (r reporter) show(p progress) {
	if r.terminal {
		fmt.Fprintf(r.out, "\r\033[K%s", p) // to the line's begin, and what was there is erased
		return
	}
	fmt.Fprintln(r.out, p)
}

// end leaves the terminal's line.
func (r reporter) end() {
	if r.terminal {
		fmt.Fprint(r.out, "\r\033[K")
	}
}

// follow shows what read finds until ctx ends. The caller waits for what follow returns.
func (r reporter) follow(ctx context.Context, read func() progress) *sync.WaitGroup {
	var ended sync.WaitGroup
	ended.Go(func() {
		defer r.end()
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(r.pause()):
				r.show(read())
			}
		}
	})
	return &ended
}
