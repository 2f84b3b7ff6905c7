package podruntime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/test/devcluster/nodeagent/env"
	"heliostat.dev/heliostat/test/devcluster/nodeagent/sandbox"
)

const (
	// RetryPause is the time between attempts to start a container that lacks an image, a Secret, or the address of a
	// Service.
	RetryPause = 500 * time.Millisecond
	// backoffReset is the kubelet's: after a run of this length the next restart has no pause.
	backoffReset = 10 * time.Minute
)

// errStopping means that a container cannot start because the pod is stopping.
var errStopping = errors.New("the pod is stopping")

// waitingError is the reason why a container does not start, as kubectl shows it.
type waitingError struct {
	reason string
	err    error
}

func (e *waitingError) Error() string { return e.err.Error() }
func (e *waitingError) Unwrap() error { return e.err }

// Container is one container of a pod and its runs.
type Container struct {
	pod  *Pod
	spec corev1.Container

	// Guarded by pod.mu.
	state, last    corev1.ContainerState
	ready, started bool
	restarts       int32
	finished       bool // ended, and does not start again
	process        *sandbox.Process
	vars           env.Vars
	workdir        string
	rayStarted     func() // see waitForRayStart
	log            string // the path of the log of the current run, or of the last one
	previousLog    string
}

func newContainer(p *Pod, spec corev1.Container, reason string) *Container {
	return &Container{
		pod:   p,
		spec:  spec,
		state: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
	}
}

// run restarts the container until again returns false for its exit code, or until ctx is canceled and the process has
// ended. It returns the last exit code.
func (c *Container) run(ctx context.Context, again func(code int32) bool) int32 {
	pause := time.Duration(0)
	for {
		proc, err := c.start(ctx)
		if err != nil {
			return -1 // ctx is canceled
		}
		code := c.wait(ctx, proc)
		if ctx.Err() != nil || !again(code) {
			c.finish()
			return code
		}
		if proc.Ended().Sub(proc.Started()) >= backoffReset {
			pause = 0
		}
		if !c.backOff(ctx, pause, code) {
			c.finish()
			return code
		}
		pause = min(max(2*pause, c.pod.rt.RestartBackoff), 30*c.pod.rt.RestartBackoff)
	}
}

func (c *Container) finish() {
	c.pod.mu.Lock()
	c.finished = true
	c.pod.mu.Unlock()
	c.pod.changed()
}

// backOff waits before the next start. It returns false if ctx is canceled first.
func (c *Container) backOff(ctx context.Context, pause time.Duration, code int32) bool {
	if pause > 0 {
		message := fmt.Sprintf("back-off %s restarting failed container %s", pause, c.spec.Name)
		c.setWaiting("CrashLoopBackOff", message)
	}
	c.pod.log.Info("restarting container", "container", c.spec.Name, "exitCode", code, "after", pause)
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		c.pod.mu.Lock()
		c.restarts++
		c.previousLog = c.log // before the status reports the restart
		c.pod.mu.Unlock()
		return true
	}
}

// start tries until the container's process runs or ctx is canceled. The status has the reason why it does not run.
func (c *Container) start(ctx context.Context) (*sandbox.Process, error) {
	for {
		proc, err := c.launch(ctx)
		if err == nil {
			return proc, nil
		}
		if ctx.Err() != nil || errors.Is(err, errStopping) {
			return nil, errStopping
		}
		reason := "CreateContainerError"
		if waiting := (*waitingError)(nil); errors.As(err, &waiting) {
			reason = waiting.reason
		}
		c.setWaiting(reason, err.Error())
		select {
		case <-ctx.Done():
			return nil, errStopping
		case <-time.After(RetryPause):
		}
	}
}

// launch starts the container's process once.
func (c *Container) launch(ctx context.Context) (proc *sandbox.Process, err error) {
	command, vars, err := c.commandLine(ctx)
	if err != nil {
		return nil, err
	}
	c.rayStarted, err = c.waitForRayStart(ctx, command)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.rayStarted()
		}
	}()
	mounts, err := c.pod.volumes.Mounts(&c.spec)
	if err != nil {
		return nil, &waitingError{"CreateContainerConfigError", err}
	}
	log, err := c.openLog()
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own file descriptor

	proc, err = c.spawn(vars, sandbox.Command{
		ID:      string(c.pod.UID) + "/" + c.spec.Name,
		Args:    command,
		Env:     vars.List(),
		Dir:     cmp.Or(c.spec.WorkingDir, c.pod.dirs.Home),
		Scratch: c.pod.dirs.Scratch,
		Mounts:  mounts,
		Output:  log,
	})
	if err != nil {
		return nil, err
	}
	<-proc.Prepared()
	c.pod.mu.Lock()
	c.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(proc.Started())}}
	c.pod.mu.Unlock()
	c.pod.changed()
	return proc, nil
}

// spawn starts the process unless the pod is stopping: stop must find every process.
func (c *Container) spawn(vars env.Vars, command sandbox.Command) (*sandbox.Process, error) {
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	if c.pod.stopping {
		return nil, errStopping
	}
	proc, err := c.pod.rt.Spawner.Start(command)
	if err != nil {
		return nil, &waitingError{"RunContainerError", err}
	}
	c.process, c.log, c.vars, c.workdir = proc, command.Output.Name(), vars, command.Dir
	return proc, nil
}

// wait runs the probes until the process ends, and records how it ended.
func (c *Container) wait(ctx context.Context, proc *sandbox.Process) int32 {
	watching, stop := context.WithCancel(ctx)
	var probes sync.WaitGroup
	probes.Go(func() { c.watchProbes(watching, proc) })
	probes.Go(func() { c.watchRayStart(watching, c.rayStarted) })
	<-proc.Done()
	stop()
	probes.Wait()

	code := proc.ExitCode()
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	c.pod.mu.Lock()
	c.state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode:    code,
		Reason:      reason,
		StartedAt:   metav1.NewTime(proc.Started()),
		FinishedAt:  metav1.NewTime(proc.Ended()),
		ContainerID: c.id(),
	}}
	c.last = c.state
	c.process, c.ready, c.started = nil, false, false
	c.pod.mu.Unlock()
	c.pod.changed()
	return code
}

// id returns the ContainerID of the status, which the API requires to have a scheme.
func (c *Container) id() string {
	return fmt.Sprintf("process://%s/%s/%d", c.pod.UID, c.spec.Name, c.restarts)
}

func (c *Container) setWaiting(reason, message string) {
	c.pod.mu.Lock()
	was := c.state.Waiting
	same := was != nil && was.Reason == reason && was.Message == message
	c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	c.pod.mu.Unlock()
	if !same {
		c.pod.changed()
	}
}

func (c *Container) setReady(started, ready bool) {
	c.pod.mu.Lock()
	same := c.started == started && c.ready == ready
	c.started, c.ready = started, ready
	c.pod.mu.Unlock()
	if !same {
		c.pod.changed()
	}
}
