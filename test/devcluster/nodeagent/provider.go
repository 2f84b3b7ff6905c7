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
)

// provider is what virtual-kubelet's pod controller drives: the pods of one node.
type provider struct {
	node   *node
	pods   corev1listers.PodLister // what the API says of this node's pods
	ctx    context.Context         // ends with the agent
	notify func(*corev1.Pod)       // set before the first pod comes

	mu    sync.Mutex // guards known and live
	known map[types.NamespacedName]*pod
	// live holds every pod that may have processes: also those that are no longer known because the API has let go of
	// them and their name may come back.
	live map[*pod]struct{}
}

// stopMargin is how long before the end of the grace period the processes are killed: the pod controller removes the
// object at its end, and the object must not be gone before the processes are.
const stopMargin = 500 * time.Millisecond

func key(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// NotifyPods implements node.PodNotifier.
func (p *provider) NotifyPods(_ context.Context, notify func(*corev1.Pod)) { p.notify = notify }

// CreatePod implements node.PodLifecycleHandler: it begins to run the pod and returns.
func (p *provider) CreatePod(_ context.Context, object *corev1.Pod) error {
	pod, err := newPod(p.node, object)
	if err != nil {
		return fmt.Errorf("creating pod %s/%s: %w", object.Namespace, object.Name, err)
	}
	ctx, cancel := context.WithCancel(p.ctx)
	pod.cancel = cancel
	p.mu.Lock()
	p.known[key(object)] = pod
	p.live[pod] = struct{}{}
	p.mu.Unlock()
	p.node.agent.tasks.Go(func() { pod.run(ctx) })
	p.node.agent.tasks.Go(func() { p.publishAll(pod) })
	return nil
}

// publishAll writes the pod's status whenever it has changed, the last time when the pod has ended.
func (p *provider) publishAll(pod *pod) {
	for {
		select {
		case <-pod.dirty:
			p.publish(pod)
		case <-pod.done:
			p.publish(pod)
			return
		}
	}
}

// publish hands the status to the pod controller, which writes it through statusOnly.
func (p *provider) publish(pod *pod) {
	if object := p.current(pod); object != nil {
		p.notify(object)
	}
}

// current is the object as the API has it, with the pod's status; nil when the API has it no more.
func (p *provider) current(pod *pod) *corev1.Pod {
	at := key(pod.snapshot())
	object, err := p.pods.Pods(at.Namespace).Get(at.Name)
	if err != nil || object.UID != pod.uid {
		return nil
	}
	object = object.DeepCopy()
	object.Status = pod.status(object.Status)
	return object
}

// UpdatePod implements node.PodLifecycleHandler. Metadata is taken over; containers go on as they are.
func (p *provider) UpdatePod(_ context.Context, object *corev1.Pod) error {
	pod, err := p.find(object.Namespace, object.Name)
	if err != nil {
		return err
	}
	pod.setObject(object)
	return nil
}

// DeletePod implements node.PodLifecycleHandler: it begins to stop the pod and returns. A pod that the API has
// forgotten is killed, any other gets its grace period, and the object goes when the last process has ended.
func (p *provider) DeletePod(_ context.Context, object *corev1.Pod) error {
	pod, err := p.find(object.Namespace, object.Name)
	if err != nil {
		return err
	}
	grace, known := p.graceOf(pod)
	if !known {
		p.forget(pod)
	}
	if grace == 0 {
		pod.nowOnce.Do(func() { close(pod.now) })
	}
	p.node.agent.tasks.Go(func() { p.end(pod, grace) })
	return nil
}

// graceOf is how long the pod has from now on; known is false when the API has it no more.
func (p *provider) graceOf(pod *pod) (grace time.Duration, known bool) {
	object := p.current(pod)
	if object == nil {
		return 0, false
	}
	grace = pod.grace(object.DeletionGracePeriodSeconds)
	return max(grace-min(stopMargin, grace/2), 0), true
}

// end stops the pod, tells the API and forgets it. A second call finds nothing left to do.
func (p *provider) end(pod *pod, grace time.Duration) {
	pod.stop(grace)
	p.forget(pod)
	p.mu.Lock()
	_, live := p.live[pod]
	delete(p.live, pod)
	p.mu.Unlock()
	if !live {
		return
	}
	pod.release()
	p.remove(pod)
}

// remove writes the last status and deletes the object, as a kubelet does, trying until the API server answers.
func (p *provider) remove(pod *pod) {
	at := key(pod.snapshot())
	pods := p.node.agent.client.CoreV1().Pods(at.Namespace)
	if object := p.current(pod); object != nil {
		object.ResourceVersion = ""
		if _, err := pods.UpdateStatus(p.ctx, object, metav1.UpdateOptions{}); err != nil &&
			!apierrors.IsNotFound(err) {
			pod.log.Warn("writing the last status failed", "err", err)
		}
	}
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.uid))
	for {
		err := pods.Delete(p.ctx, at.Name, *options)
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return
		}
		pod.log.Warn("deleting the pod's object failed, will try again", "err", err)
		select {
		case <-p.ctx.Done():
			return
		case <-time.After(startPause):
		}
	}
}

