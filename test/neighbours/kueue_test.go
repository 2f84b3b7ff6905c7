package neighbours

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/rig"
	"heliostat.dev/heliostat/test/simray"
)

// patience is the limit of each wait. On two busy cores, Ray nodes that start one by one take minutes.
const patience = 10 * time.Minute

const (
	queueName = "research"
	queueKey  = "kueue.x-k8s.io/queue-name"
	elastic   = "kueue.x-k8s.io/elastic-job"
)

// Kueue's resources.
var (
	flavors = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2",
		Resource: "resourceflavors"}
	clusterQueues = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "clusterqueues"}
	localQueues   = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "localqueues"}
	workloads     = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"}
)

// gpu is a worker group with zero replicas.
var gpu = rig.Group{Name: "gpu", Max: 2, Devices: map[string]int64{"nvidia.com/gpu": 1}}

// queued creates a managed RayCluster with Kueue's label, and with an annotation unless that is empty.
func (k *karpenterLab) queued(cluster rig.Cluster, annotation string) *rayTeam {
	k.Helper()
	cluster.IdleSeconds, cluster.Annotations = 600, map[string]string{"heliostat.dev/mode": "managed"}
	if annotation != "" {
		cluster.Annotations[annotation] = "true"
	}
	manifest := cluster.Manifest()
	manifest.SetLabels(map[string]string{queueKey: queueName})
	must(k, k.Rig.Create(k.Context(), manifest))
	return k.simulatedHead(nodepool.ClusterKey{Namespace: cluster.Namespace, Name: cluster.Name})
}

// TestNoQueuedRayClusterIsPatched creates pending demand in three RayClusters beside the real Kueue and KubeRay's operator:
// one that Kueue queues, one with the annotation for elastic RayClusters, and the child of a queued RayJob. kwok simulates
// their nodes, and Ray is simulated. Kueue ignores the annotation because its feature gate is off. All three have the
// annotation for managed mode. At the end, a manual patch shows what a patch by Heliostat would do.
func TestNoQueuedRayClusterIsPatched(t *testing.T) {
	t.Parallel()
	eachKueue(t, notElasticScenario)
}

func notElasticScenario(t *testing.T, release string) {
	k := startKueueLab(t, release, "ElasticJobsViaWorkloadSlices=false")
	const ml = "ml"
	k.queue(ml, "", gpusOf("gpus", "8"))
	shared := rig.Group{Name: "shared", Max: 2, Devices: map[string]int64{"nvidia.com/gpu.shared": 1}}
	floor := rig.Group{Name: "floor", Min: 1, Max: 2}
	plain := k.queued(rig.Cluster{Namespace: ml, Name: "plain", Groups: []rig.Group{gpu, shared}}, "")
	annotated := k.queued(rig.Cluster{Namespace: ml, Name: "annotated", Groups: []rig.Group{gpu, floor}}, elastic)
	if err := k.CreateAny(t.Context(), rig.RayJobs, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ray.io/v1", "kind": "RayJob",
		"metadata": map[string]any{"namespace": ml, "name": "train", "labels": map[string]any{queueKey: queueName},
			"annotations": map[string]any{"heliostat.dev/mode": "managed"}},
		"spec": map[string]any{"submissionMode": "InteractiveMode", "shutdownAfterJobFinishes": true,
			"rayClusterSpec": rig.Cluster{IdleSeconds: 600, Groups: []rig.Group{gpu}}.Spec()},
	}}); err != nil {
		t.Fatal(err)
	}
	for kind, name := range map[string]string{"RayCluster": "plain", "RayJob": "train"} {
		k.admitted(ml, kind, name)
	}
	k.admitted(ml, "RayCluster", "annotated")
	child := k.simulatedHead(k.childOf(ml, "RayJob", "train"))
	k.ownedElsewhere(ml, "wrapped")

	var still []*elasticTeam
	for _, team := range []*rayTeam{plain, annotated, child} {
		still = append(still, team.demand())
	}
	annotated.notElastic()
	plain.asksByREST()
	plain.syncs("shared")
	for team, place := range map[*rayTeam]string{plain: "RayCluster plain", annotated: "RayCluster annotated", child: "RayJob train",
		{karpenterLab: k, key: nodepool.ClusterKey{Namespace: ml, Name: "wrapped"}}: "ConfigMap wrapper"} {
		team.saysWhy(place)
	}
	for _, team := range still {
		team.decides(10) // Kueue suspends a patched RayCluster within milliseconds
		team.until("the demand lasts", wantsGPU, nil)
		team.unharmed()
		if team.patches > 0 {
			t.Errorf("RayCluster %s was patched: %s", team.rayTeam.key.Name, team.account())
		}
	}
	still[0].patchByHand()
	still[1].patchByHand()
}

