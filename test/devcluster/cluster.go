package devcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/test/devcluster/kit"
	"heliostat.dev/heliostat/test/devcluster/nodeagent"
)

// logsDir is the directory of the logs in a cluster's directory.
const logsDir = "logs"

// killGrace is how long pods may take to end when the cluster stops.
const killGrace = 10 * time.Second

// Cluster is a running dev cluster. Stop ends it.
type Cluster struct {
	options Options
	kit     *kit.Kit
	claim   *claim
	janitor *janitor
	plane   *controlPlane
	spawner *spawner
	config  *rest.Config
	client  kubernetes.Interface
	dynamic dynamic.Interface
	agent   *nodeagent.Agent
	logs    *os.File // the node agent's log, nil if the caller has one
	deaths  chan Death

	mu        sync.Mutex // guards the fields below
	processes map[Part]*process
	abort     context.CancelCauseFunc // ends the start, nil once it is over
}

// Death is the unexpected end of a part.
type Death struct {
	Part Part
	// Err has the exit status and the last lines of the log.
	Err error
}

// Start builds what is missing, starts a cluster and returns when it is ready: its API answers, service accounts exist,
// the operator and all nodes are ready. Canceling ctx ends the start, not the cluster.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	if err := kit.CheckRun(); err != nil {
		return nil, err
	}
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	needs, err := options.Needs()
	if err != nil {
		return nil, err
	}
	built, err := kit.Ensure(ctx, needs, options.Out)
	if err != nil {
		return nil, err
	}
	c, err := newCluster(ctx, options, built)
	if err != nil {
		return nil, fmt.Errorf("starting the dev cluster: %w", err)
	}
	if err := c.startAlone(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the dev cluster: %w", err), c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// newCluster claims the cluster's directory and addresses and prepares its parts.
func newCluster(ctx context.Context, options Options, built *kit.Kit) (*Cluster, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	claim, err := claimMachine(ctx, RunDir(cache), options.Dir)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		options:   options,
		kit:       built,
		claim:     claim,
		spawner:   newSpawner(),
		deaths:    make(chan Death, len(kit.Parts())),
		processes: map[Part]*process{},
	}
	if err := c.prepare(); err != nil {
		return nil, errors.Join(err, c.Stop(ctx))
	}
	return c, nil
}

// RunDir is the directory of running clusters in a cache.
func RunDir(cache string) string { return filepath.Join(cache, "run") }

// prepare fills the cluster's directory and creates the clients.
func (c *Cluster) prepare() error {
	keep := ""
	if c.options.KeepLogs {
		keep = logsDir
	}
	var err error
	if c.janitor, err = startJanitor(c.Dir(), keep); err != nil {
		return err
	}
	tmp := filepath.Join(c.Dir(), "tmp")
	for _, dir := range []string{c.Logs(), tmp} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.Dir(), "TMPDIR=" + tmp, markVariable + "=" + c.Dir()}
	if c.plane, err = newControlPlane(c.claim, c.kit, env, c.options); err != nil {
		return err
	}
	if c.config, err = restConfig(c.Kubeconfig()); err != nil {
		return err
	}
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		return err
	}
	c.dynamic, err = dynamic.NewForConfig(c.config)
	return err
}

// startAlone starts the cluster while no other one starts on this machine: each start keeps two cores busy for seconds.
func (c *Cluster) startAlone(ctx context.Context) error {
	cache, err := CacheDir()
	if err != nil {
		return err
	}
	arrived := c.Awaiting("another cluster to start")
	lock, err := kit.WaitLock(ctx, filepath.Join(RunDir(cache), ".start.lock"))
	arrived()
	if err != nil {
		return err
	}
	defer lock.Release()
	return c.start(ctx)
}

// start runs all parts and waits until they are ready. A part that dies ends the start at once.
func (c *Cluster) start(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.setAbort(cancel)
	defer c.setAbort(nil)
	for _, part := range []Part{Etcd, APIServer} {
		if err := c.run(part); err != nil {
			return err
		}
	}
	if err := c.ready(ctx, APIServer); err != nil {
		return err
	}
	steps := []func(context.Context) error{
		c.startNodes,
		c.startScheduler,
		func(ctx context.Context) error {
			// The garbage collector discovers new kinds only every 30 s, so it starts after KubeRay's are installed.
			if err := c.installKubeRay(ctx); err != nil {
				return err
			}
			if err := c.installKueue(ctx); err != nil {
				return err
			}
			return c.startParts(ctx, cancel, ControllerManager, Operator, Kueue)
		},
	}
	if c.options.karpenter() {
		steps = append(steps, c.startKarpenter)
	}
	if c.options.Kwok {
		steps = append(steps, func(ctx context.Context) error { return c.startPart(ctx, Kwok) })
	}
	return concurrently(ctx, cancel, steps)
}

