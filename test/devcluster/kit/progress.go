package kit

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// heartbeat is the time between two lines about a running step if the output is not a terminal.
const heartbeat = 15 * time.Second

// progress reports the steps of a build: a line when a step begins, one every heartbeat, and one at the end. Steps may
// overlap. On a terminal, the running steps share one line that is redrawn every second.
type progress struct {
	terminal bool
	total    int
	now      func() time.Time

	mu      sync.Mutex // guards all below
	out     io.Writer
	started int
	running []*step

	stop chan struct{}
	done chan struct{}
}

// step is one thing being made.
type step struct {
	p        *progress
	number   int
	name     string
	estimate time.Duration
	began    time.Time
	spoke    time.Time
}

// newProgress returns a progress over total steps. The caller closes it.
func newProgress(out io.Writer, total int) *progress {
	p := &progress{
		out:      out,
		terminal: isTerminal(out),
		total:    total,
		now:      time.Now,
		stop:     make(chan struct{}),
		done:     make(chan struct{}),
	}
	go p.run()
	return p
}

// run reports running steps until close.
func (p *progress) run() {
	defer close(p.done)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.beat(p.now())
		case <-p.stop:
			return
		}
	}
}

// close stops run.
func (p *progress) close() {
	close(p.stop)
	<-p.done
}

// begin starts a step that is expected to take estimate.
func (p *progress) begin(name string, estimate time.Duration) *step {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started++
	now := p.now()
	s := &step{p: p, number: p.started, name: name, estimate: estimate, began: now, spoke: now}
	p.running = append(p.running, s)
	if p.terminal {
		p.redraw(now)
	} else {
		p.print("%s … about %s", s.title(), round(estimate))
	}
	return s
}

// end finishes the step; outcome is the participle of what happened to it.
func (s *step) end(outcome string) {
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for i, other := range p.running {
		if other == s {
			p.running = append(p.running[:i:i], p.running[i+1:]...)
			break
		}
	}
	p.print("%s … %s in %s", s.title(), outcome, round(now.Sub(s.began)))
	p.redraw(now)
}

// beat shows the steps that run at the time now.
func (p *progress) beat(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal {
		p.redraw(now)
		return
	}
	for _, s := range p.running {
		if now.Sub(s.spoke) >= heartbeat {
			s.spoke = now
			p.print("%s … %s of about %s", s.title(), round(now.Sub(s.began)), round(s.estimate))
		}
	}
}

// print writes one line for good.
func (p *progress) print(format string, args ...any) {
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	fmt.Fprintf(p.out, format+"\n", args...)
}

// redraw replaces the terminal's last line by the running steps.
func (p *progress) redraw(now time.Time) {
	if !p.terminal {
		return
	}
	parts := make([]string, len(p.running))
	for i, s := range p.running {
		parts[i] = fmt.Sprintf("%s … %s of about %s", s.title(), round(now.Sub(s.began)), round(s.estimate))
	}
	fmt.Fprint(p.out, "\r\x1b[K"+strings.Join(parts, "  "))
}

// title is the step's number and name.
func (s *step) title() string { return fmt.Sprintf("[%d/%d] %s", s.number, s.p.total, s.name) }

// round drops what nobody reads: fractions of a second.
func round(d time.Duration) time.Duration { return d.Round(time.Second) }

// isTerminal reports whether out is a terminal.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb" && file.Name() != os.DevNull
}
