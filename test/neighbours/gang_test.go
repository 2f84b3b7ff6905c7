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

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/batchscheduler/volcano"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/test/devcluster/nodeagent"
	"heliostat.dev/heliostat/test/rig"
)

// drainDeadline is how long a worker may stay busy that a lowered maximum removes.
const drainDeadline = 20 * time.Second

var podGroups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}

// TestPodsThatAGangSchedulerHolds runs RayClusters whose PodGroups the real operator creates for the real coscheduling
// of scheduler-plugins. kwok simulates their nodes, and Ray is simulated. After a fraction of the allocation timeout,
// pods that find no node close their group.
func TestPodsThatAGangSchedulerHolds(t *testing.T) {
	t.Parallel()
	k := startGangLab(t, rig.Options{Nodes: []nodeagent.NodeSpec{}, Kwok: true}, "--allocation-timeout", "30s", "--drain-deadline", drainDeadline.String())
	k.gpuNode("large", 8)
	k.gpuNode("small", 1)
	for name, scenario := range map[string]func(*karpenterLab){"floor": floorOfCreation, "room": roomForTheGang, "deadline": busyUntilTheDeadline} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(&karpenterLab{T: t, Rig: k.Rig, heliostat: k.heliostat, began: k.began, log: k.log})
		})
	}
}

// startGangLab starts a dev cluster whose scheduler is the coscheduling of scheduler-plugins, and Heliostat.
func startGangLab(t *testing.T, options rig.Options, arguments ...string) *karpenterLab {
	t.Helper()
	options.Out, options.Coscheduling = os.Stderr, true
	k := &karpenterLab{T: t, began: time.Now(), log: os.Stderr}
	var err error
	if k.Rig, err = rig.Start(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.stop)
	if k.heliostat, err = k.Serve(t.Context(), append(arguments, "--log-level", "debug")...); err != nil {
		t.Fatal(err)
	}
	return k
}

// TestRealRayInAGang: the PodGroup of a RayCluster counts its two first workers, which nobody used. So it holds
// back the worker for a task until the command of the finding has made it smaller. Ray is real, and so are the head's
// container autoscaler and the pods.
// It runs alone: two real RayClusters that start at once on two cores take longer than a raylet waits for its processes.
func TestRealRayInAGang(t *testing.T) {
	k := startGangLab(t, rig.Options{})
	key := k.gangCluster("real", gpuGroupOn("gpu", "", 2))
	e := &elasticTeam{&rayTeam{karpenterLab: k, key: key}, k.witness(key, "")}
	e.eventually("Heliostat removes the workers that nobody uses", func(context.Context) error {
		if n := rig.Replicas(e.object())["gpu"]; n > 0 {
			return fmt.Errorf("replicas are %d: %s", n, e.account())
		}
		return nil
	})
	e.empty()
	driver, err := k.Driver(t.Context(), key.Namespace, key.Name, "driver")
	must(t, err)
	t.Cleanup(driver.Kill)
	must(t, driver.Do(rig.Command{Do: "task", ID: "one", GPUs: 1}))
	e.shrink(e.held("minMember of group: 3"))
	if _, err := driver.Wait(t.Context(), "one", "running"); err != nil {
		t.Fatal(err)
	}
	e.note("the task runs: %s", e.account())
}

// gpuNode adds a node of a pool with GPUs.
func (k *karpenterLab) gpuNode(pool string, gpus int) {
	k.Helper()
	spec := nodeagent.NodeSpec{Name: fmt.Sprintf("%s-%d", pool, gpus), Labels: map[string]string{"pool": pool},
		Capacity: map[string]string{"cpu": "100", "memory": "1000Gi", "nvidia.com/gpu": fmt.Sprint(gpus)}}
	must(k, k.Cluster.AddKwokNodes(k.Context(), spec))
}

// gang creates a RayCluster that the operator gives a PodGroup. The container autoscaler is Heliostat's, which leaves a
// RayCluster in mode managed to the fleet.
func (k *karpenterLab) gang(name string, group rig.Group) *elasticTeam {
	k.Helper()
	team := k.simulatedHead(k.gangCluster(name, group))
	return &elasticTeam{team, k.witness(team.key, "")}
}

func (k *karpenterLab) gangCluster(name string, group rig.Group) nodepool.ClusterKey {
	k.Helper()
	manifest := rig.Cluster{Namespace: name, Name: name, IdleSeconds: 2, InTree: true, SidecarImage: rig.SidecarImage,
		Annotations: map[string]string{"heliostat.dev/mode": "managed"}, Groups: []rig.Group{group}}.Manifest()
	manifest.SetLabels(map[string]string{"ray.io/gang-scheduling-enabled": "true"})
	must(k, k.Rig.Create(k.Context(), manifest))
	return nodepool.ClusterKey{Namespace: name, Name: name}
}

// held waits until Heliostat says that the gang scheduler holds pods, and what the scheduler says. It returns the cure.
func (e *elasticTeam) held(says string) (fix string) {
	e.Helper()
	e.until("Heliostat to say that pods are held", func(c apiv1.Cluster) bool {
		return slices.ContainsFunc(c.Findings, func(f apiv1.Finding) bool {
			fix = f.Fix
			return f.Code == observe.FindingGangHeld && strings.Contains(f.Why, says)
		})
	}, nil)
	return fix
}

