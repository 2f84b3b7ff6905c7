package neighbours

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/devcluster/kit"
	"heliostat.dev/heliostat/test/devcluster/nodeagent"
	"heliostat.dev/heliostat/test/rig"
	"heliostat.dev/heliostat/test/simray"
)

// TestElasticRayClustersUseTheirQuota runs elastic RayClusters beside the real Kueue and KubeRay's operator. kwok
// simulates their nodes, and Ray is simulated. Each scenario has its own ClusterQueue.
func TestElasticRayClustersUseTheirQuota(t *testing.T) {
	t.Parallel()
	eachKueue(t, elasticScenarios)
}

// eachKueue runs a test beside the default release of Kueue, and in the nightly test beside all.
func eachKueue(t *testing.T, test func(t *testing.T, release string)) {
	t.Helper()
	releases, err := kit.Releases(kit.KueueModule)
	must(t, err)
	if os.Getenv("HELIOSTAT_TEST_SLOW") == "" {
		releases = releases[:1]
	}
	for _, release := range releases {
		t.Run(release, func(t *testing.T) { test(t, release) })
	}
}

func elasticScenarios(t *testing.T, release string) {
	k := startKueueLab(t, release)
	scenarios := map[string]func(*karpenterLab){
		"within": withinQuota, "fallback": fallback, "borrowing": borrowing, "partial": partialFit,
		"survive": runningPodsSurvive, "freed": quotaFreed, "evicted": evicted,
		"rayjob": ownedInQuota("RayJob", rig.RayJobs, "rayClusterSpec",
			map[string]any{"submissionMode": "InteractiveMode", "shutdownAfterJobFinishes": true}),
		"rayservice": ownedInQuota("RayService", rig.RayServices, "rayClusterConfig", map[string]any{}),
	}
	t.Run("at once", func(t *testing.T) {
		for name, scenario := range scenarios {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				scenario(&karpenterLab{T: t, Rig: k.Rig, heliostat: k.heliostat, began: k.began, log: k.log})
			})
		}
	})
	t.Run("down", func(t *testing.T) {
		kueueDown(&karpenterLab{T: t, Rig: k.Rig, heliostat: k.heliostat, began: k.began, log: k.log})
	})
}

// startKueueLab starts Kueue with two kwok nodes, and Heliostat.
func startKueueLab(t *testing.T, release string, featureGates ...string) *karpenterLab {
	t.Helper()
	k := &karpenterLab{T: t, began: time.Now(), log: os.Stderr}
	var err error
	if k.Rig, err = rig.Start(t.Context(), rig.Options{Out: os.Stderr, Nodes: []nodeagent.NodeSpec{}, Kwok: true,
		Kueue: true, KueueRelease: release, KueueFeatureGates: featureGates}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.stop)
	for _, pool := range []string{"ondemand", "spot"} {
		spec := nodeagent.NodeSpec{Name: pool, Labels: map[string]string{"pool": pool},
			Capacity: map[string]string{"cpu": "100", "memory": "1000Gi", "nvidia.com/gpu": "100", "nvidia.com/gpu.shared": "8"}}
		must(t, k.Cluster.AddKwokNodes(t.Context(), spec))
	}
	k.flavor("default", nil)
	k.flavor("gpus", nil)
	k.flavor("ondemand", map[string]any{"pool": "ondemand"})
	k.flavor("spot", map[string]any{"pool": "spot"})
	if k.heliostat, err = k.Serve(t.Context(), "--log-level", "debug"); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *karpenterLab) flavor(name string, labels map[string]any) {
	k.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2",
		"kind": "ResourceFlavor", "metadata": map[string]any{"name": name}, "spec": map[string]any{"nodeLabels": labels}}}
	if len(labels) == 0 {
		delete(object.Object, "spec")
	}
	if _, err := k.Dynamic.Resource(flavors).Create(k.Context(), object, metav1.CreateOptions{}); err != nil {
		k.Fatal(err)
	}
}

