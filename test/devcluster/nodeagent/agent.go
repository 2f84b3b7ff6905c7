package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/client-go/kubernetes"

	"heliostat.dev/heliostat/test/devcluster/nodeagent/loopback"
	"heliostat.dev/heliostat/test/devcluster/nodeagent/objects"
	"heliostat.dev/heliostat/test/devcluster/nodeagent/podruntime"
	"heliostat.dev/heliostat/test/devcluster/nodeagent/sandbox"
	"heliostat.dev/heliostat/test/devcluster/nodeagent/volume"
)

// Agent runs the pods of its nodes until Stop.
type Agent struct {
	cfg    Config
	log    *slog.Logger
	client kubernetes.Interface
	pods   *podruntime.Runtime
	tmpRay *volume.SharedMountPoint

	cancel context.CancelFunc
	tasks  sync.WaitGroup
	stop   sync.Once
	err    error // of the stop

	mu     sync.Mutex // guards images and nodes
	images Images
	nodes  map[string]*node
}

// Start registers the nodes and returns when all of them are Ready. Canceling ctx later does not stop the agent; call
// Stop.
func Start(ctx context.Context, cfg Config) (*Agent, error) {
	a, err := newAgent(cfg)
	if err != nil {
		return nil, fmt.Errorf("starting node agent: %w", err)
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a.cancel = cancel
	err = a.startNodes(ctx, running)
	if err == nil && cfg.AdoptProvider != "" {
		err = a.startAdopting(running)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting node agent: %w", err), a.Stop(context.WithoutCancel(ctx)))
	}
	return a, nil
}

func newAgent(cfg Config) (*Agent, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(cfg.REST)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	a := &Agent{
		cfg:    cfg,
		log:    cfg.Log,
		client: client,
		images: maps.Clone(cfg.Images),
		nodes:  map[string]*node{},
	}
	if err := a.makeRuntime(); err != nil {
		return nil, err
	}
	if a.pods.Spawner.HasMounts() {
		a.tmpRay, err = volume.ShareMountPoint(volume.RayTempDir)
		if err != nil {
			return nil, err
		}
	} else {
		a.log.Warn("this machine allows no mount namespaces; pods have no volumes and no service account tokens")
	}
	a.log.Debug("pods are isolated", "isolation", a.pods.Spawner.Isolation())
	return a, nil
}

// makeRuntime makes what all pods of the agent use.
func (a *Agent) makeRuntime() error {
	addresses, err := loopback.NewAddresses(a.cfg.PodCIDR)
	if err != nil {
		return err
	}
	logs := filepath.Join(a.cfg.Dir, "logs")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return fmt.Errorf("making the log directory: %w", err)
	}
	dirs, err := volume.NewDirs(a.cfg.Dir)
	if err != nil {
		return err
	}
	a.pods = &podruntime.Runtime{
		Spawner:        sandbox.NewSpawner(),
		Addresses:      addresses,
		Dirs:           dirs,
		Objects:        objects.Reader{Client: a.client},
		ImageDirectory: a.imageDirectory,
		LogDir:         logs,
		APIServer:      a.cfg.APIServer,
		CAFile:         a.cfg.CAFile,
		MaxGracePeriod: a.cfg.MaxGracePeriod,
		RestartBackoff: a.cfg.RestartBackoff,
		RayStart:       a.cfg.RayStart,
		Log:            a.log,
	}
	return nil
}

func (a *Agent) startNodes(ctx, running context.Context) error {
	for _, spec := range a.cfg.Nodes {
		object, err := spec.object()
		if err != nil {
			return fmt.Errorf("making node %s: %w", spec.Name, err)
		}
		n, err := newNode(running, a, object)
		if err != nil {
			return fmt.Errorf("making node %s: %w", spec.Name, err)
		}
		a.addNode(n)
		a.tasks.Go(func() { n.run(running) })
	}
	for _, spec := range a.cfg.Nodes {
		if err := a.node(spec.Name).waitReady(ctx, spec.Taints); err != nil {
			return fmt.Errorf("waiting for node %s: %w", spec.Name, err)
		}
	}
	return nil
}

// Runs reports whether the agent runs the pods of a node.
func (a *Agent) Runs(node string) bool { return a.node(node) != nil }

// node returns the node with this name, or nil.
func (a *Agent) node(name string) *node {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.nodes[name]
}

func (a *Agent) addNode(n *node) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.nodes[n.name] = n
}

func (a *Agent) removeNode(n *node) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.nodes, n.name)
}

// SetNode changes the Node object, as a device plugin or a labeler would. Running pods stay.
func (a *Agent) SetNode(ctx context.Context, spec NodeSpec) error {
	if err := spec.Validate(); err != nil {
		return fmt.Errorf("changing node: %w", err)
	}
	n := a.node(spec.Name)
	if n == nil {
		return fmt.Errorf("changing node %s: no such node", spec.Name)
	}
	if err := n.update(ctx, spec); err != nil {
		return fmt.Errorf("changing node %s: %w", spec.Name, err)
	}
	return nil
}

// SetImage maps image, a name or pattern as in Images, to the programs in dir. Containers that wait for the image start
// within a second.
func (a *Agent) SetImage(image, dir string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.images[image] = dir
}

func (a *Agent) imageDirectory(image string) (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.images.Directory(image)
}

func (a *Agent) allNodes() []*node {
	a.mu.Lock()
	defer a.mu.Unlock()
	nodes := make([]*node, 0, len(a.nodes))
	for _, n := range a.nodes {
		nodes = append(nodes, n)
	}
	return nodes
}

// Stop kills the processes of all pods and waits for the controllers. The objects in the API server and the logs stay;
// the volumes of the pods do not. A second call returns the result of the first.
func (a *Agent) Stop(ctx context.Context) error {
	a.stop.Do(func() { a.err = a.shutDown(ctx) })
	return a.err
}

func (a *Agent) shutDown(ctx context.Context) error {
	a.cancel()
	for _, n := range a.allNodes() {
		n.provider.killAll()
	}
	ended := make(chan struct{})
	go func() {
		a.tasks.Wait()
		close(ended)
	}()
	var err error
	select {
	case <-ended:
		a.pods.Spawner.Close()
	case <-ctx.Done():
		err = fmt.Errorf("stopping node agent: waiting for pods to end: %w", ctx.Err())
	}
	return errors.Join(err, a.pods.Dirs.Remove(), a.tmpRay.Release())
}
