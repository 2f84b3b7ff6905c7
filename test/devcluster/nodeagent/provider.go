package nodeagent

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1listers "k8s.io/client-go/listers/core/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"heliostat.dev/heliostat/test/devcluster/nodeagent/loopback"
	"heliostat.dev/heliostat/test/devcluster/nodeagent/podruntime"
)

// provider is the runtime below virtual-kubelet's pod controller. It has the pods of one node.
type provider struct {
	node   *node
	lister corev1listers.PodLister // the node's pods in the API
	ctx    context.Context         // canceled when the agent stops
	notify func(*corev1.Pod)       // set before the first pod is created

	mu     sync.Mutex // guards byName and running
	byName map[types.NamespacedName]*podruntime.Pod
	// running has every pod that can have processes, also those whose object the API server has deleted, so that a new
	// pod can have their name.
	running map[*podruntime.Pod]struct{}
}

// stopMargin is the time between SIGKILL and the end of the grace period. The pod controller deletes the object at the
// end of the grace period, and the processes must end before their object is deleted.
const stopMargin = 500 * time.Millisecond

func key(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// NotifyPods implements node.PodNotifier.
func (p *provider) NotifyPods(_ context.Context, notify func(*corev1.Pod)) { p.notify = notify }

// CreatePod implements node.PodLifecycleHandler. It starts the pod and returns.
func (p *provider) CreatePod(_ context.Context, object *corev1.Pod) error {
	pod, err := p.node.agent.pods.NewPod(p.ctx, p.node.ip, object)
	if err != nil {
		return fmt.Errorf("creating pod %s/%s: %w", object.Namespace, object.Name, err)
	}
	p.mu.Lock()
	p.byName[key(object)] = pod
	p.running[pod] = struct{}{}
	p.mu.Unlock()
	p.node.agent.tasks.Go(pod.Run)
	p.node.agent.tasks.Go(func() { p.publishAll(pod) })
	return nil
}

// publishAll publishes the pod's status after each change, and once more when the pod has ended.
func (p *provider) publishAll(pod *podruntime.Pod) {
	for {
		select {
		case <-pod.Changed():
			p.publish(pod)
		case <-pod.Done():
			p.publish(pod)
			return
		}
	}
}

// publish passes the status to the pod controller, which writes it with statusOnly.
func (p *provider) publish(pod *podruntime.Pod) {
	if object := p.current(pod); object != nil {
		p.notify(object)
	}
}

// current returns the object in the API with the pod's status, or nil if the object is deleted.
func (p *provider) current(pod *podruntime.Pod) *corev1.Pod {
	at := key(pod.Object())
	object, err := p.lister.Pods(at.Namespace).Get(at.Name)
	if err != nil || object.UID != pod.UID {
		return nil
	}
	object = object.DeepCopy()
	object.Status = pod.Status(object.Status)
	return object
}

// UpdatePod implements node.PodLifecycleHandler. It updates the metadata; containers do not change.
func (p *provider) UpdatePod(_ context.Context, object *corev1.Pod) error {
	pod, err := p.find(object.Namespace, object.Name)
	if err != nil {
		return err
	}
	pod.SetObject(object)
	return nil
}

// DeletePod implements node.PodLifecycleHandler. It begins to stop the pod and returns. If the object is deleted
// already, it kills the pod. Otherwise the pod has its grace period, and the object is deleted after the last process
// has ended.
func (p *provider) DeletePod(_ context.Context, object *corev1.Pod) error {
	pod, err := p.find(object.Namespace, object.Name)
	if err != nil {
		return err
	}
	grace, exists := p.gracePeriod(pod)
	if !exists {
		p.forget(pod)
	}
	if grace == 0 {
		pod.Hurry()
	}
	p.node.agent.tasks.Go(func() { p.stop(pod, grace) })
	return nil
}

// gracePeriod returns how long the pod can run from now on. exists is false if its object is deleted.
func (p *provider) gracePeriod(pod *podruntime.Pod) (grace time.Duration, exists bool) {
	object := p.current(pod)
	if object == nil {
		return 0, false
	}
	grace = pod.GracePeriod(object.DeletionGracePeriodSeconds)
	return max(grace-min(stopMargin, grace/2), 0), true
}

// stop stops the pod, releases its resources and deletes its object. A second call has no effect.
func (p *provider) stop(pod *podruntime.Pod, grace time.Duration) {
	pod.Stop(grace)
	p.forget(pod)
	p.mu.Lock()
	_, running := p.running[pod]
	delete(p.running, pod)
	p.mu.Unlock()
	if !running {
		return
	}
	pod.Release()
	p.deleteObject(pod)
}

// deleteObject writes the last status and deletes the object, as a kubelet does. It retries until the API server
// answers.
func (p *provider) deleteObject(pod *podruntime.Pod) {
	at := key(pod.Object())
	pods := p.node.agent.client.CoreV1().Pods(at.Namespace)
	log := p.node.agent.log.With("pod", at.String())
	if object := p.current(pod); object != nil {
		object.ResourceVersion = ""
		_, err := pods.UpdateStatus(p.ctx, object, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			log.Warn("writing the last status failed", "err", err)
		}
	}
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	for {
		err := pods.Delete(p.ctx, at.Name, *options)
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return
		}
		log.Warn("deleting the pod failed; retrying", "err", err)
		select {
		case <-p.ctx.Done():
			return
		case <-time.After(podruntime.RetryPause):
		}
	}
}

