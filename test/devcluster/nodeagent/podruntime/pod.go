package podruntime

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/test/devcluster/nodeagent/loopback"
	"heliostat.dev/heliostat/test/devcluster/nodeagent/volume"
)

// Pod runs one pod of the API on this machine, from the moment it is bound to the node until all its processes and
// directories are gone.
type Pod struct {
	// UID is the pod's UID in the API, and IP its address.
	UID types.UID
	IP  string

	rt     *Runtime
	hostIP string
	dirs   volume.PodDirs
	logDir string
	log    *slog.Logger
	ports  loopback.Ports

	volumes volume.Volumes // constant after the first container has started

	ctx     context.Context    // canceled when no container may start any more; stopAll ends running processes
	cancel  context.CancelFunc // of ctx
	now     chan struct{}      // closed to end the pod without a grace period
	nowOnce sync.Once
	done    chan struct{} // closed when Run has returned: no process is left
	dirty   chan struct{} // see Changed

	mu          sync.Mutex // guards the fields below, and the containers
	object      *corev1.Pod
	init        []*Container
	containers  []*Container
	stopping    bool
	initialized bool // all init containers have succeeded
	initFailed  bool
	prepared    bool // the address and the volumes exist
	problem     string
	startTime   metav1.Time
	conditions  map[corev1.PodConditionType]corev1.PodCondition
	forwarders  map[string]*loopback.Forwarder // by address
}

// NewPod makes the directories of a pod and allocates its address. Its containers can start until ctx is canceled.
func (rt *Runtime) NewPod(ctx context.Context, hostIP string, object *corev1.Pod) (*Pod, error) {
	ip, err := rt.Addresses.Allocate()
	if err != nil {
		return nil, err
	}
	dirs, err := rt.Dirs.Make(object.UID)
	if err != nil {
		rt.Addresses.Release(ip)
		return nil, err
	}
	p := &Pod{
		UID: object.UID, IP: ip,
		rt: rt, hostIP: hostIP, dirs: dirs,
		logDir:     filepath.Join(rt.LogDir, object.Namespace+"_"+object.Name+"_"+string(object.UID)),
		log:        rt.Log.With("pod", object.Namespace+"/"+object.Name),
		now:        make(chan struct{}),
		done:       make(chan struct{}),
		dirty:      make(chan struct{}, 1),
		startTime:  metav1.Now(),
		conditions: map[corev1.PodConditionType]corev1.PodCondition{},
		forwarders: map[string]*loopback.Forwarder{},
	}
	p.ctx, p.cancel = context.WithCancel(ctx)
	p.SetObject(object)
	waiting := "ContainerCreating"
	if len(object.Spec.InitContainers) > 0 {
		waiting = "PodInitializing"
	}
	for _, c := range object.Spec.InitContainers {
		p.init = append(p.init, newContainer(p, c, "PodInitializing"))
	}
	for _, c := range object.Spec.Containers {
		p.containers = append(p.containers, newContainer(p, c, waiting))
	}
	return p, nil
}

// Object returns the latest object of the API, with the pod's addresses. Callers must not change it.
func (p *Pod) Object() *corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.object
}

// SetObject replaces the object with a newer one.
func (p *Pod) SetObject(object *corev1.Pod) {
	object = object.DeepCopy()
	object.Status.PodIP, object.Status.HostIP = p.IP, p.hostIP
	p.mu.Lock()
	defer p.mu.Unlock()
	p.object = object
}

// Run runs the containers and returns when the last process has ended and none restarts.
func (p *Pod) Run() {
	ctx := p.ctx
	defer close(p.done)
	if !p.prepare(ctx) {
		return
	}
	p.changed()
	var sidecars sync.WaitGroup
	defer sidecars.Wait()
	if !p.runInit(ctx, &sidecars) {
		return
	}
	p.mu.Lock()
	p.initialized = true
	p.mu.Unlock()
	p.changed()
	var running sync.WaitGroup
	for _, c := range p.containers {
		running.Go(func() { c.run(ctx, p.restarts) })
	}
	running.Wait()
	p.stopAll(time.Now().Add(p.GracePeriod(nil))) // sidecars end after the others
}

// restarts applies the pod's restart policy to an exit code.
func (p *Pod) restarts(code int32) bool {
	switch p.Object().Spec.RestartPolicy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return code != 0
	default:
		return true
	}
}

