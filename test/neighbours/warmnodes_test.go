package neighbours

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
		n := warmNodesOf(c)
		return n.Code == capacity.NodesWarm && n.Ready != nil && *n.Ready == 1
	}, func(c apiv1.Cluster) {
		if g := groupOf(c, "ahead"); g.Desired > 0 {
			r.Errorf("the group wants %d workers, want nodes alone", g.Desired)
		}
	})
	warm := r.nodeNames("ahead")
	if len(warm) != 1 {
		r.Fatalf("nodes %v, want one", warm)
	}
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
	if err != nil {
		r.Fatal(err)
	}
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
	if err := shape(r.Context(), ""); err != nil {
		r.Fatal(err)
	}
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
	if err != nil {
		r.Fatal(err)
	}
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
