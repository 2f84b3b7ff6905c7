package nodeagent

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"runtime"
	"time"

	vknode "github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"heliostat.dev/heliostat/test/devcluster/nodeagent/loopback"
	"heliostat.dev/heliostat/test/devcluster/nodeagent/podruntime"
)

const (
	// podWorkers is how many pods of a node are synchronized at the same time. Calls to create and delete return at
	// once, so a few workers suffice.
	podWorkers = 8
	// informerResync is the period after which lost status updates are repeated.
	informerResync = time.Minute
)

// node is one Node object with virtual-kubelet's controllers and the endpoint for logs and exec.
type node struct {
	agent    *Agent
	name, ip string
	provider *provider
	vk       *nodeutil.Node
	updates  *vknode.NaiveNodeProviderV2
	server   *http.Server
	listener net.Listener
}

// newNode makes a node whose pods run until running is canceled. The node completes the object's status.
func newNode(running context.Context, a *Agent, object *corev1.Node) (*node, error) {
	ip, err := a.pods.Addresses.Allocate()
	if err != nil {
		return nil, err
	}
	n := &node{agent: a, name: object.Name, ip: ip, updates: vknode.NewNaiveNodeProvider()}
	if n.listener, err = loopback.ListenTLS(ip, a.cfg.ClientCAFile); err != nil {
		return nil, err
	}
	n.complete(object)
	handler := http.NewServeMux()
	n.vk, err = nodeutil.NewNode(n.name, n.newProvider(running), nodeutil.WithClient(statusOnly{a.client}),
		func(cfg *nodeutil.NodeConfig) error {
			cfg.NodeSpec = *object
			cfg.NumWorkers = podWorkers
			cfg.InformerResyncPeriod = informerResync
			cfg.SkipDownwardAPIResolution = true
			return nodeutil.AttachProviderRoutes(handler)(cfg)
		})
	if err != nil {
		return nil, fmt.Errorf("making the node's controllers: %w", err)
	}
	n.server = &http.Server{Handler: handler, ReadHeaderTimeout: 30 * time.Second}
	return n, nil
}

func (n *node) newProvider(running context.Context) nodeutil.NewProviderFunc {
	return func(cfg nodeutil.ProviderConfig) (nodeutil.Provider, vknode.NodeProvider, error) {
		n.provider = &provider{
			node: n, ctx: running, lister: cfg.Pods,
			byName: map[types.NamespacedName]*podruntime.Pod{}, running: map[*podruntime.Pod]struct{}{},
		}
		return n.provider, n.updates, nil
	}
}

// run serves the node until ctx is canceled. If a controller fails, the node logs it and its pods keep running.
func (n *node) run(ctx context.Context) {
	n.agent.tasks.Go(func() { _ = n.server.Serve(n.listener) }) // returns after Close
	defer n.server.Close()
	if err := n.vk.Run(ctx); err != nil && ctx.Err() == nil {
		n.agent.log.Error("the controllers of the node failed", "node", n.name, "err", err)
	}
}

// waitReady returns when the node is registered with its taints and accepts pods.
func (n *node) waitReady(ctx context.Context, taints []corev1.Taint) error {
	if err := n.vk.WaitReady(ctx, 0); err != nil {
		return err
	}
	return n.setTaints(ctx, taints)
}

// update changes the Node object.
func (n *node) update(ctx context.Context, spec NodeSpec) error {
	object, err := spec.object()
	if err != nil {
		return err
	}
	n.complete(object)
	if err := n.updates.UpdateStatus(ctx, object); err != nil {
		return fmt.Errorf("updating the node's status: %w", err)
	}
	if err := n.setTaints(ctx, spec.Taints); err != nil {
		return err
	}
	return n.waitUpdated(ctx, object)
}

// setTaints sets the taints, which a status update does not contain.
func (n *node) setTaints(ctx context.Context, taints []corev1.Taint) error {
	nodes := n.agent.client.CoreV1().Nodes()
	for {
		object, err := nodes.Get(ctx, n.name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading node %s: %w", n.name, err)
		}
		object.Spec.Taints = taints
		_, err = nodes.Update(ctx, object, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}

// waitUpdated returns when the API server has the update, which the controller writes asynchronously.
func (n *node) waitUpdated(ctx context.Context, want *corev1.Node) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) {
			got, err := n.agent.client.CoreV1().Nodes().Get(ctx, want.Name, metav1.GetOptions{})
			if err != nil {
				return false, nil //nolint:nilerr // the API server can be down for a moment
			}
			return equalResources(got.Status.Capacity, want.Status.Capacity) &&
				equalResources(got.Status.Allocatable, want.Status.Allocatable) &&
				maps.Equal(got.Labels, want.Labels), nil
		})
}

func equalResources(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

// complete sets what a kubelet reports: the conditions, the address, the port of the endpoint, and the versions.
func (n *node) complete(object *corev1.Node) {
	object.Status.Conditions = readyConditions()
	// No host name: the API server would prefer it to the address, and the machine cannot resolve it.
	object.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.ip}}
	object.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(n.listener.Addr().(*net.TCPAddr).Port)
	object.Status.NodeInfo = corev1.NodeSystemInfo{
		KubeletVersion: "v1.35.4", OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
		ContainerRuntimeVersion: "process://1",
	}
}

func readyConditions() []corev1.NodeCondition {
	now := metav1.Now()
	condition := func(
		kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string,
	) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: kind, Status: status, Reason: reason, LastHeartbeatTime: now, LastTransitionTime: now,
		}
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"),
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"),
	}
}