// queue creates a ClusterQueue and a LocalQueue of one name, in the namespace of that name. gpus are the quotas of GPUs
// by flavor.
func (k *karpenterLab) queue(name, cohort string, gpus ...any) {
	k.Helper()
	spec := map[string]any{"namespaceSelector": map[string]any{}, "resourceGroups": []any{
		map[string]any{"coveredResources": []any{"cpu", "memory", "nvidia.com/gpu.shared"}, "flavors": []any{
			map[string]any{"name": "default", "resources": []any{map[string]any{"name": "cpu", "nominalQuota": "100"},
				map[string]any{"name": "memory", "nominalQuota": "1000Gi"}, map[string]any{"name": "nvidia.com/gpu.shared", "nominalQuota": "8"}}}}},
		map[string]any{"coveredResources": []any{"nvidia.com/gpu"}, "flavors": gpus},
	}}
	if cohort != "" {
		spec["cohortName"] = cohort
	}
	queue := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue",
		"metadata": map[string]any{"name": name}, "spec": spec}}
	if _, err := k.Dynamic.Resource(clusterQueues).Create(k.Context(), queue, metav1.CreateOptions{}); err != nil {
		k.Fatal(err)
	}
	local := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
		"metadata": map[string]any{"name": queueName, "namespace": name}, "spec": map[string]any{"clusterQueue": name}}}
	must(k, k.CreateAny(k.Context(), localQueues, local))
	k.eventually("LocalQueue to be active", func(context.Context) error {
		found, err := k.Dynamic.Resource(localQueues).Namespace(name).Get(k.Context(), queueName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return wantCondition(found, "Active")
	})
}

func gpusOf(flavor, amount string) any {
	return map[string]any{"name": flavor, "resources": []any{map[string]any{"name": "nvidia.com/gpu", "nominalQuota": amount}}}
}

func gpuGroupOn(name, pool string, replicas int64) rig.Group {
	group := rig.Group{Name: name, Replicas: replicas, Max: 10, CPU: "100m", Devices: map[string]int64{"nvidia.com/gpu": 1}}
	if pool != "" {
		group.NodeSelector = map[string]string{"pool": pool}
	}
	return group
}

// elasticTeam is an elastic RayCluster with a simulated head and a witness of what happens to it.
type elasticTeam struct {
	*rayTeam
	*witness
}

// elasticCluster creates an elastic RayCluster, and waits until Kueue has admitted it and Heliostat scales it. The
// first of several groups is preferred.
func (k *karpenterLab) elasticCluster(name string, groups ...rig.Group) *elasticTeam {
	k.Helper()
	team := k.queued(rig.Cluster{Namespace: name, Name: name, InTree: true, SidecarImage: "heliostat", Groups: groups}, elastic)
	team.managed()
	return &elasticTeam{team, k.witness(team.key, "")}
}

// managed waits until Heliostat scales the RayCluster.
func (r *rayTeam) managed() {
	r.Helper()
	r.until("Heliostat to manage the RayCluster", func(c apiv1.Cluster) bool {
		return c.Mode == nodepool.Managed && c.Error == ""
	}, nil)
}

// want submits tasks of one GPU each.
func (e *elasticTeam) tasks(count int) (ids []simray.WorkID) {
	for range count {
		ids = append(ids, e.head.Submit(simray.Task{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One}}))
	}
	e.note("%d tasks wait for a GPU each", count)
	return ids
}

// run waits until so many workers run.
func (e *elasticTeam) run(count int) {
	e.Helper()
	e.eventually(fmt.Sprintf("%d workers run", count), func(context.Context) error {
		if n := len(e.runningWorkers()); n < count {
			return fmt.Errorf("%d run: %s", n, e.account())
		}
		return nil
	})
}

// unharmed fails the test if a reduction or suspension was seen.
func (e *elasticTeam) unharmed() {
	e.Helper()
	for _, harm := range e.harm() {
		e.Error(harm)
	}
	e.note("account: %s", e.account())
}

// withinQuota also removes the queue label of the running RayCluster, which Kueue allows: its webhook looks at an update
// only if there is a label. It does not follow the RayCluster any more, and new pods stay behind the gate.
func withinQuota(k *karpenterLab) {
	k.queue("within", "", gpusOf("gpus", "4"))
	e := k.elasticCluster("within", gpuGroupOn("gpu", "", 0))
	e.tasks(3)
	e.run(3)
	e.eventually("one unfinished Workload", func(context.Context) error {
		if n := e.unfinished(); n != 1 {
			return fmt.Errorf("%d Workloads are unfinished", n)
		}
		return nil
	})
	_, err := k.Dynamic.Resource(rig.RayClusters).Namespace("within").Patch(k.Context(), "within", types.MergePatchType,
		[]byte(`{"metadata": {"labels": {"`+queueKey+`": null}}}`), metav1.PatchOptions{})
	must(k, err)
	e.tasks(1)
	e.until("Heliostat to say that nothing removes the gate", func(c apiv1.Cluster) bool {
		return slices.ContainsFunc(c.Findings, func(f apiv1.Finding) bool { return strings.Contains(f.Why, "no label "+queueKey) })
	}, nil)
	e.unharmed()
}