// startParts starts parts at the same time, except those that the options leave out.
func (c *Cluster) startParts(ctx context.Context, cancel context.CancelCauseFunc, parts ...Part) error {
	var steps []func(context.Context) error
	unwanted := map[Part]bool{Operator: c.options.NoOperator, Kueue: !c.options.Kueue}
	for _, part := range parts {
		if !unwanted[part] {
			steps = append(steps, func(ctx context.Context) error { return c.startPart(ctx, part) })
		}
	}
	return concurrently(ctx, cancel, steps)
}

// setAbort sets how the death of a part cancels the start; nil means that the start is over.
func (c *Cluster) setAbort(abort context.CancelCauseFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abort = abort
}

// concurrently runs all steps at once. The first error cancels the others and is returned.
func concurrently(ctx context.Context, cancel context.CancelCauseFunc, steps []func(context.Context) error) error {
	var group sync.WaitGroup
	for _, step := range steps {
		group.Go(func() {
			if err := step(ctx); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// startPart runs a part and waits until it is ready.
func (c *Cluster) startPart(ctx context.Context, part Part) error {
	if err := c.run(part); err != nil {
		return err
	}
	return c.ready(ctx, part)
}

// startScheduler starts the scheduler, after the kind of PodGroup that it may need.
func (c *Cluster) startScheduler(ctx context.Context) error {
	if c.options.Coscheduling {
		crds := c.kit.File(Coscheduling, "config/crd/bases")
		if err := installCRDs(ctx, c.dynamic, crds, unchanged); err != nil {
			return fmt.Errorf("starting the gang scheduler: %w", err)
		}
	}
	return c.startPart(ctx, Scheduler)
}

// installKubeRay creates KubeRay's resource definitions and the operator's role.
func (c *Cluster) installKubeRay(ctx context.Context) error {
	if err := installCRDs(ctx, c.dynamic, c.kit.File(Operator, "config/crd/bases"), unchanged); err != nil {
		return err
	}
	return grantOperator(ctx, c.client, c.kit.File(Operator, "config/rbac/role.yaml"))
}

// unchanged leaves a resource definition as it is.
func unchanged(*unstructured.Unstructured) error { return nil }

// run starts the process of a part.
func (c *Cluster) run(part Part) error {
	command, err := c.plane.command(part)
	if err != nil {
		return err
	}
	p, err := startProcess(c.spawner, command, c.died)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes[part] = p
	return nil
}

// died handles the unexpected end of a part: it cancels a start, or reports the death of a running cluster's part.
func (c *Cluster) died(part Part, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.abort != nil {
		c.abort(err)
		return
	}
	fmt.Fprintln(c.options.Out, err)
	select {
	case c.deaths <- Death{Part: part, Err: err}:
	default: // nobody listens, and the line above was written
	}
}

// Stop ends every process of the cluster and removes its directory, except logs that the options keep. It also works
// for a cluster whose start failed.
func (c *Cluster) Stop(ctx context.Context) error {
	err := errors.Join(c.stopNodes(ctx), c.stopParts(), c.remove())
	if c.janitor != nil {
		err = errors.Join(err, c.janitor.dismiss())
	}
	c.claim.release()
	if err != nil {
		return fmt.Errorf("stopping the dev cluster: %w", err)
	}
	return nil
}

// stopParts kills the parts. Controllers go before the API server, so that they do not act on the end of the others.
func (c *Cluster) stopParts() error {
	var errs []error
	for _, part := range []Part{Operator, Karpenter, Kueue, Kwok, ControllerManager, Scheduler, APIServer, Etcd} {
		c.mu.Lock()
		p := c.processes[part]
		c.mu.Unlock()
		if p != nil {
			errs = append(errs, p.kill())
		}
	}
	c.spawner.close()
	return errors.Join(errs...)
}

// remove deletes the cluster's directory.
func (c *Cluster) remove() error {
	if !c.options.KeepLogs {
		return os.RemoveAll(c.Dir())
	}
	entries, err := os.ReadDir(c.Dir())
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() != logsDir {
			err = errors.Join(err, os.RemoveAll(filepath.Join(c.Dir(), entry.Name())))
		}
	}
	return err
}