// shrink does what kubectl would with the patch of the cure.
func (e *elasticTeam) shrink(fix string) {
	e.Helper()
	key := e.rayTeam.key
	_, patch, found := strings.Cut(fix, fmt.Sprintf("kubectl patch podgroups.scheduling.x-k8s.io -n %s %s --type merge -p '", key.Namespace, key.Name))
	if !found {
		e.Fatalf("%s has no patch of the PodGroup", fix)
	}
	if _, err := e.Dynamic.Resource(podGroups).Namespace(key.Namespace).Patch(e.Context(), key.Name, types.MergePatchType,
		[]byte(strings.TrimSuffix(patch, "'")), metav1.PatchOptions{}); err != nil {
		e.Fatal(err)
	}
}

// floorOfCreation: the operator writes minMember once, from the replicas at the creation, also with the flag
// enableInTreeAutoscaling. Below that, no new pod starts until somebody lowers it. The pods close no group, however long
// they wait.
func floorOfCreation(k *karpenterLab) {
	e := k.gang("floor", gpuGroupOn("gpu", "large", 2))
	e.run(2)
	e.empty()
	e.tasks(1)
	fix := e.held("minMember of group: 3")
	waited := time.Now()
	e.until("the pod has waited for longer than the allocation timeout", func(apiv1.Cluster) bool { return time.Since(waited) > 35*time.Second },
		func(c apiv1.Cluster) {
			if g := groupOf(c, "gpu"); g.Closed != "" || g.Desired != 1 {
				e.Fatalf("the group is closed (%s) or wants %d pods, want one pod that waits", g.Closed, g.Desired)
			}
		})
	e.shrink(fix)
	e.run(1)
}

// roomForTheGang: one of two workers has no room, so the head and the other wait with it. When room comes, all start, and
// more workers than the gang's start one by one.
func roomForTheGang(k *karpenterLab) {
	group := gpuGroupOn("gpu", "small", 2)
	group.Min = 2
	e := k.gang("room", group)
	e.held("rejection in ")
	pods, err := e.Kube.CoreV1().Pods("room").List(e.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 3 || slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Spec.NodeName != "" }) {
		e.Fatalf("%d pods, %v; want three without a node", len(pods.Items), err)
	}
	e.gpuNode("small", 2)
	e.run(2)
	e.tasks(3)
	e.run(3)
	e.eventually("the PodGroup as created", func(ctx context.Context) error {
		group, err := e.Dynamic.Resource(podGroups).Namespace("room").Get(ctx, "room", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if n, _, _ := unstructured.NestedInt64(group.Object, "spec", "minMember"); n != 3 {
			return errors.New(fmt.Sprint("minMember is ", n))
		}
		return nil
	})
}

// busyUntilTheDeadline: a person lowers maxReplicas below the number of busy workers. With the flag
// enableInTreeAutoscaling, the operator waits for names, and Heliostat names one when the deadline is over.
func busyUntilTheDeadline(k *karpenterLab) {
	e := k.gang("deadline", gpuGroupOn("gpu", "large", 0))
	e.tasks(2)
	e.run(2)
	e.until("both have joined", func(c apiv1.Cluster) bool { return groupOf(c, "gpu").Ready == 2 }, nil)
	lowered := time.Now()
	if _, err := e.Dynamic.Resource(rig.RayClusters).Namespace("deadline").Patch(e.Context(), "deadline", types.JSONPatchType,
		[]byte(`[{"op": "replace", "path": "/spec/workerGroupSpecs/0/maxReplicas", "value": 1}]`), metav1.PatchOptions{}); err != nil {
		e.Fatal(err)
	}
	e.eventually("one worker goes", func(context.Context) error {
		if n := len(e.runningWorkers()); n != 1 {
			return fmt.Errorf("%d run: %s", n, e.account())
		}
		return nil
	})
	if waited := time.Since(lowered); waited < drainDeadline {
		e.Errorf("a busy worker went after %v, before the deadline of %v", waited, drainDeadline)
	}
}

// TestALaunchMovesVolcanosFloorUnlessInTreeAutoscalingIsOn calls the operator's own code before and after a launch of
// two workers: Volcano, which does not build here, starts pods only if minMember of them fit.
func TestALaunchMovesVolcanosFloorUnlessInTreeAutoscalingIsOn(t *testing.T) {
	for inTree, want := range map[bool]int32{false: 3, true: 1} {
		api := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build()
		scheduler, err := (&volcano.VolcanoBatchSchedulerFactory{}).New(t.Context(), nil, api)
		must(t, err)
		cluster := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "llm"}, Spec: rayv1.RayClusterSpec{
			EnableInTreeAutoscaling: &inTree, WorkerGroupSpecs: []rayv1.WorkerGroupSpec{
				{Replicas: new(int32), MinReplicas: new(int32), MaxReplicas: new(int32(4)), NumOfHosts: 1}}}}
		for _, replicas := range []int32{0, 2} {
			cluster.Spec.WorkerGroupSpecs[0].Replicas = &replicas
			must(t, scheduler.DoBatchSchedulingOnSubmission(t.Context(), cluster))
		}
		var group v1beta1.PodGroup
		err = api.Get(t.Context(), types.NamespacedName{Namespace: "ml", Name: "ray-llm-pg"}, &group)
		if err != nil || group.Spec.MinMember != want {
			t.Errorf("with enableInTreeAutoscaling %v, minMember is %d, %v; want %d", inTree, group.Spec.MinMember, err, want)
		}
	}
}