// wantsGPU reports whether Heliostat wants pods of group gpu that do not exist.
func wantsGPU(c apiv1.Cluster) bool { return groupOf(c, "gpu").Desired > groupOf(c, "gpu").Current }

// wantCondition returns an error unless the condition of an object is True.
func wantCondition(object *unstructured.Unstructured, kind string) error {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == kind && condition["status"] == "True" {
			return nil
		}
	}
	return fmt.Errorf("%s is not %s: %v", object.GetName(), kind, conditions)
}

// admitted waits until Kueue has admitted the Workload of an object.
func (k *karpenterLab) admitted(namespace, kind, name string) {
	k.Helper()
	k.eventually("Kueue has admitted "+kind+" "+name, func(ctx context.Context) error {
		list, err := k.Dynamic.Resource(workloads).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			for _, owner := range list.Items[i].GetOwnerReferences() {
				if owner.Kind == kind && owner.Name == name {
					return wantCondition(&list.Items[i], "Admitted")
				}
			}
		}
		return fmt.Errorf("none of %d Workloads is of it", len(list.Items))
	})
}

// childOf waits for the RayCluster that the operator creates for a RayJob or RayService.
func (k *karpenterLab) childOf(namespace, kind, name string) (key nodepool.ClusterKey) {
	k.Helper()
	k.eventually(kind+" "+name+" has a RayCluster", func(ctx context.Context) error {
		list, err := k.Dynamic.Resource(rig.RayClusters).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if owner := metav1.GetControllerOf(&list.Items[i]); owner != nil && owner.Kind == kind && owner.Name == name {
				key = nodepool.ClusterKey{Namespace: namespace, Name: list.Items[i].GetName()}
				return nil
			}
		}
		return errors.New("there is none")
	})
	return key
}

// ownedElsewhere creates a RayCluster without a Kueue label. An object with the label controls it. Kueue does not know
// the kind of that owner, and no pod runs. The test checks that Heliostat follows the owner reference.
func (k *karpenterLab) ownedElsewhere(namespace, name string) {
	k.Helper()
	owner, err := k.Kube.CoreV1().ConfigMaps(namespace).Create(k.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "wrapper", Labels: map[string]string{queueKey: queueName}}}, metav1.CreateOptions{})
	must(k, err)
	manifest := rig.Cluster{Namespace: namespace, Name: name, Groups: []rig.Group{gpu},
		Annotations: map[string]string{"heliostat.dev/mode": "managed"}}.Manifest()
	manifest.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))})
	must(k, unstructured.SetNestedField(manifest.Object, true, "spec", "suspend"))
	must(k, k.Rig.Create(k.Context(), manifest))
}

// demand watches the RayCluster, and submits a task that waits for a GPU.
func (r *rayTeam) demand() *elasticTeam {
	r.Helper()
	r.until("the head answers", func(c apiv1.Cluster) bool { return c.DataAgeSeconds != nil }, nil)
	watched := &elasticTeam{r, r.witness(r.key, "")}
	r.head.Submit(simray.Task{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One}})
	r.until("Heliostat sees the demand", wantsGPU, nil)
	return watched
}

