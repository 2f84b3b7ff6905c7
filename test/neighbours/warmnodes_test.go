package neighbours

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/rig"
)

// warmNode: a policy keeps one node ready, with a CapacityBuffer of Heliostat. The worker that work needs comes to that
// node, and not to one that is launched then. The buffer follows the group's template, and goes with the entry.
func warmNode(k *karpenterLab) {
	k.nodePool("ahead", devcluster.NodePool{Name: "ahead", Class: "fast"})
	r := k.rayClusterOf(rig.Cluster{Namespace: "ahead", Name: "ahead", Groups: []rig.Group{gpuWorkers("ahead", 2)},
		Annotations: map[string]string{capacity.Annotation: `{"keepWarmNodes": [{"group": "ahead", "count": 1}]}`}})
	r.until("the node is there", func(c apiv1.Cluster) bool {
		return warmNodesOf(c).Code == capacity.NodesWarm && len(r.nodeNames("ahead")) == 1
	}, func(c apiv1.Cluster) {
		if g := groupOf(c, "ahead"); g.Desired > 0 {
			r.Errorf("the group wants %d workers, want nodes alone", g.Desired)
		}
	})
	warm := r.nodeNames("ahead")
	r.asksForWorkers()

	r.want(1)
	r.until("the worker has joined", func(c apiv1.Cluster) bool { return groupOf(c, "ahead").Ready == 1 }, nil)
	pods, err := r.WorkerPods(r.Context(), "ahead", "ahead")
	if err != nil || len(pods) != 1 {
		r.Fatalf("%d workers, %v", len(pods), err)
	}
	if pods[0].Spec.NodeName != warm[0] {
		r.Errorf("the worker came to %s, want to %s, which was ready", pods[0].Spec.NodeName, warm[0])
	}
	// One of at most two workers is there, so one node more is of use.
	r.eventually("the next node is launched", func(ctx context.Context) error {
		claims, err := r.NodeClaims(ctx, "ahead")
		if err == nil && len(claims) < 2 {
			err = fmt.Errorf("%d NodeClaims", len(claims))
		}
		return err
	})
	r.want(1)
	r.until("the group is at its maximum", func(c apiv1.Cluster) bool { return warmNodesOf(c).Code == capacity.NodesAtMax }, nil)
	r.eventually("the buffer is gone", r.withoutBuffers)
}

// warmNodesOf returns what became of the first entry.
func warmNodesOf(c apiv1.Cluster) capacity.NodesPlan {
	if c.CapacityPolicy == nil || len(c.CapacityPolicy.WarmNodes) == 0 {
		return capacity.NodesPlan{}
	}
	return c.CapacityPolicy.WarmNodes[0]
}

// nodeNames returns the nodes of a NodePool.
func (r *rayTeam) nodeNames(pool string) (names []string) {
	r.Helper()
	nodes, err := r.Kube.CoreV1().Nodes().List(r.Context(), metav1.ListOptions{LabelSelector: "karpenter.sh/nodepool=" + pool})
	must(r, err)
	for i := range nodes.Items {
		names = append(names, nodes.Items[i].Name)
	}
	return names
}

// asksForWorkers checks that the one buffer is for pods that ask for what a worker asks for, and follows the template.
func (r *rayTeam) asksForWorkers() {
	r.Helper()
	made := r.buffers()
	if len(made) != 1 {
		r.Fatalf("%d CapacityBuffers, want one", len(made))
	}
	name := made[0].GetName()
	shape := func(ctx context.Context, tier string) error {
		template, err := r.Kube.CoreV1().PodTemplates("ahead").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		pod := &template.Template.Spec
		limits := pod.Containers[0].Resources.Limits
		if gpus := limits["nvidia.com/gpu"]; gpus.Value() != 1 || pod.NodeSelector["team"] != "ahead" ||
			template.Template.Labels["ray.io/group"] != "ahead" || template.Template.Labels["tier"] != tier ||
			len(pod.Tolerations) == 0 {
			return fmt.Errorf("the PodTemplate has labels %v and spec %v", template.Template.Labels, *pod)
		}
		return nil
	}
	must(r, shape(r.Context(), ""))
	patch := []byte(`[{"op":"add","path":"/spec/workerGroupSpecs/0/template/metadata","value":{"labels":{"tier":"first"}}}]`)
	if _, err := r.Dynamic.Resource(rig.RayClusters).Namespace("ahead").Patch(r.Context(), "ahead", types.JSONPatchType,
		patch, metav1.PatchOptions{}); err != nil {
		r.Fatal(err)
	}
	r.eventually("the PodTemplate follows the group", func(ctx context.Context) error { return shape(ctx, "first") })
}

// buffers lists Heliostat's CapacityBuffers in the namespace.
func (r *rayTeam) buffers() []unstructured.Unstructured {
	r.Helper()
	list, err := r.Dynamic.Resource(capacityBuffers).Namespace("ahead").List(r.Context(),
		metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=heliostat"})
	must(r, err)
	return list.Items
}

// withoutBuffers returns an error while a buffer or its PodTemplate is there.
func (r *rayTeam) withoutBuffers(ctx context.Context) error {
	if left := r.buffers(); len(left) > 0 {
		return errors.New("CapacityBuffer " + left[0].GetName() + " is there")
	}
	templates, err := r.Kube.CoreV1().PodTemplates("ahead").List(ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if i := slices.IndexFunc(templates.Items, func(corev1.PodTemplate) bool { return true }); i >= 0 {
		return errors.New("PodTemplate " + templates.Items[i].Name + " is there")
	}
	return nil
}

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
		must(r, err)
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
	must(r, err)
}

// buffer asks Karpenter to keep machines for so many more workers.
func (r *rayTeam) buffer(replicas int64) {
	r.Helper()
	requests := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1"), "cpu": resource.MustParse("100m")}
	template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "worker"}, Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{NodeSelector: map[string]string{"team": "buffer"}, Containers: []corev1.Container{{Name: "worker",
			Image: "none", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests}}}}}}
	_, err := r.Kube.CoreV1().PodTemplates("buffer").Create(r.Context(), template, metav1.CreateOptions{})
	must(r, err)
	err = r.CreateAny(r.Context(), capacityBuffers, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
		"metadata": map[string]any{"name": "warm", "namespace": "buffer"},
		"spec":     map[string]any{"podTemplateRef": map[string]any{"name": "worker"}, "replicas": replicas},
	}})
	must(r, err)
}