// forget lets the pod's name be used again.
func (p *provider) forget(pod *pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := key(pod.snapshot()); p.known[at] == pod {
		delete(p.known, at)
	}
}

// killAll ends every pod without grace and returns when no process is left. The API is not told.
func (p *provider) killAll() {
	p.mu.Lock()
	var ending sync.WaitGroup
	for pod := range p.live {
		ending.Go(func() {
			pod.kill()
			<-pod.done
			pod.release()
		})
	}
	clear(p.live)
	p.mu.Unlock()
	ending.Wait()
}

func (p *provider) find(namespace, name string) (*pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pod, ok := p.known[types.NamespacedName{Namespace: namespace, Name: name}]; ok {
		return pod, nil
	}
	return nil, errdefs.NotFoundf("pod %s/%s is not on node %s", namespace, name, p.node.spec.Name)
}

func (p *provider) findContainer(namespace, name, container string) (*container, error) {
	pod, err := p.find(namespace, name)
	if err != nil {
		return nil, err
	}
	c := pod.container(container)
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
	return pod.snapshot().DeepCopy(), nil
}

// GetPodStatus implements node.PodLifecycleHandler.
func (p *provider) GetPodStatus(_ context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := p.find(namespace, name)
	if err != nil {
		return nil, err
	}
	status := pod.status(pod.snapshot().Status)
	return &status, nil
}

// GetPods implements node.PodLifecycleHandler.
func (p *provider) GetPods(context.Context) ([]*corev1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var pods []*corev1.Pod
	for _, pod := range p.known {
		pods = append(pods, pod.snapshot().DeepCopy())
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
	return c.logs(ctx, opts)
}

// RunInContainer implements nodeutil.Provider.
func (p *provider) RunInContainer(
	ctx context.Context, namespace, pod, container string, cmd []string, attach api.AttachIO,
) error {
	c, err := p.findContainer(namespace, pod, container)
	if err != nil {
		return err
	}
	return c.exec(ctx, cmd, attach.Stdin(), attach.Stdout(), attach.Stderr())
}

// AttachToContainer implements nodeutil.Provider: a container's standard input is not kept open.
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
	return forwardStream(ctx, net.JoinHostPort(pod.ip, strconv.Itoa(int(port))), stream)
}

// GetStatsSummary implements nodeutil.Provider. Nothing is measured.
func (p *provider) GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error) {
	return &statsv1alpha1.Summary{Node: statsv1alpha1.NodeStats{NodeName: p.node.spec.Name}}, nil
}

// GetMetricsResource implements nodeutil.Provider. Nothing is measured.
func (p *provider) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) { return nil, nil }
