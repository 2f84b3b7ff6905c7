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
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config says which nodes to make and what their pods find on this machine.
type Config struct {
	// REST reaches the API server. Nil means that Kubeconfig is read.
	REST *rest.Config
	// Kubeconfig is the path of a kubeconfig file, used where REST is nil.
	Kubeconfig string
	// Nodes to register. Their names are unique.
	Nodes []NodeSpec
	// Images that containers can use; see SetImage for later changes.
	Images Images
	// Dir holds everything the agent writes: volumes while a pod lives, and logs, which stay. An absolute path.
	Dir string
	// PodCIDR is the block of loopback addresses for nodes and pods, such as 127.1.2.0/24. Two agents on one machine
	// must not share a block.
	PodCIDR string
	// APIServer is the host:port that pods find in KUBERNETES_SERVICE_HOST and _PORT.
	APIServer string
	// CAFile is the certificate authority of the API server, the ca.crt of a pod's service account.
	CAFile string
	// ClientCAFile, where set, makes the log and exec endpoints demand a client certificate signed by it. Without it
	// everybody on this machine can use them; they listen on loopback addresses only.
	ClientCAFile string
	// MaxGracePeriod caps the time between a pod's SIGTERM and its SIGKILL. Zero means no cap.
	MaxGracePeriod time.Duration
	// RestartBackoff is the pause before a container's second restart; it doubles up to 30 times itself. Zero means
	// 10 s, the kubelet's own.
	RestartBackoff time.Duration
	// RayStart, where set, is called before a Ray node starts and returns when it may; the agent calls done when the
	// node is ready or has failed. It bounds how many start at the same time.
	RayStart func(ctx context.Context) (done func(), err error)
	// Log receives the agent's own lines. Nil discards them.
	Log *slog.Logger
}

// Agent runs the pods of its nodes until Stop.
type Agent struct {
	cfg       Config
	log       *slog.Logger
	client    kubernetes.Interface
	addresses *addresses
	spawner   *spawner
	rayDirs   *rayDirs
	tmpRay    *sharedMountPoint

	cancel context.CancelFunc
	tasks  sync.WaitGroup
	stop   sync.Once
	err    error // of the stop

	mu     sync.Mutex // guards images and nodes
	images Images
	nodes  map[string]*node
}

// Start registers the nodes and returns once all of them are Ready. Canceling ctx later does not stop the agent; Stop
// does.
func Start(ctx context.Context, cfg Config) (*Agent, error) {
	a, err := newAgent(cfg)
	if err != nil {
		return nil, fmt.Errorf("starting node agent: %w", err)
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a.cancel = cancel
	if err := a.startNodes(ctx, running); err != nil {
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
	pool, err := newAddresses(cfg.PodCIDR)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(cfg.Dir, "logs"), 0o755); err != nil {
		return nil, fmt.Errorf("making the log directory: %w", err)
	}
	dirs, err := newRayDirs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	a := &Agent{
		cfg:       cfg,
		log:       cfg.Log,
		client:    client,
		addresses: pool,
		spawner:   newSpawner(),
		rayDirs:   dirs,
		images:    maps.Clone(cfg.Images),
		nodes:     map[string]*node{},
	}
	if a.spawner.isolation.mounts {
		a.tmpRay, err = shareMountPoint(rayTempDir)
		if err != nil {
			return nil, err
		}
	}
	a.log.Debug("pods are isolated", "isolation", a.spawner.isolation.String())
	if !a.spawner.isolation.mounts {
		a.log.Warn("this machine allows no mount namespaces: volumes and service account tokens do not appear in pods")
	}
	return a, nil
}

func (cfg Config) withDefaults() (Config, error) {
	if cfg.REST == nil {
		config, err := clientcmd.BuildConfigFromFlags("", cfg.Kubeconfig)
		if err != nil {
			return cfg, fmt.Errorf("reading kubeconfig %q: %w", cfg.Kubeconfig, err)
		}
		cfg.REST = config
	}
	cfg.REST = rest.CopyConfig(cfg.REST)
	// One agent speaks for many nodes; client-go's default of 5 requests a second would be its slowest part.
	cfg.REST.QPS, cfg.REST.Burst = 500, 1000
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.RestartBackoff == 0 {
		cfg.RestartBackoff = 10 * time.Second
	}
	if !filepath.IsAbs(cfg.Dir) {
		return cfg, fmt.Errorf("directory %q is not an absolute path", cfg.Dir)
	}
	if cfg.Images == nil {
		cfg.Images = Images{}
	}
	for _, n := range cfg.Nodes {
		if err := n.Validate(); err != nil {
			return cfg, err
		}
	}
	return cfg, nil
}

func (a *Agent) startNodes(ctx, running context.Context) error {
	for _, spec := range a.cfg.Nodes {
		n, err := newNode(running, a, spec)
		if err != nil {
			return fmt.Errorf("making node %s: %w", spec.Name, err)
		}
		a.mu.Lock()
		a.nodes[spec.Name] = n
		a.mu.Unlock()
		a.tasks.Go(func() { n.run(running) })
	}
	for _, n := range a.allNodes() {
		if err := n.waitReady(ctx); err != nil {
			return fmt.Errorf("waiting for node %s: %w", n.spec.Name, err)
		}
	}
	return nil
}

// SetNode changes what a node announces, as a device plugin or a labeller would. Pods that run stay.
func (a *Agent) SetNode(ctx context.Context, spec NodeSpec) error {
	if err := spec.Validate(); err != nil {
		return fmt.Errorf("changing node: %w", err)
	}
	a.mu.Lock()
	n := a.nodes[spec.Name]
	a.mu.Unlock()
	if n == nil {
		return fmt.Errorf("changing node %s: no such node", spec.Name)
	}
	if err := n.announce(ctx, spec); err != nil {
		return fmt.Errorf("changing node %s: %w", spec.Name, err)
	}
	return nil
}

// SetImage makes image (a name or pattern, see Images) stand for the programs in dir. Containers that wait for the
// image start within a second.
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

// Stop kills every pod's processes and waits for the controllers. The objects in the API server stay as they are;
// the logs stay on disk, the pods' volumes do not. A second call returns what the first did.
func (a *Agent) Stop(ctx context.Context) error {
	a.stop.Do(func() { a.err = a.end(ctx) })
	return a.err
}

func (a *Agent) end(ctx context.Context) error {
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
		a.spawner.close()
	case <-ctx.Done():
		err = fmt.Errorf("stopping node agent: waiting for pods to end: %w", ctx.Err())
	}
	return errors.Join(err, a.rayDirs.remove(), os.RemoveAll(filepath.Join(a.cfg.Dir, "pods")), a.tmpRay.release())
}
