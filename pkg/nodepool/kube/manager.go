package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"heliostat.dev/heliostat/api/v1alpha1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/attached"
	"heliostat.dev/heliostat/pkg/nodepool/kube/kueue"
	"heliostat.dev/heliostat/pkg/nodepool/kube/nodes"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/nodepool/kube/requests"
)

var rayClusterResource = rayv1.SchemeGroupVersion.WithResource("rayclusters")

// objects reads RayClusters: from the cache, or by polling a single RayCluster.
type objects interface {
	// rayCluster returns the newest object, or nil if there is none. The caller must not change it.
	rayCluster(key nodepool.ClusterKey) (*unstructured.Unstructured, error)
	// list returns the RayClusters of a namespace; of all if it is empty. The caller must not change them.
	list(namespace string) ([]*unstructured.Unstructured, error)
}

// Manager reads and writes RayClusters, and runs one worker for each.
type Manager struct {
	options     Options
	config      *rest.Config
	manager     manager.Manager
	source      objects
	pods        *rayPods
	rayClusters dynamic.NamespaceableResourceInterface
	// userClusters are RayClusters too, through the client for users' calls.
	userClusters dynamic.NamespaceableResourceInterface
	core         corev1client.CoreV1Interface
	recorder     record.EventRecorder // nil in the single form
	lease        *lease               // nil without leader election
	shards       *Shards              // nil if one process decides about all RayClusters
	newestSeen   *newestObjects
	storage      *storageGuard
	decodes      *decodeCache
	dynamic      dynamic.Interface
	namespaces   *namespaceWatch        // nil in the single form
	nodes        *nodes.Watch           // nil in the single form
	kueue        *kueue.Watch           // nil in the single form
	quotas       quotaWatch             // empty in the single form
	provisioning *attached.Provisioning // nil without Options.Provisioning
	buffers      *attached.Buffers      // nil without Options.WarmNodes
	owners       *kueue.Owners
	// requests and requestWriter are nil in the single form. Users' calls write ResourceRequests through userRequests.
	requestObjects dynamic.NamespaceableResourceInterface
	userRequests   dynamic.NamespaceableResourceInterface
	discovery      discovery.ServerResourcesInterface
	requests       *requests.Store
	requestWriter  *requests.Writer
	// others runs in place of a cycle for RayClusters of other shards; nil means nothing.
	others     func(context.Context, nodepool.ClusterKey)
	pool       *pool
	ready      atomic.Bool // the caches are full
	watchError atomic.Pointer[error]
	running    atomic.Bool // the workers run
}

// DefaultQPS limits what one client sends to the API server per second, and burst times as much at once. Writes of
// users' REST calls have their own limit, userShare times as high: users wait for them, so background work must not
// delay them.
const (
	DefaultQPS = 100
	burst      = 2
	userShare  = 4
)

// limited returns a copy of a config with limits of requests. client-go's default of 5 a second would delay a fleet;
// the API server has its own fairness.
func limited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = cmp.Or(config.QPS, DefaultQPS)
	config.Burst = max(1, int(burst*config.QPS))
	return config
}

// setLogger sets the global logger of controller-runtime once. Without it, controller-runtime complains with a stack
// trace; a second call beside another one is a race in controller-runtime.
var setLogger sync.Once

// NewManager prepares everything. It asks the API server which resources exist, so it fails if RayClusters or the
// server itself are missing.
func NewManager(config *rest.Config, options Options) (*Manager, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	config = limited(config)
	m := &Manager{
		options:    options,
		config:     config,
		newestSeen: newNewestObjects(),
		decodes:    newDecodeCache(options.GPUs),
	}
	m.pool = newPool(m.exists, options.Logger)
	if options.Sharded {
		client, err := leaseClient(config, "shards")
		if err != nil {
			return nil, err
		}
		m.shards = newShards(client, options)
		m.shards.keys, m.shards.changed = m.divisible, m.Enqueue
		config = naming(config, "shard/"+m.shards.ID())
		m.config = config
	}
	if err := m.connect(); err != nil {
		return nil, err
	}
	managerOptions := manager.Options{
		Logger:  logr.FromSlogHandler(options.Logger.Handler()),
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache: cacheOptions(options),
		// Methods of discovery take no context, so the client ends them.
		MapperProvider: func(config *rest.Config, client *http.Client) (meta.RESTMapper, error) {
			return apiutil.NewDynamicRESTMapper(config,
				&http.Client{Transport: client.Transport, Timeout: reflector.RequestTimeout})
		},
	}
	managerOptions.Cache.DefaultWatchErrorHandler = func(ctx context.Context, r *toolscache.Reflector, err error) {
		m.watchError.Store(&err)
		toolscache.DefaultWatchErrorHandler(ctx, r, err)
	}
	setLogger.Do(func() { ctrllog.SetLogger(managerOptions.Logger) })
	if options.LeaderElection {
		lease, err := newLeader(config, options)
		if err != nil {
			return nil, err
		}
		m.lease = lease
		managerOptions.LeaderElection, managerOptions.LeaderElectionResourceLockInterface = true, lease
		managerOptions.LeaderElectionReleaseOnCancel = true
		managerOptions.LeaseDuration, managerOptions.RenewDeadline = new(leaseDuration), new(renewDeadline)
		managerOptions.RetryPeriod = new(retryPeriod)
	}
	var err error
	if m.manager, err = manager.New(config, managerOptions); err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	return m, m.wire()
}