// ownedInQuota scales the RayCluster of a queued RayJob or RayService within its quota: 2 of 3 workers, none, and one
// again. The flag enableInTreeAutoscaling is true, without which Kueue does not follow the replicas, and the autoscaler
// container runs Heliostat's image, which leaves a RayCluster in mode managed to the fleet. Nothing serves in a simulated
// head, so the test writes into the status of the RayService what the operator writes when it does.
func ownedInQuota(kind string, resource schema.GroupVersionResource, field string, spec map[string]any) func(*karpenterLab) {
	return func(k *karpenterLab) {
		name := strings.ToLower(kind)
		k.queue(name, "", gpusOf("gpus", "2"))
		spec[field] = rig.Cluster{IdleSeconds: 2, InTree: true, SidecarImage: "heliostat", Groups: []rig.Group{gpuGroupOn("gpu", "", 0)}}.Spec()
		if err := k.CreateAny(k.Context(), resource, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "ray.io/v1", "kind": kind,
			"metadata": map[string]any{"namespace": name, "name": "owner", "labels": map[string]any{queueKey: queueName},
				"annotations": map[string]any{"heliostat.dev/mode": "managed", elastic: "true"}},
			"spec": spec,
		}}); err != nil {
			k.Fatal(err)
		}
		k.admitted(name, kind, "owner")
		key := k.childOf(name, kind, "owner")
		team := k.simulatedHead(key)
		if kind == "RayService" {
			_, err := k.Dynamic.Resource(resource).Namespace(name).Patch(k.Context(), "owner", types.MergePatchType, fmt.Appendf(nil,
				`{"status": {"activeServiceStatus": {"rayClusterName": %q}, "pendingServiceStatus": null}}`, key.Name), metav1.PatchOptions{}, "status")
			must(k, err)
		}
		team.managed()
		owner, err := k.Dynamic.Resource(resource).Namespace(name).Get(k.Context(), "owner", metav1.GetOptions{})
		must(k, err)
		e := &elasticTeam{team, k.witness(team.key, owner.GetUID())}
		ids := e.tasks(3)
		e.run(2)
		e.until("the third task to be capped by the quota", func(c apiv1.Cluster) bool {
			return slices.ContainsFunc(c.Unmet, func(u apiv1.Unmet) bool { return strings.Contains(u.Reason.Message, "ClusterQueue "+name) })
		}, nil)
		for _, id := range ids {
			e.head.Cancel(id)
		}
		e.empty()
		e.tasks(1)
		e.run(1)
		e.note("account: %s", e.account())
		if e.suspended() {
			e.Error("the RayCluster is suspended")
		}
	}
}

// empty waits until no worker is left.
func (e *elasticTeam) empty() {
	e.Helper()
	e.eventually("no worker is left", func(context.Context) error {
		if n := len(e.runningWorkers()); n > 0 {
			return fmt.Errorf("%d run: %s", n, e.account())
		}
		return nil
	})
}

// borrowing uses two GPUs of a flavor, of which the ClusterQueue borrows one from its cohort, and then another flavor.
func borrowing(k *karpenterLab) {
	k.queue("lender", "cohort", gpusOf("ondemand", "1"))
	k.queue("borrowing", "cohort", gpusOf("ondemand", "1"), gpusOf("spot", "4"))
	fallsBack(k, "borrowing")
}

func fallback(k *karpenterLab) {
	k.queue("fallback", "", gpusOf("ondemand", "2"), gpusOf("spot", "4"))
	fallsBack(k, "fallback")
}

func fallsBack(k *karpenterLab, name string) {
	e := k.elasticCluster(name, gpuGroupOn("od", "ondemand", 0), gpuGroupOn("spot", "spot", 0))
	e.tasks(5)
	e.run(5)
	if n := e.pendings(); n > 0 {
		e.Errorf("%d Workloads had to wait although the headroom is known", n)
	}
	if got := rig.Replicas(e.object()); got["od"] != 2 || got["spot"] != 3 {
		e.Errorf("replicas %v, want 2 of od and 3 of spot", got)
	}
	e.unharmed()
}

func partialFit(k *karpenterLab) {
	k.queue("partial", "", gpusOf("gpus", "4"))
	e := k.elasticCluster("partial", gpuGroupOn("gpu", "", 0))
	e.tasks(6)
	e.run(4)
	e.until("2 are unmet because of the quota", func(c apiv1.Cluster) bool {
		return len(c.Unmet) == 1 && c.Unmet[0].Count == 2 && strings.Contains(c.Unmet[0].Reason.Message, "ClusterQueue partial has 4")
	}, nil)
	e.unharmed()
}

