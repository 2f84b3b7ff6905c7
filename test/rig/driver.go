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

// driverProgram is the Python driver; its head comment is the protocol.
//
//go:embed driver.py
var driverProgram []byte

// ErrLost says that Ray reported the end of a piece of work that nobody had released.
var ErrLost = errors.New("work was lost")

// Command tells the driver what to do. Resources and Labels are Ray's options of the same meaning.
type Command struct {
	Do        string               `json:"do"`
	ID        string               `json:"id"`
	CPUs      float64              `json:"num_cpus,omitempty"`
	GPUs      float64              `json:"num_gpus,omitempty"`
	Resources map[string]float64   `json:"resources,omitempty"`
	Labels    map[string]string    `json:"labels,omitempty"`
	Seconds   float64              `json:"seconds,omitempty"`
	Bundles   []map[string]float64 `json:"bundles,omitempty"`
	Strategy  string               `json:"strategy,omitempty"`
	// Batches and Actors are a pipeline's: how many batches it has, and the least and the most actors of its pool.
	Batches int    `json:"batches,omitempty"`
	Actors  [2]int `json:"actors,omitzero"`
	// Workers are those of a training job, each with Resources.
	Workers int `json:"workers,omitempty"`
}

// Event is what the driver tells. At is the moment at which it happened, by the clock of this machine.
type Event struct {
	ID    string
	Event string
	At    time.Time
	// Pod is the pod in which work ran; Nodes are the ids of the Ray nodes that hold a placement group.
	Pod   string
	Nodes []string
	// Error says how work was lost.
	Error string
	// Groups are the node groups of a cluster config.
	Groups []NodeGroup
}

// NodeGroup is a node group as Ray's libraries read it from the cluster config. Max is -1 where there is no limit.
type NodeGroup struct {
	Name      string
	Min, Max  int
	Resources map[string]uint64
}

// UnmarshalJSON reads an event as the driver prints it.
func (e *Event) UnmarshalJSON(data []byte) error {
	var wire struct {
		ID, Event, Pod, Error string
		At                    float64
		Nodes                 json.RawMessage
		Groups                []NodeGroup
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	whole, fraction := math.Modf(wire.At)
	*e = Event{ID: wire.ID, Event: wire.Event, Pod: wire.Pod, Error: wire.Error, At: time.Unix(int64(whole), int64(fraction*1e9)), Groups: wire.Groups}
	if wire.Event == "placed" {
		return json.Unmarshal(wire.Nodes, &e.Nodes)
	}
	return nil
}

// Driver is a Ray driver as a process of its own.
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

// StartDriver connects a driver to the head at address (host:port) with the Python of a Ray environment, and returns
// when Ray has accepted it. dir takes its program and its log.
func StartDriver(ctx context.Context, python, address, dir string, env ...string) (*Driver, error) {
	program := filepath.Join(dir, "driver.py")
	if err := os.WriteFile(program, driverProgram, 0o644); err != nil {
		return nil, fmt.Errorf("starting the driver: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(dir, "driver.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("starting the driver: %w", err)
	}
	d := &Driver{cmd: exec.Command(python, "-u", program, address), log: log, changed: make(chan struct{}), done: make(chan struct{})}
	d.cmd.Env = append([]string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH"), "RAY_USAGE_STATS_ENABLED=0", "PYTHONDONTWRITEBYTECODE=1"}, env...)
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

// listen takes the driver's events until it ends.
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
	d.cmd.Wait() // how it ended is told by the events that are missing
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

// Do gives the driver a command. That it is carried out is told by its events.
func (d *Driver) Do(c Command) error {
	line, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("telling the driver to %s %s: %w", c.Do, c.ID, err)
	}
	if _, err := d.stdin.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("telling the driver to %s %s: %w", c.Do, c.ID, err)
	}
	return nil
}

// Events returns everything told so far, oldest first.
func (d *Driver) Events() []Event {
	events, _ := d.read()
	return events
}

// read returns everything told so far, and a channel that is closed when there is more.
func (d *Driver) read() ([]Event, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.events[:len(d.events):len(d.events)], d.changed
}

// Wait returns the first event of that name about id, as soon as there is one. It returns ErrLost when the work is
// lost first.
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

// Lost returns the losses told so far.
func (d *Driver) Lost() []Event {
	var lost []Event
	for _, e := range d.Events() {
		if e.Event == "lost" {
			lost = append(lost, e)
		}
	}
	return lost
}

// Stop lets the driver disconnect, and kills it when it does not within the time of ctx.
func (d *Driver) Stop(ctx context.Context) {
	d.stdin.Close()
	select {
	case <-d.done:
	case <-ctx.Done():
		d.Kill()
	}
}

// Kill ends the driver and waits for its end. Ray then ends the actors and tasks that belong to it.
func (d *Driver) Kill() {
	// The group is gone when the driver has just ended by itself; then there is nothing to kill.
	_ = syscall.Kill(-d.cmd.Process.Pid, syscall.SIGKILL)
	<-d.done
}