// notElastic checks that Kueue ignored the annotation.
func (r *rayTeam) notElastic() {
	r.Helper()
	object, err := r.Dynamic.Resource(rig.RayClusters).Namespace(r.key.Namespace).Get(r.Context(), r.key.Name, metav1.GetOptions{})
	must(r, err)
	text, err := object.MarshalJSON()
	must(r, err)
	if object.GetAnnotations()[elastic] != "true" || strings.Contains(string(text), "schedulingGates") {
		r.Fatalf("RayCluster %s: want the annotation and no gate: %s", r.key.Name, text)
	}
}

// asksByREST requests capacity over REST. Heliostat stores the request and launches nothing.
func (r *rayTeam) asksByREST() {
	r.Helper()
	code, body, err := r.heliostat.Call(r.Context(), http.MethodPost, rig.RequestPath(r.key.Namespace, r.key.Name), `{"bundles": [{"GPU": 1}, {"GPU": 1}]}`)
	if err != nil || code != http.StatusOK || !strings.Contains(string(body), "Kueue queues it (queue "+queueName) {
		r.Errorf("request_resources answers %d, %v, %s, want why nothing is launched", code, err, body)
	}
}

// syncs writes nothing: it waits until Heliostat reports a wrong number of GPUs, and checks the reason why Heliostat does
// not write it.
func (r *rayTeam) syncs(group string) {
	r.Helper()
	patch := []byte(`{"metadata": {"annotations": {"heliostat.dev/num-gpus-sync": "enforce"}}}`)
	_, err := r.Dynamic.Resource(rig.RayClusters).Namespace(r.key.Namespace).Patch(r.Context(), r.key.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	must(r, err)
	r.until("Heliostat says why it does not write a wrong number of GPUs", func(c apiv1.Cluster) bool {
		n := groupOf(c, group).NumGpus
		return n.Mismatch && n.Sync.Code == "not-managed" && strings.Contains(n.Sync.Why, "Kueue queues it (queue "+queueName)
	}, nil)
}

// saysWhy checks the reason that Heliostat reports for a RayCluster, and the object that it names as the source of
// Kueue's mark.
func (r *rayTeam) saysWhy(place string) {
	r.Helper()
	r.until("shadow because of Kueue", func(c apiv1.Cluster) bool {
		says := c.Mode == nodepool.Shadow
		for _, want := range []string{"queue " + queueName, place, "again without the label " + queueKey, elastic + `: "true"`} {
			says = says && strings.Contains(c.ModeReason, want)
		}
		return says
	}, nil)
	r.event("QueuedByKueue")
}

// event waits for an Event about the RayCluster.
func (r *rayTeam) event(reason string) {
	r.Helper()
	r.eventually("Event "+reason, func(ctx context.Context) error {
		selector := "involvedObject.kind=RayCluster,involvedObject.name=" + r.key.Name + ",reason=" + reason
		events, err := r.Kube.CoreV1().Events(r.key.Namespace).List(ctx, metav1.ListOptions{FieldSelector: selector})
		if err != nil || len(events.Items) == 0 {
			return errors.Join(errors.New("there is none"), err)
		}
		return nil
	})
}

// patchByHand scales up a group as Heliostat would. It waits until Kueue has suspended the RayCluster, which may last for
// milliseconds, and its head is gone.
func (e *elasticTeam) patchByHand() {
	e.Helper()
	key := e.rayTeam.key
	_, err := e.Dynamic.Resource(rig.RayClusters).Namespace(key.Namespace).Patch(e.Context(), key.Name, types.JSONPatchType,
		[]byte(`[{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 1}]`), metav1.PatchOptions{})
	must(e, err)
	e.eventually("Kueue suspends the RayCluster, and its head is deleted", func(context.Context) error {
		if !e.restarted() {
			return errors.New(e.account())
		}
		return nil
	})
	e.event("Stopped")
}
