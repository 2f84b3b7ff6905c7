package rig

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Main is the main function of a program that uses a rig. The first Ctrl-C cancels run. The second one kills the
// program and every process that it started.
func Main(run func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	Quiet()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Process is a running `autoscaler serve`.
type Process struct {
	// Log is the path of its log.
	Log  string
	cmd  *exec.Cmd
	done chan struct{}
}

// Launch starts `autoscaler serve` and returns when its probe succeeds. The process writes its log to dir, which is
// also its HOME.
func Launch(ctx context.Context, program, dir, probe string, env []string, arguments ...string) (*Process, error) {
	p := &Process{Log: filepath.Join(dir, "heliostat.log"), done: make(chan struct{})}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("starting Heliostat: %w", err)
	}
	memory, err := newMemoryLimit()
	if err != nil {
		return nil, fmt.Errorf("starting Heliostat: %w", errors.Join(err, log.Close()))
	}
	p.cmd = exec.Command(program, append([]string{"serve"}, arguments...)...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = append([]string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH")}, env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	memory.apply(p.cmd)
	if memory != nil {
		fmt.Fprintln(os.Stderr, memory) // not to the log, because tests parse each line of it
	}
	if err := start(p.cmd); err != nil {
		return nil, fmt.Errorf("starting Heliostat: %w", errors.Join(err, memory.end(), log.Close()))
	}
	go func() {
		p.cmd.Wait() // if it exits unexpectedly, its API stops answering
		if err := memory.end(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		log.Close()
		close(p.done)
	}()
	if err := p.ready(ctx, probe); err != nil {
		p.Kill()
		return nil, fmt.Errorf("starting Heliostat: %w; its log ends with:\n%s", err, p.LastLines(5))
	}
	return p, nil
}

// ready waits until the probe succeeds.
func (p *Process) ready(ctx context.Context, probe string) error {
	for {
		response, err := http.Get(probe)
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-p.done:
			return fmt.Errorf("it ended: %s", p.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", probe, context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended returns a channel that is closed when the process has exited.
func (p *Process) Ended() <-chan struct{} { return p.done }

// Stop sends SIGTERM, and kills the process if it still runs when ctx is done.
func (p *Process) Stop(ctx context.Context) {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-ctx.Done():
		p.Kill()
	}
}

// Kill kills the process, as a crash would, and waits until it has exited.
func (p *Process) Kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// signal sends a signal. It ignores the error, which means that the process has already exited.
func (p *Process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// LastLines returns the last n lines of the log.
func (p *Process) LastLines(n int) string { return tail(p.Log, n) }

// tail returns the last n lines of a file, or "" if it cannot read the file.
func tail(path string, n int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
