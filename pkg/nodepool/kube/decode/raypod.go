package decode

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// Pod is what Heliostat keeps of a pod of a RayCluster. It never changes. A worker takes 0.5 KB, its Pod object 10 KB.
type Pod struct {
	// RayCluster is the RayCluster that the pod belongs to, by its label.
	RayCluster nodepool.ClusterKey
	// Name is the pod's name, Version its resourceVersion.
	Name, Version string

	worker nodepool.Worker // of a worker
	head   *corev1.Pod     // of a head, stripped; else nil
}

// PodOf returns what Heliostat keeps of a pod. It shares no memory with it but texts.
func PodOf(pod *corev1.Pod) *Pod {
	p := &Pod{
		RayCluster: nodepool.ClusterKey{
			Namespace: interned(pod.Namespace),
			Name:      interned(pod.Labels[ClusterLabel]),
		},
		Name:    pod.Name,
		Version: pod.ResourceVersion,
	}
	switch pod.Labels[nodeTypeLabel] {
	case headNode:
		p.head = stripPod(pod)
	case workerNode:
		p.worker = worker(pod)
	}
	return p
}

// PodsOf returns what Heliostat keeps of pods.
func PodsOf(pods []corev1.Pod) []*Pod {
	list := make([]*Pod, len(pods))
	for i := range pods {
		list[i] = PodOf(&pods[i])
	}
	return list
}

// GetNamespace returns the namespace of the pod.
func (p *Pod) GetNamespace() string { return p.RayCluster.Namespace }

// GetName returns its name.
func (p *Pod) GetName() string { return p.Name }

// Same reports whether two states of a pod differ in nothing that a decision depends on. Their versions may differ.
func (p *Pod) Same(other *Pod) bool {
	if p.head != nil || other.head != nil {
		return p.Version == other.Version
	}
	a, b := p.worker, other.worker
	a.Guard.Version, b.Guard.Version = "", ""
	return p.RayCluster == other.RayCluster && reflect.DeepEqual(a, b)
}