// forget frees the pod's name for a new pod.
func (p *provider) forget(pod *podruntime.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := key(pod.Object()); p.byName[at] == pod {
		delete(p.byName, at)
	}
}

// killAll kills every pod and returns when no process is left. It does not change the API server.
func (p *provider) killAll() {
	p.mu.Lock()
	var pods sync.WaitGroup
	for pod := range p.running {
		pods.Go(func() {
			pod.Kill()
			pod.Release()
		})
	}
	clear(p.running)
	p.mu.Unlock()
	pods.Wait()
}

func (p *provider) find(namespace, name string) (*podruntime.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pod, ok := p.byName[types.NamespacedName{Namespace: namespace, Name: name}]; ok {
		return pod, nil
	}
	return nil, errdefs.NotFoundf("pod %s/%s is not on node %s", namespace, name, p.node.name)
}

func (p *provider) findContainer(namespace, name, container string) (*podruntime.Container, error) {
	pod, err := p.find(namespace, name)
	if err != nil {
		return nil, err
	}
	c := pod.Container(container)
	if c == nil {
		return nil, errdefs.NotFoundf("pod %s/%s has no container %q", namespace, name, container)
	}
	return c, nil
}

// GetPod implements node.PodLifecycleHandler.
func (p *provider) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	pod, err := p.find(namespace, name)
	if err != nil {
		return nil, err
	}
	return pod.Object().DeepCopy(), nil
}

// GetPodStatus implements node.PodLifecycleHandler.
func (p *provider) GetPodStatus(_ context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := p.find(namespace, name)
	if err != nil {
		return nil, err
	}
	status := pod.Status(pod.Object().Status)
	return &status, nil
}

// GetPods implements node.PodLifecycleHandler.
func (p *provider) GetPods(context.Context) ([]*corev1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var pods []*corev1.Pod
	for _, pod := range p.byName {
		pods = append(pods, pod.Object().DeepCopy())
	}
	return pods, nil
}

// GetContainerLogs implements nodeutil.Provider.
func (p *provider) GetContainerLogs(
	ctx context.Context, namespace, pod, container string, opts api.ContainerLogOpts,
) (io.ReadCloser, error) {
	c, err := p.findContainer(namespace, pod, container)
	if err != nil {
		return nil, err
	}
	return c.Logs(ctx, opts)
}

// RunInContainer implements nodeutil.Provider.
func (p *provider) RunInContainer(
	ctx context.Context, namespace, pod, container string, cmd []string, attach api.AttachIO,
) error {
	c, err := p.findContainer(namespace, pod, container)
	if err != nil {
		return err
	}
	return c.Exec(ctx, cmd, attach.Stdin(), attach.Stdout(), attach.Stderr())
}

// AttachToContainer implements nodeutil.Provider. It is not supported, because containers have no standard input.
func (p *provider) AttachToContainer(context.Context, string, string, string, api.AttachIO) error {
	return errdefs.InvalidInput("attaching is not supported; use logs or exec")
}

// PortForward implements nodeutil.Provider.
func (p *provider) PortForward(
	ctx context.Context, namespace, name string, port int32, stream io.ReadWriteCloser,
) error {
	pod, err := p.find(namespace, name)
	if err != nil {
		return err
	}
	return loopback.ForwardStream(ctx, net.JoinHostPort(pod.IP, strconv.Itoa(int(port))), stream)
}

// GetStatsSummary implements nodeutil.Provider. The agent measures nothing.
func (p *provider) GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error) {
	return &statsv1alpha1.Summary{Node: statsv1alpha1.NodeStats{NodeName: p.node.name}}, nil
}

// GetMetricsResource implements nodeutil.Provider. The agent measures nothing.
func (p *provider) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) { return nil, nil }