func (m *Manager) connect() error {
	client, err := rest.HTTPClientFor(m.config)
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	return errors.Join(m.connectDynamic(client), m.connectCore(client))
}

func (m *Manager) connectDynamic(client *http.Client) error {
	all, err := dynamic.NewForConfigAndClient(m.config, client)
	if err != nil {
		return fmt.Errorf("connecting for RayClusters: %w", err)
	}
	// Methods of discovery take no context, so the client ends them. They change the configuration that they get, so it
	// is a copy.
	limited := &http.Client{Transport: client.Transport, Timeout: reflector.RequestTimeout}
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(rest.CopyConfig(m.config), limited)
	if err != nil {
		return fmt.Errorf("connecting for discovery: %w", err)
	}
	m.discovery = kinds
	above, err := metadata.NewForConfigAndClient(m.config, client)
	if err != nil {
		return fmt.Errorf("connecting for owners of RayClusters: %w", err)
	}
	resources, err := apiutil.NewDynamicRESTMapper(m.config, limited)
	if err != nil {
		return fmt.Errorf("connecting for the kinds of owners: %w", err)
	}
	m.owners = kueue.NewOwners(above, all, resources, m.options.Logger, m.Enqueue)
	m.rayClusters, m.requestObjects = all.Resource(rayClusterResource), all.Resource(v1alpha1.Resource)
	m.dynamic = all
	config := rest.CopyConfig(m.config)
	config.QPS, config.Burst = userShare*config.QPS, userShare*config.Burst
	asked, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return fmt.Errorf("connecting for users' calls: %w", err)
	}
	m.userClusters, m.userRequests = asked.Resource(rayClusterResource), asked.Resource(v1alpha1.Resource)
	return nil
}

