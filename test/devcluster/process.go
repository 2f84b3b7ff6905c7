package devcluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// spawner starts processes from one thread that outlives them. The kernel sends a child its parent-death signal when
// the thread that started it ends, not the process (prctl(2)), and Go may end threads at any time.
type spawner struct{ jobs chan func() }

// newSpawner returns a spawner. Closing it ends the thread, and with it every child that is left.
func newSpawner() *spawner {
	s := &spawner{jobs: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for job := range s.jobs {
			job()
		}
	}()
	return s
}

// start starts a command.
func (s *spawner) start(cmd *exec.Cmd) error {
	result := make(chan error)
	s.jobs <- func() { result <- cmd.Start() }
	return <-result
}

func (s *spawner) close() { close(s.jobs) }

// command is how to run a part. It does not change over restarts.
type command struct {
	part    Part
	program string
	args    []string
	env     []string
	dir     string
	log     string // file that the output is appended to
}

// process is a running part.
type process struct {
	command
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process is gone and err is set
	err    error

	mu      sync.Mutex // guards ending
	ending  bool       // somebody asked it to end
	onDeath func(part Part, err error)
}

// startProcess starts a part in its own process group. It calls onDeath once if the part ends by itself.
func startProcess(s *spawner, c command, onDeath func(Part, error)) (*process, error) {
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.part, err)
	}
	defer log.Close()
	cmd := exec.Command(c.program, c.args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.env, c.dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := s.start(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.part, err)
	}
	p := &process{command: c, cmd: cmd, exited: make(chan struct{}), onDeath: onDeath}
	go p.wait()
	return p, nil
}

// wait reaps the process and reports an unexpected end.
func (p *process) wait() {
	p.err = p.cmd.Wait()
	p.mu.Lock()
	asked := p.ending
	p.mu.Unlock()
	close(p.exited)
	if !asked {
		p.onDeath(p.part, p.death())
	}
}

// kill kills the process group and waits until the process is gone. No part needs an orderly end: its directory is
// removed next, or a test looks at the effects of a crash.
func (p *process) kill() error {
	p.mu.Lock()
	p.ending = true
	p.mu.Unlock()
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.exited
	return nil
}

// signal does nothing if the process has ended.
func (p *process) signal(s syscall.Signal) error {
	if err := syscall.Kill(-p.cmd.Process.Pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %s to %s: %w", s, p.part, err)
	}
	return nil
}

// death explains the end of a process by its exit status and the end of its log.
func (p *process) death() error {
	reason := "exit status 0"
	if p.err != nil {
		reason = p.err.Error()
	}
	text, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Errorf("%s ended: %s", p.part, reason)
	}
	return fmt.Errorf("%s ended: %s; its log %s ends with:\n%s", p.part, reason, p.log, lastLines(string(text), 5))
}
