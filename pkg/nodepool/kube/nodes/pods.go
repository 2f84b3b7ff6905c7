package nodes

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// podClient reads pods.
type podClient = reflector.Client[*corev1.PodList]

// nodePods holds what the pods of all namespaces take of nodes, by the name of the node. It keeps pods without GPUs
// too, because groups without GPUs need room as well; one of them takes 0.3 KB if there are others like it. Each
// process reads pods once, for all RayClusters.
type nodePods struct {
	client podClient
	log    *slog.Logger
	// changed is called after something changed.
	changed func()
	kinds   podKinds

	mu sync.Mutex
	// Guarded by mu. byNode is nil until the first list, and after the right to read pods is lost.
	byNode    map[string]podsOfNode
	newest    int64 // version
	forbidden bool
}

// podsOfNode are the pods on one node, sorted. version differs after each change.
type podsOfNode struct {
	pods    []*decode.BoundPod
	version int64
}

// find returns where a pod is, or would be.
func (p *podsOfNode) find(pod types.NamespacedName) (at int, found bool) {
	return slices.BinarySearchFunc(p.pods, pod, func(p *decode.BoundPod, name types.NamespacedName) int {
		return p.Compare(name.Namespace, name.Name)
	})
}

func newNodePods(client podClient, log *slog.Logger, changed func()) *nodePods {
	return &nodePods{client: client, log: log, changed: changed}
}

// boundAlive selects pods that take something of a node. The API server selects them, so it sends nothing about pods
// that wait or have ended.
var boundAlive = fields.AndSelectors(
	fields.OneTermNotEqualSelector("spec.nodeName", ""),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
).String()

// Start reads pods until ctx ends.
func (p *nodePods) Start(ctx context.Context) error {
	source := reflector.Of("pods on nodes", &corev1.Pod{}, p.client,
		metav1.ListOptions{FieldSelector: boundAlive}, p.log)
	source.Forbidden = p.forbid
	source.Into(ctx, &reflector.Store[*seenPod]{
		Put: p.update, Remove: p.remove, ReplaceAll: p.replace, Strip: p.seen,
	})
	return nil
}

// seenPod is a pod as a list or a watch shows it.
type seenPod struct {
	name types.NamespacedName
	node string
	// bound is nil if the pod takes nothing of its node.
	bound *decode.BoundPod
}

// seen turns a Pod object into what is kept of it, so that whole lists of Pod objects are never in memory.
func (p *nodePods) seen(object any) (any, error) {
	pod, whole := object.(*corev1.Pod)
	if !whole {
		return object, nil
	}
	s := &seenPod{name: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, node: pod.Spec.NodeName}
	if bound, takes := decode.Bound(pod); takes {
		p.kinds.share(&bound)
		s.bound, s.name.Namespace, s.node = &bound, bound.Namespace, bound.Node // pods share these texts
	}
	return s, nil
}

// update keeps a pod. Most updates change the status and nothing that is kept.
func (p *nodePods) update(pod *seenPod) {
	if pod.bound == nil {
		p.remove(pod)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	on := p.byNode[pod.node]
	switch at, found := on.find(pod.name); {
	case !found:
		on.pods = slices.Insert(on.pods, at, pod.bound)
	case reflect.DeepEqual(on.pods[at], pod.bound):
		return
	default:
		on.pods[at] = pod.bound
	}
	p.put(pod.node, on)
}

// remove forgets a pod that is gone or has ended.
func (p *nodePods) remove(pod *seenPod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	on := p.byNode[pod.node]
	if at, found := on.find(pod.name); found {
		on.pods = slices.Delete(on.pods, at, at+1)
		p.put(pod.node, on)
	}
}

// put keeps the pods of a node, which have changed. The caller holds mu.
func (p *nodePods) put(node string, on podsOfNode) {
	if p.byNode == nil {
		p.byNode = map[string]podsOfNode{}
	}
	p.newest++
	on.version = p.newest
	if p.byNode[node] = on; len(on.pods) == 0 {
		delete(p.byNode, node)
	}
	p.changed()
}

// replace takes a whole list: the first one, or the one after a watch broke.
func (p *nodePods) replace(list []*seenPod, _ string) {
	fresh := map[string]podsOfNode{}
	for _, pod := range list {
		if pod.bound != nil {
			fresh[pod.node] = podsOfNode{pods: append(fresh[pod.node].pods, pod.bound)}
		}
	}
	p.mu.Lock()
	p.newest++
	for node, on := range fresh {
		slices.SortFunc(on.pods, func(a, b *decode.BoundPod) int { return a.Compare(b.Namespace, b.Name) })
		before := p.byNode[node]
		if on.version = before.version; !reflect.DeepEqual(on.pods, before.pods) {
			on.version = p.newest
		}
		fresh[node] = on
	}
	p.byNode, p.forbidden = fresh, false
	p.mu.Unlock()
	p.changed()
}

// forbid notes that this process may not read pods of all namespaces, and forgets the known ones, which would become
// out of date.
func (p *nodePods) forbid(err error) {
	p.mu.Lock()
	before := p.forbidden
	p.byNode, p.forbidden = nil, true
	p.mu.Unlock()
	if !before {
		p.log.Info("pods of all namespaces are forbidden; nodes count as empty", "reason", err)
		p.changed()
	}
}

// answered reports whether the API server has responded once.
func (p *nodePods) answered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byNode != nil || p.forbidden
}

// versions returns the version of the pods on each node, nil while pods are unknown. A node without pods has none.
func (p *nodePods) versions() map[string]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byNode == nil {
		return nil
	}
	all := make(map[string]int64, len(p.byNode))
	for node, on := range p.byNode {
		all[node] = on.version
	}
	return all
}

// on returns the pods on a node, sorted.
func (p *nodePods) on(node string) []*decode.BoundPod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.byNode[node].pods)
}

// mayNotRead reports whether this process may not read pods of all namespaces.
func (p *nodePods) mayNotRead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.forbidden
}