func runningPodsSurvive(k *karpenterLab) {
	k.queue("survive", "", gpusOf("gpus", "6"))
	e := k.elasticCluster("survive", gpuGroupOn("gpu", "", 0))
	e.tasks(3)
	e.run(3)
	before := e.runningWorkers()
	k.stopPolicy("survive", "Hold") // Kueue admits nothing more, although the quota is free
	more := e.tasks(3)
	e.eventually("pods to wait for quota", func(context.Context) error {
		if e.pendings() == 0 {
			return errors.New("no Workload waits")
		}
		return nil
	})
	for _, id := range more {
		e.head.Cancel(id)
	}
	e.eventually("the gated pods to go", func(context.Context) error {
		if n := e.gated(); n > 0 {
			return fmt.Errorf("%d are gated", n)
		}
		return nil
	})
	e.decides(3)
	for uid := range before {
		if !e.runningWorkers()[uid] {
			e.Errorf("pod %s no longer runs", uid)
		}
	}
	e.unharmed()
}

func quotaFreed(k *karpenterLab) {
	k.queue("freed", "", gpusOf("gpus", "3"))
	hog := rig.Cluster{Namespace: "freed", Name: "hog", Groups: []rig.Group{gpuGroupOn("gpu", "", 2)},
		Annotations: map[string]string{"heliostat.dev/mode": "off"}}.Manifest()
	hog.SetLabels(map[string]string{queueKey: queueName})
	must(k, k.Rig.Create(k.Context(), hog))
	k.eventually("the other RayCluster to have its quota", func(context.Context) error {
		list, err := k.Dynamic.Resource(workloads).Namespace("freed").List(k.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) == 0 {
			return errors.Join(errors.New("no Workload"), err)
		}
		return wantCondition(&list.Items[0], "QuotaReserved")
	})
	// Kueue writes the status of the ClusterQueue later than that of the Workload, and only the former says what is left.
	k.eventually("the ClusterQueue to show its quota", func(context.Context) error {
		queue, err := k.Dynamic.Resource(clusterQueues).Get(k.Context(), "freed", metav1.GetOptions{})
		if err != nil {
			return err
		}
		reserved, _, err := unstructured.NestedSlice(queue.Object, "status", "flavorsReservation")
		if text := fmt.Sprint(reserved); err != nil || !strings.Contains(text, "name:nvidia.com/gpu total:2]") {
			return fmt.Errorf("reserved are %s, %v", text, err)
		}
		return nil
	})
	e := k.elasticCluster("freed", gpuGroupOn("gpu", "", 0))
	e.tasks(3)
	e.run(1)
	e.decides(3)
	if n := e.pendings(); n > 1 {
		e.Errorf("%d Workloads waited for quota that others have, want at most one", n)
	}
	err := k.Dynamic.Resource(rig.RayClusters).Namespace("freed").Delete(k.Context(), "hog", metav1.DeleteOptions{})
	must(k, err)
	e.run(3)
	e.unharmed()
}

func evicted(k *karpenterLab) {
	k.queue("evicted", "", gpusOf("gpus", "4"))
	e := k.elasticCluster("evicted", gpuGroupOn("gpu", "", 0))
	e.tasks(2)
	e.run(2)
	k.stopPolicy("evicted", "HoldAndDrain")
	e.eventually("Kueue to suspend the RayCluster", func(context.Context) error {
		if !e.suspended() {
			return errors.New("it is not suspended")
		}
		return nil
	})
	replicas := rig.Replicas(e.object())
	e.until("Heliostat to say that Kueue holds it back", func(c apiv1.Cluster) bool {
		return c.Mode == nodepool.Shadow && strings.Contains(c.ModeReason, "Kueue holds it back")
	}, nil)
	e.decides(3)
	if now := rig.Replicas(e.object()); fmt.Sprint(now) != fmt.Sprint(replicas) {
		e.Errorf("replicas changed from %v to %v while suspended", replicas, now)
	}
	k.stopPolicy("evicted", "None")
	e.run(2)
}

func (k *karpenterLab) stopPolicy(queue, policy string) {
	k.Helper()
	_, err := k.Dynamic.Resource(clusterQueues).Patch(k.Context(), queue, types.MergePatchType,
		[]byte(`{"spec": {"stopPolicy": "`+policy+`"}}`), metav1.PatchOptions{})
	must(k, err)
}

func kueueDown(k *karpenterLab) {
	k.queue("down", "", gpusOf("gpus", "4"))
	e := k.elasticCluster("down", gpuGroupOn("gpu", "", 0))
	must(k, k.Cluster.KillPart(devcluster.Kueue))
	e.tasks(2)
	var message string
	e.until("Heliostat to say that the webhook does not answer", func(c apiv1.Cluster) bool {
		message = c.Error
		return strings.Contains(c.Error, "failed calling webhook")
	}, nil)
	e.note("error: %s", message)
	e.decides(3)
	must(k, k.Cluster.RestartPart(k.Context(), devcluster.Kueue))
	e.run(2)
	e.unharmed()
}
