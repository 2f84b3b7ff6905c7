package neighbours

import (
	"context"

	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/test/devcluster"
)

var capacityBuffers = schema.GroupVersionResource{
	Group: "autoscaling.x-k8s.io", Version: "v1beta1", Resource: "capacitybuffers",
}

// bufferedCapacity covers assertion 10: a CapacityBuffer says that it fits existing capacity when its machine is only
// launched, and Karpenter sends Events about pods that do not exist. Neither makes a group closed, or larger.
func bufferedCapacity(k *karpenterLab) {
	k.nodeClass("warm", "20s") // time between the NodeClaim and the node
	k.nodePool("buffer", devcluster.NodePool{Name: "buffer", Class: "warm"})
	r := k.rayCluster("buffer", gpuWorkers("buffer", 4))
	r.buffer(1)
	var fits time.Time
	r.eventually("the buffer fits", func(ctx context.Context) error {
		object, err := k.Dynamic.Resource(capacityBuffers).Namespace("buffer").Get(ctx, "warm", metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, c := range conditions {
			if condition := c.(map[string]any); condition["reason"] == "FitsExistingCapacity" {
				fits, err = time.Parse(time.RFC3339, condition["lastTransitionTime"].(string))
				return err
			}
		}
		return fmt.Errorf("its conditions are %v", conditions)
	})
	nodes, err := k.Kube.CoreV1().Nodes().List(k.Context(), metav1.ListOptions{LabelSelector: "karpenter.sh/nodepool=buffer"})
	if err != nil || len(nodes.Items) > 0 && !fits.Before(nodes.Items[0].CreationTimestamp.Time) {
		k.Fatalf("there are %d nodes, %v; want that the buffer fitted before there was one, at %v", len(nodes.Items), err, fits)
	}
	// Karpenter drops what exceeds five Nominated Events in a second, over all pods, and is silent about the same pod for
	// two minutes after. A buffer of one more is about another pod.
	for replicas := int64(1); !r.bufferNominated(); {
		replicas++
		r.note("no Event is about a pod of the buffer, now of %d", replicas)
		r.resizeBuffer(replicas)
	}
	r.want(1)
	open := r.neverClosed("buffer")
	r.until("the worker has joined", func(c apiv1.Cluster) bool { return groupOf(c, "buffer").Ready == 1 },
		func(c apiv1.Cluster) {
			open(c)
			if g := groupOf(c, "buffer"); g.Desired > 1 {
				r.Errorf("the group wants %d workers, want 1", g.Desired)
			}
		})
}

// bufferNominated tells if Karpenter sends an Event about a pod of the buffer within 10 s.
func (r *rayTeam) bufferNominated() bool {
	r.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		events, err := r.Kube.CoreV1().Events("buffer").List(r.Context(), metav1.ListOptions{FieldSelector: "reason=Nominated"})
		if err != nil {
			r.Fatal(err)
		}
		if slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return strings.HasPrefix(e.InvolvedObject.Name, "capacity-buffer-")
		}) {
			return true
		}
	}
	return false
}

// resizeBuffer changes the number of workers for which Karpenter keeps machines.
func (r *rayTeam) resizeBuffer(replicas int64) {
	r.Helper()
	if replicas > 10 {
		r.Fatal("no Event is about any of 10 pods of the buffer")
	}
	_, err := r.Dynamic.Resource(capacityBuffers).Namespace("buffer").Patch(r.Context(), "warm", types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{})
	if err != nil {
		r.Fatal(err)
	}
}

// buffer asks Karpenter to keep machines for so many more workers.
func (r *rayTeam) buffer(replicas int64) {
	r.Helper()
	requests := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1"), "cpu": resource.MustParse("100m")}
	template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "worker"}, Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{NodeSelector: map[string]string{"team": "buffer"}, Containers: []corev1.Container{{Name: "worker",
			Image: "none", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests}}}}}}
	_, err := r.Kube.CoreV1().PodTemplates("buffer").Create(r.Context(), template, metav1.CreateOptions{})
	if err != nil {
		r.Fatal(err)
	}
	err = r.CreateAny(r.Context(), capacityBuffers, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
		"metadata": map[string]any{"name": "warm", "namespace": "buffer"},
		"spec":     map[string]any{"podTemplateRef": map[string]any{"name": "worker"}, "replicas": replicas},
	}})
	if err != nil {
		r.Fatal(err)
	}
}
