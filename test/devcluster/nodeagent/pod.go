package nodeagent

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
)

// pod runs one pod of the API on this machine, from the moment it is bound to the node until nothing of it is left.
type pod struct {
	node   *node
	uid    types.UID
	ip     string
	dirs   podDirs
	logDir string
	log    *slog.Logger
	ports  ports

	// Set before the first container starts, constant afterwards.
	volumes           volumes
	serviceAccountDir string

	cancel  context.CancelFunc // ends starting and restarting; running processes are ended by stop
	now     chan struct{}      // closed to end the pod without grace
	nowOnce sync.Once
	done    chan struct{} // closed when run has returned: no process is left
	dirty   chan struct{} // holds a token when the status has changed since it was last published

	mu          sync.Mutex // guards what follows, and the containers
	object      *corev1.Pod
	init        []*container
	containers  []*container
	stopping    bool
	initialized bool // all init containers have succeeded
	initFailed  bool
	prepared    bool // address and volumes are there
	problem     string
	startTime   metav1.Time
	conditions  map[corev1.PodConditionType]corev1.PodCondition
	forwarders  map[string]*forwarder // by address
}

func newPod(n *node, object *corev1.Pod) (*pod, error) {
	ip, err := n.agent.addresses.Lend()
	if err != nil {
		return nil, err
	}
	dirs, err := n.agent.makePodDirs(object)
	if err != nil {
		n.agent.addresses.Return(ip)
		return nil, err
	}
	p := &pod{
		node: n, uid: object.UID, ip: ip, dirs: dirs,
		logDir:     filepath.Join(n.agent.cfg.Dir, "logs", object.Namespace+"_"+object.Name+"_"+string(object.UID)),
		log:        n.agent.log.With("pod", object.Namespace+"/"+object.Name),
		now:        make(chan struct{}),
		done:       make(chan struct{}),
		dirty:      make(chan struct{}, 1),
		startTime:  metav1.Now(),
		conditions: map[corev1.PodConditionType]corev1.PodCondition{},
		forwarders: map[string]*forwarder{},
	}
	p.setObject(object)
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

func (p *pod) agent() *Agent { return p.node.agent }
func (p *pod) name() string  { return p.snapshot().Name }

// snapshot is the pod as the API had it last, with the addresses it has here. Nobody changes it.
func (p *pod) snapshot() *corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.object
}

// setObject takes over what the API says now.
func (p *pod) setObject(object *corev1.Pod) {
	object = object.DeepCopy()
	object.Status.PodIP, object.Status.HostIP = p.ip, p.node.ip
	p.mu.Lock()
	defer p.mu.Unlock()
	p.object = object
}

// run starts the containers and returns when the last process has ended for good.
func (p *pod) run(ctx context.Context) {
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
	p.stopAll(time.Now().Add(p.grace(nil))) // sidecars end after the others
}

// restarts is the pod's restart policy.
func (p *pod) restarts(code int32) bool {
	switch p.snapshot().Spec.RestartPolicy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return code != 0
	default:
		return true
	}
}

// prepare makes the volumes, trying until what they refer to exists.
func (p *pod) prepare(ctx context.Context) bool {
	for {
		made, err := p.makeVolumes(ctx)
		if err == nil {
			p.serviceAccountDir, err = p.makeServiceAccountDir(ctx)
		}
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
			p.log.Warn("preparing the pod failed, will try again", "err", err)
			p.changed()
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(startPause):
		}
	}
}

// runInit runs the init containers one after the other and tells whether all have succeeded. One that restarts always
// is a sidecar: it goes on beside the containers.
func (p *pod) runInit(ctx context.Context, sidecars *sync.WaitGroup) bool {
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
			p.stopAll(time.Now().Add(p.grace(nil)))
			return false
		}
	}
	return ctx.Err() == nil
}

// grace is the time between SIGTERM and SIGKILL: override, else the pod's own, within the agent's cap.
func (p *pod) grace(override *int64) time.Duration {
	period := 30 * time.Second
	if own := p.snapshot().Spec.TerminationGracePeriodSeconds; own != nil {
		period = time.Duration(*own) * time.Second
	}
	if override != nil {
		period = time.Duration(*override) * time.Second
	}
	if most := p.agent().cfg.MaxGracePeriod; most > 0 {
		period = min(period, most)
	}
	return period
}

// stopAll ends every process, gracefully until the deadline, and returns when none is left. Nothing starts afterwards.
func (p *pod) stopAll(deadline time.Time) {
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

// stop ends the pod: everything within grace, everything at once when kill is called meanwhile.
func (p *pod) stop(grace time.Duration) {
	p.stopAll(time.Now().Add(grace))
	<-p.done
}

// kill ends the pod, or the stop that is under way, without grace.
func (p *pod) kill() {
	p.nowOnce.Do(func() { close(p.now) })
	p.stopAll(time.Now())
}

// release gives back what the pod had on the machine. The logs stay.
func (p *pod) release() {
	p.mu.Lock()
	for _, f := range p.forwarders {
		f.close()
	}
	p.mu.Unlock()
	if err := p.dirs.remove(); err != nil {
		p.log.Warn("removing the pod's directories failed", "err", err)
	}
	p.agent().addresses.Return(p.ip)
}

// ray is what is needed to rewrite the pod's commands.
func (p *pod) ray() rayPod {
	return rayPod{
		ip:      p.ip,
		tempDir: p.dirs.ray,
		find:    p.agent().serviceAddress,
		port:    p.ports.port,
		forward: p.forward,
	}
}

// forward makes port from of the pod's address lead to port to of it.
func (p *pod) forward(from, to string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	address := net.JoinHostPort(p.ip, from)
	if _, there := p.forwarders[address]; there {
		return nil
	}
	f, err := newForwarder(address, net.JoinHostPort(p.ip, to))
	if err != nil {
		return fmt.Errorf("forwarding %s: %w", address, err)
	}
	p.forwarders[address] = f
	return nil
}

// changed asks for the status to be published. It never blocks.
func (p *pod) changed() {
	select {
	case p.dirty <- struct{}{}:
	default:
	}
}

// container finds a container, init containers included.
func (p *pod) container(name string) *container {
	for _, c := range slices.Concat(p.containers, p.init) {
		if c.spec.Name == name {
			return c
		}
	}
	return nil
}