// prepare makes the volumes. It retries until all objects that they refer to exist.
func (p *Pod) prepare(ctx context.Context) bool {
	for {
		maker := volume.Maker{Source: p.rt.Objects, CAFile: p.rt.CAFile}
		made, err := maker.Make(ctx, p.Object(), p.dirs)
		p.mu.Lock()
		p.volumes, p.prepared, p.problem = made, err == nil, ""
		if err != nil {
			p.problem = err.Error()
		}
		p.mu.Unlock()
		if err == nil {
			return true
		}
		if ctx.Err() == nil {
			p.log.Warn("preparing the pod failed; retrying", "err", err)
			p.changed()
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(RetryPause):
		}
	}
}

// runInit runs the init containers one after the other and reports whether all succeeded. An init container with the
// restart policy Always is a sidecar, which keeps running.
func (p *Pod) runInit(ctx context.Context, sidecars *sync.WaitGroup) bool {
	for _, c := range p.init {
		if policy := c.spec.RestartPolicy; policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			sidecars.Go(func() { c.run(ctx, func(int32) bool { return true }) })
			continue
		}
		code := c.run(ctx, func(code int32) bool { return code != 0 && p.restarts(code) })
		if ctx.Err() != nil {
			return false
		}
		if code != 0 {
			p.mu.Lock()
			p.initFailed = true
			p.mu.Unlock()
			p.changed()
			p.stopAll(time.Now().Add(p.GracePeriod(nil)))
			return false
		}
	}
	return ctx.Err() == nil
}

// GracePeriod returns the time between SIGTERM and SIGKILL: override, or else that of the pod, up to MaxGracePeriod.
func (p *Pod) GracePeriod(override *int64) time.Duration {
	period := 30 * time.Second
	if own := p.Object().Spec.TerminationGracePeriodSeconds; own != nil {
		period = time.Duration(*own) * time.Second
	}
	if override != nil {
		period = time.Duration(*override) * time.Second
	}
	if most := p.rt.MaxGracePeriod; most > 0 {
		period = min(period, most)
	}
	return period
}

// stopAll stops every process, with SIGKILL at the deadline, and returns when none is left. No process starts
// afterwards.
func (p *Pod) stopAll(deadline time.Time) {
	p.mu.Lock()
	p.stopping = true
	var stopping sync.WaitGroup
	for _, c := range slices.Concat(p.init, p.containers) {
		if proc := c.process; proc != nil {
			stopping.Go(func() { c.stop(proc, deadline, p.now) })
		}
	}
	p.mu.Unlock()
	p.cancel()
	stopping.Wait()
}

// Stop stops the pod within the grace period, or at once after Hurry or Kill, and returns when no process is left.
func (p *Pod) Stop(grace time.Duration) {
	p.stopAll(time.Now().Add(grace))
	<-p.done
}

// Hurry makes a Stop that runs, or a later one, kill the processes at once.
func (p *Pod) Hurry() { p.nowOnce.Do(func() { close(p.now) }) }

// Kill kills the pod's processes and returns when none is left.
func (p *Pod) Kill() {
	p.Hurry()
	p.stopAll(time.Now())
	<-p.done
}

// Release removes the pod's directories and releases its address and ports. The logs stay.
func (p *Pod) Release() {
	p.mu.Lock()
	for _, f := range p.forwarders {
		f.Close()
	}
	p.mu.Unlock()
	if err := p.dirs.Remove(); err != nil {
		p.log.Warn("removing the pod's directories failed", "err", err)
	}
	p.rt.Addresses.Release(p.IP)
}

// forward forwards connections from one port of the pod's address to another.
func (p *Pod) forward(from, to string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	address := net.JoinHostPort(p.IP, from)
	if _, ok := p.forwarders[address]; ok {
		return nil
	}
	f, err := loopback.NewForwarder(address, net.JoinHostPort(p.IP, to))
	if err != nil {
		return fmt.Errorf("forwarding %s: %w", address, err)
	}
	p.forwarders[address] = f
	return nil
}

// Changed has a token if the status changed since the last receive.
func (p *Pod) Changed() <-chan struct{} { return p.dirty }

// Done is closed when no process is left and none starts again.
func (p *Pod) Done() <-chan struct{} { return p.done }

// changed puts a token into Changed. It never blocks.
func (p *Pod) changed() {
	select {
	case p.dirty <- struct{}{}:
	default:
	}
}

// Container returns the container or init container with this name, or nil.
func (p *Pod) Container(name string) *Container {
	for _, c := range slices.Concat(p.containers, p.init) {
		if c.spec.Name == name {
			return c
		}
	}
	return nil
}
