package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// startPause is the time between attempts to start a container that lacks something: an image, a Secret, the
	// address of a Service.
	startPause = 500 * time.Millisecond
	// backoffReset is how long a container must have run for its next restart to be prompt again, as for the kubelet.
	backoffReset = 10 * time.Minute
)

// errStopping ends a start that came too late.
var errStopping = errors.New("the pod is stopping")

// waitingError is why a container does not start, in the words kubectl shows.
type waitingError struct {
	reason string
	err    error
}

func (e *waitingError) Error() string { return e.err.Error() }
func (e *waitingError) Unwrap() error { return e.err }

// container is one container of a pod and its runs.
type container struct {
	pod  *pod
	spec corev1.Container

	// Guarded by pod.mu.
	state, last    corev1.ContainerState
	ready, started bool
	restarts       int32
	finished       bool // ended, and not to be started again
	process        *process
	env            environment
	workdir        string
	rayStarted     func() // see enterRayStart
	log            string // path of the log of the current run, or of the last one
	previousLog    string
}

func newContainer(p *pod, spec corev1.Container, reason string) *container {
	return &container{
		pod:   p,
		spec:  spec,
		state: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
	}
}

// run restarts the container until again returns false, or until ctx is canceled and the process has ended. It returns
// the last exit code.
func (c *container) run(ctx context.Context, again func(code int32) bool) int32 {
	pause := time.Duration(0)
	for {
		proc, err := c.start(ctx)
		if err != nil {
			return -1 // only ctx ends the attempts
		}
		code := c.attend(ctx, proc)
		if ctx.Err() != nil || !again(code) {
			c.finish()
			return code
		}
		if proc.ended.Sub(proc.started) >= backoffReset {
			pause = 0
		}
		if !c.backOff(ctx, pause, code) {
			c.finish()
			return code
		}
		pause = min(max(2*pause, c.pod.agent().cfg.RestartBackoff), 30*c.pod.agent().cfg.RestartBackoff)
	}
}

func (c *container) finish() {
	c.pod.mu.Lock()
	c.finished = true
	c.pod.mu.Unlock()
	c.pod.changed()
}

// backOff waits before the next start and tells whether there is to be one.
func (c *container) backOff(ctx context.Context, pause time.Duration, code int32) bool {
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
		c.previousLog = c.log // readers of the status find it
		c.pod.mu.Unlock()
		return true
	}
}

// start tries until the container's process runs or ctx is canceled. Why it does not is in the container's status.
func (c *container) start(ctx context.Context) (*process, error) {
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
		case <-time.After(startPause):
		}
	}
}

// launch starts the container's process now or says why it cannot.
func (c *container) launch(ctx context.Context) (proc *process, err error) {
	command, env, err := c.commandLine(ctx)
	if err != nil {
		return nil, err
	}
	c.rayStarted, err = c.enterRayStart(ctx, command)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.rayStarted()
		}
	}()
	mounts, err := c.pod.mounts(&c.spec)
	if err != nil {
		return nil, &waitingError{"CreateContainerConfigError", err}
	}
	workdir := c.spec.WorkingDir
	if workdir == "" {
		workdir = c.pod.dirs.home
	}
	log, err := c.openLog()
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own

	spawner := c.pod.agent().spawner
	if !spawner.isolation.mounts {
		mounts = nil
	}
	argv := spawner.isolation.wrap(c.pod.dirs.scratch, workdir, mounts, command)
	if proc, err = c.spawn(argv, env, workdir, log); err != nil {
		return nil, err
	}
	<-proc.prepared
	c.pod.mu.Lock()
	c.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(proc.started)}}
	c.pod.mu.Unlock()
	c.pod.changed()
	return proc, nil
}

// spawn starts the process unless the pod is being stopped: stop must find every process that was started.
func (c *container) spawn(argv []string, env environment, workdir string, log *os.File) (*process, error) {
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	if c.pod.stopping {
		return nil, errStopping
	}
	proc, err := c.pod.agent().spawner.startProcess(argv, env.list(), workdir, c.mark(), log)
	if err != nil {
		return nil, &waitingError{"RunContainerError", err}
	}
	c.process, c.log, c.env, c.workdir = proc, log.Name(), env, workdir
	return proc, nil
}

// mark is the value of containerMark for this container.
func (c *container) mark() string { return string(c.pod.uid) + "/" + c.spec.Name }