func (m *Manager) connectCore(client *http.Client) error {
	config := rest.CopyConfig(m.config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, err := corev1client.NewForConfigAndClient(config, client)
	if err != nil {
		return fmt.Errorf("connecting for pods and nodes: %w", err)
	}
	m.core = core
	return nil
}

// wire creates the source of objects. The single form has no rights for events and nodes.
func (m *Manager) wire() error {
	m.storage = newStorageGuard(m.core, m.options)
	m.pods = newRayPods(m.core, attached.Config{Namespaces: m.options.Namespaces, Logger: m.options.Logger,
		Changed: m.Enqueue}, m.options.Single, func(err error) { m.watchError.Store(&err) })
	reads := []manager.Runnable{m.storage, m.pods}
	if m.options.Single != nil {
		source, err := newPolled(m)
		m.source = source
		return errors.Join(err, m.everywhere(reads...))
	}
	m.recorder = m.manager.GetEventRecorderFor("heliostat")
	source, err := newCached(m)
	if err != nil {
		return err
	}
	m.source = source
	m.nodes = nodes.New(nodes.Config{
		Core:            m.core,
		Dynamic:         m.dynamic,
		Discovery:       m.discovery,
		Namespaces:      m.options.Namespaces,
		StatusNamespace: cmp.Or(m.options.StatusNamespace, metav1.NamespaceSystem),
		GPUs:            m.options.GPUs,
		Pools:           m.options.Pools,
		Changed:         m.enqueueNamespace,
		Logger:          m.options.Logger,
	})
	objects := attached.Config{Client: m.dynamic, Discovery: m.discovery, Namespaces: m.options.Namespaces,
		Changed: m.Enqueue, Logger: m.options.Logger}
	m.kueue = kueue.NewWatch(objects)
	if m.options.Provisioning {
		m.provisioning = attached.NewProvisioning(objects)
		reads = append(reads, m.provisioning)
	}
	if m.options.WarmNodes {
		m.buffers = attached.NewBuffers(objects)
		reads = append(reads, m.buffers)
	}
	m.wireRequests()
	m.namespaces = newNamespaces(
		m.core.Namespaces(), m.options.Namespaces, m.options.Logger, m.enqueueNamespace)
	m.quotas = newQuotas(m.core, m.options.Namespaces, m.options.Logger, m.enqueueNamespace)
	limits := newLimits(m.core, m.options.Namespaces, m.options.Logger, func(namespace string) {
		m.decodes.dropNamespace(namespace)
		m.enqueueNamespace(namespace)
	})
	m.decodes.limits, m.quotas.defaultsKnown = limits.of, limits.known
	reads = append(reads, m.nodes, m.namespaces, m.quotas, limits, m.kueue, m.requests)
	return errors.Join(m.everywhere(reads...), m.manager.Add(m.requestWriter))
}

// everywhere adds what runs whether this process leads or not: a candidate for leadership reads as well.
func (m *Manager) everywhere(runs ...manager.Runnable) error {
	var errs []error
	for _, run := range runs {
		errs = append(errs, m.manager.Add(withoutLease{run}))
	}
	return errors.Join(errs...)
}

type withoutLease struct{ manager.Runnable }

func (withoutLease) NeedLeaderElection() bool { return false }

// Start fills the caches, waits for the lease if there is one, and runs reconcile for every RayCluster until ctx ends
// or the lease is lost. A lost lease is an error: the process should exit, and restart as a candidate.
func (m *Manager) Start(ctx context.Context, reconcile Reconcile) error {
	workers := manager.RunnableFunc(func(ctx context.Context) error {
		if err := m.pods.Await(ctx); err != nil {
			return nil // the process ends
		}
		if m.nodes != nil {
			m.awaitFirst(ctx)
		}
		if err := m.awaitShards(ctx); err != nil {
			return err
		}
		m.running.Store(true)
		defer m.running.Store(false)
		if m.shards != nil {
			var member sync.WaitGroup
			defer member.Wait()
			member.Go(func() { m.shards.Start(ctx) })
			reconcile = m.divided(reconcile)
		}
		m.pool.Run(ctx, reconcile)
		return nil
	})
	ready := manager.RunnableFunc(func(ctx context.Context) error {
		if m.pods.Await(ctx) == nil {
			m.ready.Store(true)
		}
		return nil
	})
	if err := errors.Join(m.manager.Add(workers), m.everywhere(ready)); err != nil {
		return fmt.Errorf("adding the workers: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- m.manager.Start(ctx) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = m.finish(ended)
	}
	if err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

// awaitFirst returns when the API server has responded about namespaces, pods and devices once, or after a while. The
// first cycles then know the modes that namespaces set, and do not count nodes as empty.
func (m *Manager) awaitFirst(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, reflector.RequestTimeout)
	defer cancel()
	_ = m.namespaces.Await(ctx) // those that are not read yet have an unknown mode
	m.nodes.Await(ctx)
}

// finish waits until a manager stops. While its caches fill it does not react, and has written nothing that would need
// to be finished.
func (m *Manager) finish(ended <-chan error) error {
	if m.Ready() {
		return <-ended
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(time.Second):
		return nil
	}
}

// WatchError returns the last error of a watch, or nil. It explains why the caches are not full.
func (m *Manager) WatchError() error {
	if err := m.watchError.Load(); err != nil {
		return *err
	}
	return nil
}

// Leading reports whether this process may write now, to some RayCluster.
func (m *Manager) Leading() bool {
	if m.shards != nil {
		return m.running.Load() && m.shards.Acts()
	}
	return m.running.Load() && (m.lease == nil || m.lease.held())
}

// Leader returns the address of the process that holds the lease, "" if it has none; false if no holder is known. The
// result may be a second or two old, and is useful only while this process does not lead.
func (m *Manager) Leader() (address string, known bool) {
	if m.lease == nil {
		return "", false
	}
	return m.lease.leader()
}

// Led reports whether this process leads or knows the leader. With shards, it need not know.
func (m *Manager) Led() bool {
	_, known := m.Leader()
	return m.shards != nil || known || m.Leading()
}

// Ready reports whether every RayCluster and pod has been seen once. A candidate for leadership is ready too.
func (m *Manager) Ready() bool { return m.ready.Load() }

// Enqueue requests a cycle of one RayCluster soon.
func (m *Manager) Enqueue(key nodepool.ClusterKey) { m.pool.Enqueue(key) }

// enqueueNamespace requests a cycle of each RayCluster in a namespace, or of all RayClusters if it is empty.
func (m *Manager) enqueueNamespace(namespace string) {
	keys, err := m.keysIn(namespace)
	if err != nil {
		m.options.Logger.Error(
			"cannot list RayClusters after a change of nodes or namespaces; their next cycles will see it",
			"error",
			err,
		)
	}
	for _, key := range keys {
		m.Enqueue(key)
	}
}

// Keys lists the known RayClusters, in no order.
func (m *Manager) Keys() ([]nodepool.ClusterKey, error) { return m.keysIn(metav1.NamespaceAll) }

func (m *Manager) keysIn(namespace string) ([]nodepool.ClusterKey, error) {
	list, err := m.source.list(namespace)
	if err != nil {
		return nil, err
	}
	keys := make([]nodepool.ClusterKey, len(list))
	for i := range list {
		keys[i] = keyOf(list[i])
	}
	return keys, nil
}

func (m *Manager) exists(key nodepool.ClusterKey) bool {
	object, err := m.source.rayCluster(key)
	return err != nil || object != nil
}

// forget drops what is kept about a RayCluster that is gone.
func (m *Manager) forget(key nodepool.ClusterKey) {
	m.newestSeen.drop(key)
	m.decodes.drop(key)
	m.owners.Drop(key)
	m.kueue.Forget(key)
	if m.nodes != nil {
		m.nodes.Forget(key)
	}
}
