package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

// containerID is the environment variable with the ID of a process's container. Descendants inherit it.
const containerID = "HELIOSTAT_CONTAINER"

// Command is what a container runs.
type Command struct {
	ID      string   // unique among the containers of the machine
	Args    []string // Args[0] is the path of the program
	Env     []string // NAME=value
	Dir     string   // the working directory
	Scratch string   // an empty directory, see container.sh
	Mounts  []Mount  // outer directories first
	Output  *os.File // receives stdout and stderr; the caller closes it
}

// Process is a container's first process and its descendants.
type Process struct {
	spawner *Spawner
	cmd     *exec.Cmd
	id      string // the value of containerID
	started time.Time
	// prepared is closed when the command runs: the mounts exist, and the command itself receives signals.
	prepared chan struct{}
	done     chan struct{} // closed when the first process and its descendants have ended

	// Valid once done is closed.
	ended  time.Time
	status syscall.WaitStatus
}

// Start runs a command in new namespaces.
func (s *Spawner) Start(c Command) (*Process, error) {
	// containerScript closes its end of the pipe before it executes the command. If it ends earlier, the kernel does.
	preparing, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	args := s.isolation.wrap(c.Scratch, c.Dir, c.Mounts, c.Args)
	cmd := &exec.Cmd{
		Path:        args[0],
		Args:        args,
		Env:         append(slices.Clone(c.Env), containerID+"="+c.ID),
		Dir:         c.Dir,
		Stdout:      c.Output,
		Stderr:      c.Output,
		SysProcAttr: s.isolation.attributes(),
	}
	if s.isolation.mounts {
		cmd.ExtraFiles = []*os.File{theirs}
	}
	p := &Process{
		spawner: s, cmd: cmd, id: c.ID,
		prepared: make(chan struct{}), done: make(chan struct{}),
	}
	err = errors.Join(s.start(cmd), theirs.Close())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", args[0], err), preparing.Close())
	}
	p.started = time.Now()
	go p.prepare(preparing)
	go p.wait()
	return p, nil
}

func (p *Process) prepare(preparing *os.File) {
	defer close(p.prepared)
	defer preparing.Close()
	_, _ = preparing.Read(make([]byte, 1)) // returns when the other end is closed
}

func (p *Process) wait() {
	defer close(p.done)
	_ = p.cmd.Wait() // the exit status has the error
	if p.outlived() {
		killAll(p.id)
	}
	p.ended = time.Now()
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
		p.status = status
	}
}

// outlived reports whether descendants can outlive the first process: without a PID namespace the kernel leaves them.
func (p *Process) outlived() bool { return !p.spawner.isolation.pids }

// Prepared is closed when the container's own command runs, or has ended before.
func (p *Process) Prepared() <-chan struct{} { return p.prepared }

// Done is closed when the first process and its descendants have ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Started returns when the process started.
func (p *Process) Started() time.Time { return p.started }

// Ended returns when the process ended. It is valid once Done is closed.
func (p *Process) Ended() time.Time { return p.ended }

// Terminate sends SIGTERM to the container's own command.
func (p *Process) Terminate() { p.signal(syscall.SIGTERM) }

// Kill sends SIGKILL to the first process. With a PID namespace the kernel then kills its descendants; without one,
// wait does. Ray's processes rename themselves, which overwrites the environment that others see, so without a PID
// namespace Kill also kills the descendants while their parents still identify them.
func (p *Process) Kill() {
	var below []int
	if p.outlived() {
		below = descendants(p.cmd.Process.Pid)
	}
	p.signal(syscall.SIGKILL)
	for _, pid := range below {
		_ = syscall.Kill(pid, syscall.SIGKILL) // the process can have ended already
	}
}

func (p *Process) signal(s syscall.Signal) {
	// os.Process knows that a process has ended, so the signal never reaches another process with the same PID.
	_ = p.cmd.Process.Signal(s) // the process can have ended already
}

// ExitCode returns the exit code of the first process. After a signal it is 128 + the number of the signal, as for
// shells and container runtimes. It is valid once Done is closed.
func (p *Process) ExitCode() int32 {
	if p.status.Signaled() {
		return 128 + int32(p.status.Signal())
	}
	return int32(p.status.ExitStatus())
}
