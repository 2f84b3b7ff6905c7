package rig

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// driverProgram is the Python driver. The comment at its top describes the protocol.
//
//go:embed driver.py
var driverProgram []byte

// ErrLost means that Ray reported the end of work that the test had not released.
var ErrLost = errors.New("work was lost")

// Command is an instruction to the driver. Resources, Labels and Fallbacks are Ray options: resources, label_selector
// and the label selectors of fallback_strategy.
type Command struct {
	Do        string              `json:"do"`
	ID        string              `json:"id"`
	CPUs      float64             `json:"num_cpus,omitempty"`
	GPUs      float64             `json:"num_gpus,omitempty"`
	Resources map[string]float64  `json:"resources,omitempty"`
	Labels    map[string]string   `json:"labels,omitempty"`
	Fallbacks []map[string]string `json:"fallbacks,omitempty"`
	Seconds   float64             `json:"seconds,omitempty"`
	// Detached: the actor outlives its driver. Restarts is how often Ray restarts it, or tries a task again; -1 is
	// always.
	Detached bool                 `json:"detached,omitempty"`
	Restarts int                  `json:"restarts,omitempty"`
	Bundles  []map[string]float64 `json:"bundles,omitempty"`
	Strategy string               `json:"strategy,omitempty"`
	// Topology is a label. All bundles of the placement group are on nodes with one value of it.
	Topology string `json:"topology,omitempty"`
	// Batches and Actors describe a pipeline: the number of batches, and the minimum and maximum size of its actor
	// pool.
	Batches int    `json:"batches,omitempty"`
	Actors  [2]int `json:"actors,omitzero"`
	// Workers is the number of workers of a training job, each with Resources.
	Workers int `json:"workers,omitempty"`
}

// Event is a report from the driver. At is the time of the event by this machine's clock.
type Event struct {
	ID    string
	Event string
	At    time.Time
	// Pod is the pod that ran the work. Nodes are the IDs of the Ray nodes that hold a placement group.
	Pod   string
	Nodes []string
	// Step is the step of a training job that has its checkpoint.
	Step int
	// Error is the reason why work was lost.
	Error string
}

// UnmarshalJSON decodes an event in the driver's format.
func (e *Event) UnmarshalJSON(data []byte) error {
	var wire struct {
		ID, Event, Pod, Error string
		At                    float64
		Step                  int
		Nodes                 []string
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	whole, fraction := math.Modf(wire.At)
	*e = Event{
		ID:    wire.ID,
		Event: wire.Event,
		Pod:   wire.Pod,
		Error: wire.Error,
		At:    time.Unix(int64(whole), int64(fraction*1e9)),
		Nodes: wire.Nodes,
		Step:  wire.Step,
	}
	return nil
}

// Driver is a Ray driver in its own process.
type Driver struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	log   *os.File

	mu     sync.Mutex // guards events and changed
	events []Event
	// changed is closed and replaced whenever an event is added.
	changed chan struct{}
	done    chan struct{}
}

// StartDriver connects a driver to the head at address (host:port) and returns when Ray has accepted it. It uses the
// Python interpreter of a Ray environment. The program and the log are in dir.
func StartDriver(ctx context.Context, python, address, dir string, env ...string) (*Driver, error) {
	program := filepath.Join(dir, "driver.py")
	if err := os.WriteFile(program, driverProgram, 0o644); err != nil {
		return nil, fmt.Errorf("starting the driver: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(dir, "driver.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("starting the driver: %w", err)
	}
	d := &Driver{
		cmd:     exec.Command(python, "-u", program, address),
		log:     log,
		changed: make(chan struct{}),
		done:    make(chan struct{}),
	}
	own := []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH")}
	d.cmd.Env = append(append(own, "RAY_USAGE_STATS_ENABLED=0", "PYTHONDONTWRITEBYTECODE=1"), env...)
	d.cmd.Stderr = log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	stdout, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the driver: %w", err)
	}
	if d.stdin, err = d.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting the driver: %w", err)
	}
	if err := start(d.cmd); err != nil {
		return nil, fmt.Errorf("starting the driver: %w", err)
	}
	go d.listen(stdout)
	if _, err := d.Wait(ctx, "", "ready"); err != nil {
		d.Kill()
		return nil, fmt.Errorf("connecting the driver to %s (see %s): %w", address, log.Name(), err)
	}
	return d, nil
}

// listen reads the driver's events until the driver exits.
func (d *Driver) listen(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintf(d.log, "%s\n", lines.Bytes())
			continue
		}
		d.add(e)
	}
	d.cmd.Wait() // missing events show a failure
	d.log.Close()
	close(d.done)
}

func (d *Driver) add(e Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
	close(d.changed)
	d.changed = make(chan struct{})
}

// Do sends a command to the driver. The driver reports the result as events.
func (d *Driver) Do(c Command) error {
	line, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("sending the driver command %s %s: %w", c.Do, c.ID, err)
	}
	if _, err := d.stdin.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("sending the driver command %s %s: %w", c.Do, c.ID, err)
	}
	return nil
}

// Events returns all events so far, oldest first.
func (d *Driver) Events() []Event {
	events, _ := d.read()
	return events
}

// read returns all events so far, and a channel that is closed when the next event arrives.
func (d *Driver) read() ([]Event, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.events[:len(d.events):len(d.events)], d.changed
}

// Wait waits for the first event with that name and ID. It returns ErrLost if the work is lost first.
func (d *Driver) Wait(ctx context.Context, id, event string) (Event, error) {
	for {
		events, changed := d.read()
		for _, e := range events {
			switch {
			case e.ID == id && e.Event == event:
				return e, nil
			case e.ID == id && e.Event == "lost":
				return e, fmt.Errorf("waiting until %q is %s: %w: %s", id, event, ErrLost, e.Error)
			}
		}
		select {
		case <-changed:
		case <-d.done:
			return Event{}, fmt.Errorf("waiting until %q is %s: the driver has ended", id, event)
		case <-ctx.Done():
			return Event{}, fmt.Errorf("waiting until %q is %s: %w", id, event, context.Cause(ctx))
		}
	}
}

// Lost returns all events of lost work so far.
func (d *Driver) Lost() []Event {
	var lost []Event
	for _, e := range d.Events() {
		if e.Event == "lost" {
			lost = append(lost, e)
		}
	}
	return lost
}

// Stop asks the driver to disconnect, and kills it if it still runs when ctx is done.
func (d *Driver) Stop(ctx context.Context) {
	d.stdin.Close()
	select {
	case <-d.done:
	case <-ctx.Done():
		d.Kill()
	}
}

// Kill kills the driver and waits until it has exited. Ray then ends its actors and tasks.
func (d *Driver) Kill() {
	// The process group no longer exists if the driver has just exited.
	_ = syscall.Kill(-d.cmd.Process.Pid, syscall.SIGKILL)
	<-d.done
}
