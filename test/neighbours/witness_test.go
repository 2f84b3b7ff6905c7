package neighbours

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/test/rig"
)

const (
	suspension = "the RayCluster was suspended"
	newHead    = "there is a new head pod"
)

// witness watches a RayCluster, its pods and its Workloads, and keeps what must not happen to them.
type witness struct {
	key nodepool.ClusterKey

	mu sync.Mutex
	// Guarded by mu.
	rayCluster *unstructured.Unstructured
	pods       map[types.UID]*corev1.Pod
	headPod    types.UID
	job        types.UID
	workloads  map[string]*unstructured.Unstructured
	// waited are the Workloads that had to wait for quota.
	waited  map[string]bool
	harmed  []string
	patches int
}

// witness follows a RayCluster, and the Workloads of the job with a UID, by default the RayCluster.
func (k *karpenterLab) witness(key nodepool.ClusterKey, job types.UID) *witness {
	k.Helper()
	w := &witness{key: key, pods: map[types.UID]*corev1.Pod{}, workloads: map[string]*unstructured.Unstructured{},
		waited: map[string]bool{}}
	object, err := k.Dynamic.Resource(rig.RayClusters).Namespace(key.Namespace).Get(k.Context(), key.Name, metav1.GetOptions{})
	must(k, err)
	w.rayCluster, w.job = object, cmp.Or(job, object.GetUID())
	all := metav1.ListOptions{}
	k.watch(func() (watch.Interface, error) {
		return k.Dynamic.Resource(rig.RayClusters).Namespace(key.Namespace).Watch(k.Context(),
			metav1.ListOptions{FieldSelector: "metadata.name=" + key.Name, ResourceVersion: object.GetResourceVersion()})
	}, w.seeRayCluster)
	k.watch(func() (watch.Interface, error) {
		return k.Kube.CoreV1().Pods(key.Namespace).Watch(k.Context(), metav1.ListOptions{LabelSelector: "ray.io/cluster=" + key.Name})
	}, w.seePod)
	k.watch(func() (watch.Interface, error) {
		return k.Dynamic.Resource(workloads).Namespace(key.Namespace).Watch(k.Context(), all)
	}, w.seeWorkload)
	return w
}

func (k *karpenterLab) watch(open func() (watch.Interface, error), see func(watch.Event)) {
	k.Helper()
	stream, err := open()
	if apierrors.IsNotFound(err) {
		return // the kind is not installed
	}
	must(k, err)
	go func() {
		defer stream.Stop()
		for event := range stream.ResultChan() {
			see(event)
		}
	}()
}

func (w *witness) seeRayCluster(event watch.Event) {
	object, is := event.Object.(*unstructured.Unstructured)
	if !is {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if object.GetGeneration() > w.rayCluster.GetGeneration() {
		w.patches++
	}
	w.rayCluster = object
	if suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend"); suspended {
		w.harmed = append(w.harmed, suspension)
	}
}

func gatedPod(pod *corev1.Pod) bool { return len(pod.Spec.SchedulingGates) > 0 }

func (w *witness) seePod(event watch.Event) {
	pod, is := event.Object.(*corev1.Pod)
	if !is {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.pods[pod.UID]
	if pod.Labels["ray.io/node-type"] == "head" {
		if w.headPod != "" && w.headPod != pod.UID {
			w.harmed = append(w.harmed, newHead)
		}
		w.headPod = pod.UID
	} else if pod.DeletionTimestamp != nil && !gatedPod(pod) && (before == nil || before.DeletionTimestamp == nil) {
		w.harmed = append(w.harmed, "worker "+pod.Name+" was deleted and had quota")
	}
	if w.pods[pod.UID] = pod; event.Type == watch.Deleted {
		delete(w.pods, pod.UID)
	}
}

func (w *witness) seeWorkload(event watch.Event) {
	object, is := event.Object.(*unstructured.Unstructured)
	if !is {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if owner := metav1.GetControllerOf(object); owner == nil || owner.UID != w.job {
		return
	}
	name := object.GetName()
	w.workloads[name] = object
	if event.Type == watch.Deleted {
		delete(w.workloads, name)
	}
	if refusedByKueue(object) {
		w.waited[name] = true
	}
}

// refusedByKueue reports whether Kueue has looked at a Workload and has no quota for it.
func refusedByKueue(object *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	refused := false
	for _, c := range conditions {
		condition := c.(map[string]any)
		if condition["type"] == "Finished" && condition["status"] == "True" {
			return false
		}
		refused = refused || condition["type"] == "QuotaReserved" && condition["status"] == "False"
	}
	return refused
}

func (w *witness) runningWorkers() map[types.UID]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	running := map[types.UID]bool{}
	for uid, pod := range w.pods {
		if uid != w.headPod && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
			running[uid] = true
		}
	}
	return running
}

func (w *witness) gated() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pod := range w.pods {
		if gatedPod(pod) {
			n++
		}
	}
	return n
}

func (w *witness) object() *unstructured.Unstructured {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rayCluster
}

func (w *witness) suspended() bool {
	suspended, _, _ := unstructured.NestedBool(w.object().Object, "spec", "suspend")
	return suspended
}

// restarted reports whether the RayCluster was suspended, and its head pod is gone, ends, or is a new one.
func (w *witness) restarted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	head := w.pods[w.headPod]
	return slices.Contains(w.harmed, suspension) &&
		(head == nil || head.DeletionTimestamp != nil || slices.Contains(w.harmed, newHead))
}

func (w *witness) unfinished() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, object := range w.workloads {
		if wantCondition(object, "Finished") != nil {
			n++
		}
	}
	return n
}

// pendings counts the Workloads that had to wait for quota.
func (w *witness) pendings() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waited)
}

func (w *witness) harm() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.harmed
}

func (w *witness) account() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("replicas %v, %d patches, %d Workloads, %d waited", maps.Collect(maps.All(rig.Replicas(w.rayCluster))),
		w.patches, len(w.workloads), len(w.waited))
}
