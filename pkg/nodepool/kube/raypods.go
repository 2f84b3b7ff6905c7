package kube

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// rayPodsConfig says which pods are read, and what is called when they change.
type rayPodsConfig struct {
	Client corev1client.PodsGetter
	// Namespaces are those of the RayClusters; empty means all.
	Namespaces []string
	// Only is the one RayCluster whose pods are read, nil for all.
	Only   *nodepool.ClusterKey
	Logger *slog.Logger
	// Changed is called after pods of a RayCluster changed, Failed with each error of a list or a watch.
	Changed func(nodepool.ClusterKey)
	Failed  func(error)
}

// rayPods has the pods of RayClusters. A cache of controller-runtime would keep Pod objects, which take four times as
// much memory even when they are stripped, and each cycle would convert all pods of its RayCluster again.
type rayPods struct {
	config     rayPodsConfig
	namespaces []string // one empty name for all
	selector   string

	mu sync.RWMutex
	// Guarded by mu. byCluster has the pods of each RayCluster by name, unread the namespaces without a first list.
	byCluster map[nodepool.ClusterKey]map[string]*decode.Pod
	unread    map[string]bool

	filled   chan struct{} // closed when no namespace is left in unread
	fillOnce sync.Once
}

// newRayPods prepares reading; Start begins it.
func newRayPods(c rayPodsConfig) *rayPods {
	p := &rayPods{config: c, namespaces: c.Namespaces, selector: decode.ClusterLabel,
		byCluster: map[nodepool.ClusterKey]map[string]*decode.Pod{}, unread: map[string]bool{},
		filled: make(chan struct{})}
	if c.Only != nil {
		p.namespaces, p.selector = []string{c.Only.Namespace}, decode.ClusterLabel+"="+c.Only.Name
	}
	if len(p.namespaces) == 0 {
		p.namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range p.namespaces {
		p.unread[namespace] = true
	}
	return p
}

// Start reads pods until ctx ends.
func (p *rayPods) Start(ctx context.Context) error {
	var reads sync.WaitGroup
	for _, namespace := range p.namespaces {
		reads.Go(func() { p.source(namespace).Into(ctx, p.store(namespace)) })
	}
	reads.Wait()
	return nil
}

// Await returns when all pods have been read once, or with the reason why ctx ended.
func (p *rayPods) Await(ctx context.Context) error {
	select {
	case <-p.filled:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *rayPods) source(namespace string) reflector.Source {
	fail := func(err error) {
		if apierrors.IsInvalid(err) {
			return // an API server that does not stream lists; the reflector lists then
		}
		p.config.Failed(fmt.Errorf("reading the pods of RayClusters: %w", err))
		p.config.Logger.Warn("reading the pods of RayClusters failed; retrying", "namespace", namespace, "error", err)
	}
	source := reflector.Of("pods of RayClusters", &corev1.Pod{}, p.config.Client.Pods(namespace),
		metav1.ListOptions{LabelSelector: p.selector})
	source.Failed = fail
	return source
}

func (p *rayPods) store(namespace string) *reflector.Store[*decode.Pod] {
	return &reflector.Store[*decode.Pod]{
		Put: p.put, Remove: p.remove, Strip: keptPod,
		ReplaceAll: func(pods []*decode.Pod, _ string) { p.replace(namespace, pods) },
	}
}

// keptPod turns a Pod object into what is kept of it.
func keptPod(object any) (any, error) {
	if pod, whole := object.(*corev1.Pod); whole {
		return decode.PodOf(pod), nil
	}
	return object, nil
}

func (p *rayPods) put(pod *decode.Pod) {
	p.mu.Lock()
	before, known := p.byCluster[pod.RayCluster][pod.Name]
	var left nodepool.ClusterKey
	if !known {
		left = p.leave(pod)
	}
	p.add(pod)
	p.mu.Unlock()
	if left.Name != "" {
		p.config.Changed(left)
	}
	if !known || !before.Same(pod) {
		p.config.Changed(pod.RayCluster)
	}
}

// add keeps a pod. The caller holds mu.
func (p *rayPods) add(pod *decode.Pod) {
	if p.byCluster[pod.RayCluster] == nil {
		p.byCluster[pod.RayCluster] = map[string]*decode.Pod{}
	}
	p.byCluster[pod.RayCluster][pod.Name] = pod
}

// leave removes a pod from the RayCluster to which it belonged before somebody changed its label, and returns that
// RayCluster. The caller holds mu.
func (p *rayPods) leave(pod *decode.Pod) (left nodepool.ClusterKey) {
	for key, pods := range p.byCluster {
		if _, here := pods[pod.Name]; here && key.Namespace == pod.RayCluster.Namespace && key != pod.RayCluster {
			p.drop(key, pod.Name)
			return key
		}
	}
	return nodepool.ClusterKey{}
}

// drop forgets a pod. The caller holds mu.
func (p *rayPods) drop(key nodepool.ClusterKey, name string) {
	if delete(p.byCluster[key], name); len(p.byCluster[key]) == 0 {
		delete(p.byCluster, key)
	}
}

func (p *rayPods) remove(pod *decode.Pod) {
	p.mu.Lock()
	p.drop(pod.RayCluster, pod.Name)
	p.mu.Unlock()
	p.config.Changed(pod.RayCluster)
}

// replace takes all pods of a namespace, or of all for "": the first list, or the one after a watch broke.
func (p *rayPods) replace(namespace string, pods []*decode.Pod) {
	fresh := map[nodepool.ClusterKey]map[string]*decode.Pod{}
	for _, pod := range pods {
		if fresh[pod.RayCluster] == nil {
			fresh[pod.RayCluster] = map[string]*decode.Pod{}
		}
		fresh[pod.RayCluster][pod.Name] = pod
	}
	p.mu.Lock()
	var changed []nodepool.ClusterKey
	for key, before := range p.byCluster {
		if namespace != metav1.NamespaceAll && key.Namespace != namespace {
			continue
		}
		if !maps.EqualFunc(before, fresh[key], (*decode.Pod).Same) {
			changed = append(changed, key)
		}
		if fresh[key] == nil {
			delete(p.byCluster, key)
		}
	}
	for key, pods := range fresh {
		if p.byCluster[key] == nil {
			changed = append(changed, key)
		}
		p.byCluster[key] = pods
	}
	if delete(p.unread, namespace); len(p.unread) == 0 {
		p.fillOnce.Do(func() { close(p.filled) })
	}
	p.mu.Unlock()
	for _, key := range changed {
		p.config.Changed(key)
	}
}

// Of returns the pods of a RayCluster, in no order.
func (p *rayPods) Of(key nodepool.ClusterKey) []*decode.Pod {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Collect(maps.Values(p.byCluster[key]))
}