// commandLine returns the command with its environment, both as Kubernetes defines them and rewritten for Ray.
func (c *container) commandLine(ctx context.Context) ([]string, environment, error) {
	a := c.pod.agent()
	programs, ok := a.imageDirectory(c.spec.Image)
	if !ok {
		return nil, nil, &waitingError{
			"ErrImagePull",
			fmt.Errorf("no programs are known for image %q: add it to the table of images", c.spec.Image),
		}
	}
	env, err := resolveEnv(ctx, a.baseEnvironment(c.pod, programs), c.pod.snapshot(), &c.spec, a)
	if err != nil {
		return nil, nil, &waitingError{"CreateContainerConfigError", err}
	}
	words := make([]string, 0, len(c.spec.Command)+len(c.spec.Args))
	for _, word := range append(append(words, c.spec.Command...), c.spec.Args...) {
		words = append(words, expand(word, env))
	}
	if len(words) == 0 {
		return nil, nil, &waitingError{
			"CreateContainerError",
			errors.New("no command: an image is only a directory of programs here and names none"),
		}
	}
	ray := c.pod.ray()
	if words, err = ray.rewriteArgs(ctx, words); err == nil {
		err = ray.rewriteEnv(ctx, env)
	}
	if err != nil {
		return nil, nil, &waitingError{"ContainerCreating", err}
	}
	if words[0], err = lookProgram(words[0], env["PATH"]); err != nil {
		return nil, nil, &waitingError{"RunContainerError", err}
	}
	return words, env, nil
}

// lookProgram finds a program the way execvp does, in the container's PATH instead of the agent's.
func lookProgram(name, path string) (string, error) {
	if filepath.Base(name) != name {
		return name, nil
	}
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("executable file %q not found in PATH %s", name, path)
}

// attend waits for the process to end, watching its probes, and records how it ended.
func (c *container) attend(ctx context.Context, proc *process) int32 {
	watching, stop := context.WithCancel(ctx)
	var probes sync.WaitGroup
	probes.Go(func() { c.watchProbes(watching, proc) })
	probes.Go(func() { c.leaveRayStart(watching, c.rayStarted) })
	<-proc.done
	stop()
	probes.Wait()

	code, _ := proc.exit()
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	c.pod.mu.Lock()
	c.state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode:    code,
		Reason:      reason,
		StartedAt:   metav1.NewTime(proc.started),
		FinishedAt:  metav1.NewTime(proc.ended),
		ContainerID: c.id(),
	}}
	c.last = c.state
	c.process, c.ready, c.started = nil, false, false
	c.pod.mu.Unlock()
	c.pod.changed()
	return code
}

// id is what the container's status calls it: a scheme and a name, as the API demands.
func (c *container) id() string {
	return fmt.Sprintf("process://%s/%s/%d", c.pod.uid, c.spec.Name, c.restarts)
}

func (c *container) setWaiting(reason, message string) {
	c.pod.mu.Lock()
	was := c.state.Waiting
	same := was != nil && was.Reason == reason && was.Message == message
	c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	c.pod.mu.Unlock()
	if !same {
		c.pod.changed()
	}
}

func (c *container) setReady(started, ready bool) {
	c.pod.mu.Lock()
	same := c.started == started && c.ready == ready
	c.started, c.ready = started, ready
	c.pod.mu.Unlock()
	if !same {
		c.pod.changed()
	}
}

// stop ends one run: preStop, SIGTERM, and SIGKILL when the deadline has come or now is closed.
func (c *container) stop(proc *process, deadline time.Time, now <-chan struct{}) {
	late := time.NewTimer(time.Until(deadline))
	defer late.Stop()
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		<-proc.prepared
		c.preStop(ctx)
		proc.terminate()
	}()
	select {
	case <-proc.done:
	case <-late.C:
		proc.kill()
	case <-now:
		proc.kill()
	}
	cancel()
	<-asked
	<-proc.done
}

// preStop runs the hook; like the kubelet it goes on whether the hook succeeds or not.
func (c *container) preStop(ctx context.Context) {
	if c.spec.Lifecycle == nil || c.spec.Lifecycle.PreStop == nil {
		return
	}
	hook := c.spec.Lifecycle.PreStop
	handler := corev1.ProbeHandler{Exec: hook.Exec, HTTPGet: hook.HTTPGet, TCPSocket: hook.TCPSocket}
	if hook.Sleep != nil {
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(hook.Sleep.Seconds) * time.Second):
		}
		return
	}
	if err := c.check(ctx, handler); err != nil {
		c.pod.log.Warn("preStop hook failed", "container", c.spec.Name, "err", err)
	}
}

// openLog opens the log of the run that is about to start.
func (c *container) openLog() (*os.File, error) {
	c.pod.mu.Lock()
	name := fmt.Sprintf("%s_%d.log", c.spec.Name, c.restarts)
	c.pod.mu.Unlock()
	if err := os.MkdirAll(c.pod.logDir, 0o755); err != nil {
		return nil, fmt.Errorf("making the log directory: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(c.pod.logDir, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	return log, nil
}
