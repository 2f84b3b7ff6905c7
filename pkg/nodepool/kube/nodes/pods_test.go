package nodes

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/dra"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// fakePods is an API server's pods, in pages of two. It does not stream lists.
type fakePods struct {
	forbidden atomic.Bool
	calls     atomic.Int32
	list      []corev1.Pod
	stream    *watch.FakeWatcher
	// selectors are those of all calls.
	selectors map[string]bool
}

func (f *fakePods) List(_ context.Context, options metav1.ListOptions) (*corev1.PodList, error) {
	f.calls.Add(1)
	if f.forbidden.Load() {
		return nil, errForbidden
	}
	f.selectors[options.FieldSelector] = true
	from := 0
	if options.Continue != "" {
		fmt.Sscan(options.Continue, &from)
	}
	page := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: f.list[from:min(from+2, len(f.list))]}
	if from+2 < len(f.list) {
		page.Continue = fmt.Sprint(from + 2)
	}
	return page, nil
}

func (f *fakePods) Watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	f.calls.Add(1)
	switch {
	case f.forbidden.Load():
		return nil, errForbidden
	case options.SendInitialEvents != nil:
		return nil, errNoStreams
	}
	f.selectors[options.FieldSelector] = true
	return f.stream, nil
}

var errNoStreams = apierrors.NewInvalid(schema.GroupKind{}, "", nil)

func kubePod(name, node, gpus string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: name, ResourceVersion: "1"},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "a", Resources: corev1.ResourceRequirements{Requests: amountsOf(gpus), Limits: amountsOf(gpus)},
		}}},
	}
}

// cardNode is a node whose labels prove that each GPU is a card.
func cardNode(name, gpus string) *corev1.Node {
	node := kubeNode(name, gpus, corev1.ConditionTrue)
	node.Labels = map[string]string{"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.count": gpus, "nvidia.com/gpu.memory": "15360", "nvidia.com/gpu.replicas": "1"}
	return node
}

// besidePods runs test beside the reading of two nodes with 8 GPUs and of pods, in synctest's time. The API server does
// not serve devices.
func besidePods(t *testing.T, pods *fakePods, test func(t *testing.T, n *nodes, changes *atomic.Int32)) {
	absent := apierrors.NewNotFound(schema.GroupResource{}, "")
	besideDevices(t, "8", pods, failing(absent), failing(absent), test)
}

// besideDevices is besidePods with ResourceSlices and ResourceClaims, and the DeviceClass of the devices. Nodes
// announce so many GPUs.
func besideDevices(t *testing.T, gpus string, pods *fakePods, slices, claims *fakeClaims, test func(t *testing.T, n *nodes, changes *atomic.Int32)) {
	synctest.Test(t, func(t *testing.T) {
		client := &fakeNodes{stream: watch.NewFakeWithChanSize(100, false)}
		for _, name := range []string{"a", "b"} {
			client.list = append(client.list, *cardNode(name, gpus))
		}
		pods.stream, pods.selectors = watch.NewFakeWithChanSize(100, false), map[string]bool{}
		var changes atomic.Int32
		n := newNodes(client, slog.New(slog.NewTextHandler(io.Discard, nil)), func() { changes.Add(1) })
		slices.stream, claims.stream = watch.NewFakeWithChanSize(100, false), watch.NewFakeWithChanSize(100, false)
		yes := true
		class := objectIn(`{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu.nvidia.com}, spec: {extendedResourceName: nvidia.com/gpu,
selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com'"}}]}}`)
		classes := &fakeClaims{list: []unstructured.Unstructured{class}, stream: watch.NewFakeWithChanSize(100, false)}
		templates := &fakeClaims{stream: watch.NewFakeWithChanSize(100, false)}
		n.readUse(pods, newNodeDevices(map[string]untypedClient{dra.ResourceSlices: slices, dra.ResourceClaims: claims, dra.DeviceClasses: classes, dra.ResourceClaimTemplates: templates}, func(context.Context) *bool { return &yes }, n.log, n.touchDevices))
		beside(t, func() {
			n.awaitUse(t.Context())
			synctest.Wait() // the first view is available before changed is called
			test(t, n, &changes)
		}, n.Start, n.use.pods.Start, n.use.devices.Start)
	})
}

// usedGPUs describes what pods take of each node: GPUs and pods.
func usedGPUs(view *nodeView) string {
	var all []string
	for _, node := range view.nodes {
		if node.Use == nil {
			all = append(all, node.Name+" unknown")
			continue
		}
		free := int64(0)
		for _, card := range node.Use.Cards {
			free += *card.FreeUnits
		}
		all = append(all, fmt.Sprintf("%s %s of %d pods, %d cards free", node.Name, node.Use.Requests["nvidia.com/gpu"],
			landing.WholeUnits(node.Use.Requests["pods"]), free))
	}
	return strings.Join(all, "; ")
}

func TestPodsOfAllNamespacesTakeTheirPartOfNodes(t *testing.T) {
	pods := &fakePods{list: []corev1.Pod{*kubePod("p", "a", "3"), *kubePod("q", "a", "2"), *kubePod("r", "gone", "1")}}
	besidePods(t, pods, func(t *testing.T, n *nodes, changes *atomic.Int32) {
		check := func(what, want string) {
			t.Helper()
			elapse(nodesPause)
			if got := usedGPUs(n.view.Load()); got != want {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
		}
		check("the first list", "a 5 of 2 pods, 3 cards free; b 0 of 0 pods, 8 cards free")
		before := changes.Load()
		pods.stream.Add(kubePod("s", "b", "4"))
		check("a new pod", "a 5 of 2 pods, 3 cards free; b 4 of 1 pods, 4 cards free")
		ended := kubePod("q", "a", "2")
		ended.Status.Phase = corev1.PodSucceeded
		pods.stream.Modify(ended)
		check("a pod that has ended", "a 3 of 1 pods, 5 cards free; b 4 of 1 pods, 4 cards free")
		pods.stream.Delete(kubePod("p", "a", "3"))
		pods.stream.Delete(kubePod("s", "b", "4"))
		check("pods that are gone", "a 0 of 0 pods, 8 cards free; b 0 of 0 pods, 8 cards free")
		if got := changes.Load(); got != before {
			t.Errorf("pods caused %d cycles of all RayClusters, want none", got-before)
		}
		if got := slices.Collect(maps.Keys(pods.selectors)); !slices.Equal(got, []string{"spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"}) {
			t.Errorf("selectors %q", got)
		}
	})
}

func TestPodsThatOnlyReportTheirStatusChangeNothing(t *testing.T) {
	pods := &fakePods{list: []corev1.Pod{*kubePod("p", "a", "3")}}
	besidePods(t, pods, func(t *testing.T, n *nodes, _ *atomic.Int32) {
		time.Sleep(time.Minute)
		before := n.view.Load()
		for range 20 {
			pod := kubePod("p", "a", "3")
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, LastProbeTime: metav1.Now()}}
			pods.stream.Modify(pod)
			time.Sleep(5 * time.Second)
		}
		if n.view.Load() != before {
			t.Error("a new view without a change")
		}
		pods.stream.Modify(kubePod("p", "a", "1")) // resized
		elapse(nodesPause)
		after := n.view.Load()
		if got := usedGPUs(after); !strings.HasPrefix(got, "a 1 of 1 pods") || after.facts != before.facts {
			t.Errorf("%s, facts %d; want 1 GPU and the facts of %d", got, after.facts, before.facts)
		}
		if before.nodes[1].Use != after.nodes[1].Use {
			t.Error("what pods take of a node is computed again although nothing changed there")
		}
	})
}

func TestForbiddenPodsAreReportedOnceAndTriedAgain(t *testing.T) {
	pods := &fakePods{list: []corev1.Pod{*kubePod("p", "a", "3")}}
	pods.forbidden.Store(true)
	besidePods(t, pods, func(t *testing.T, n *nodes, _ *atomic.Int32) {
		codes := func(gpus int64) (codes []string) {
			cluster := nodepool.Cluster{Key: llm, UID: "u", Generation: gpus, Groups: []nodepool.WorkerGroup{
				{Name: "one", Max: 1, Pod: landing.PodShape{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(gpus)}}},
				{Name: "two", Max: 1, Pod: landing.PodShape{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(gpus)}}},
			}}
			n.addTo(&cluster)
			for _, f := range cluster.Findings {
				if f.Code == PodsUnknown && f.Severity == raydemand.Info {
					codes = append(codes, f.Code)
				}
			}
			return codes
		}
		if got := codes(4); len(got) != 1 {
			t.Errorf("findings %q, want one", got)
		}
		if got := codes(9); len(got) != 0 {
			t.Errorf("findings %q for groups that fit no node", got)
		}
		if got := usedGPUs(n.view.Load()); got != "a unknown; b unknown" {
			t.Errorf("used %s while pods are forbidden", got)
		}
		time.Sleep(10 * time.Minute)
		if calls := pods.calls.Load(); calls > 40 {
			t.Errorf("%d calls within ten minutes", calls)
		}
		pods.forbidden.Store(false)
		time.Sleep(2 * reflector.ForbiddenPause)
		if got := usedGPUs(n.view.Load()); !strings.HasPrefix(got, "a 3 of 1 pods") || len(codes(4)) != 0 {
			t.Errorf("used %s, findings %q although pods may be read", got, codes(4))
		}
	})
}

// TestAWorkerIsBoundWhenItTakesItsPartOfTheNode checks workers that the watch of RayClusters knows before the one of
// nodes' pods: one that counts as bound too early would leave room for one more.
func TestAWorkerIsBoundWhenItTakesItsPartOfTheNode(t *testing.T) {
	worker := func(name string) *corev1.Pod {
		pod := kubePod(name, "a", "1")
		pod.Namespace, pod.Labels = llm.Namespace, map[string]string{"ray.io/cluster": llm.Name, "ray.io/group": "gpu", "ray.io/node-type": "worker"}
		return pod
	}
	pods := &fakePods{list: []corev1.Pod{*worker("w-1")}}
	emptyBound := int64(0) // how many workers count if none is bound
	bound := func(n *nodes) int64 {
		cluster := nodepool.Cluster{Key: llm, UID: "u", Groups: []nodepool.WorkerGroup{{Name: "gpu", Max: 4, Pod: landing.PodShape{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.One}}}},
			Workers: []nodepool.Worker{{Pod: "w-1", Group: "gpu", Node: "a"}, {Pod: "w-2", Group: "gpu", Node: "a"}, {Pod: "w-3", Group: "gpu"}}}
		n.addTo(&cluster)
		for i := range cluster.Workers {
			counts := max(cluster.Groups[0].Bound, emptyBound)
			if counted, w := int64(i) < counts, &cluster.Workers[i]; w.Counted != counted || w.Uncounted == (counted || w.Node == "") {
				t.Errorf("counted %v of %d bound: %+v", !counted, cluster.Groups[0].Bound, cluster.Workers[i])
			}
		}
		return cluster.Groups[0].Bound
	}
	besidePods(t, pods, func(t *testing.T, n *nodes, _ *atomic.Int32) {
		if got := bound(n); got != 1 {
			t.Errorf("%d bound, want the one that takes its part", got)
		}
		pods.stream.Add(worker("w-2"))
		elapse(nodesPause)
		if got := bound(n); got != 2 {
			t.Errorf("%d bound, want 2", got)
		}
	})
	pods.forbidden.Store(true)
	emptyBound = 2
	besidePods(t, pods, func(t *testing.T, n *nodes, _ *atomic.Int32) {
		if got := bound(n); got != 0 {
			t.Errorf("%d bound while pods are forbidden, want none: nodes count as empty", got)
		}
	})
}

func TestAChangedNodeCountsItsPodsAgain(t *testing.T) {
	pods := &fakePods{list: []corev1.Pod{*kubePod("p", "a", "3")}}
	besidePods(t, pods, func(t *testing.T, n *nodes, changes *atomic.Int32) {
		before := changes.Load()
		n.update(cardNode("a", "4"))
		elapse(nodesPause)
		if got := usedGPUs(n.view.Load()); got != "a 3 of 1 pods, 1 cards free; b 0 of 0 pods, 8 cards free" || changes.Load() != before+1 {
			t.Errorf("used %s, %d changes", got, changes.Load()-before)
		}
	})
}

// realisticPod is a worker pod as KubeRay creates it, with the environment, volumes, managed fields and statuses of a
// running pod: about 12 KB as JSON.
func realisticPod(i int) *corev1.Pod {
	pod := kubePod(fmt.Sprintf("raycluster-llm-worker-gpu-%05d", i), fmt.Sprintf("gke-ml-a100-%08d", i/8), "1")
	pod.Namespace = fmt.Sprintf("team-%d", i%50)
	pod.Labels = map[string]string{"ray.io/cluster": fmt.Sprintf("llm-%d", i%200), "ray.io/group": "gpu", "ray.io/node-type": "worker", "app.kubernetes.io/created-by": "kuberay-operator"}
	pod.Annotations = map[string]string{
		"scheduler.framework.gpushare.allocation": fmt.Sprintf(`{"0":{"%d":9}}`, i%8), "kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("x", 2000),
	}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: &metav1.FieldsV1{Raw: []byte(strings.Repeat("f", 4000))}}}
	c := &pod.Spec.Containers[0]
	c.Image = "rayproject/ray:2.46.0-py311-gpu"
	c.Resources.Requests = corev1.ResourceList{
		"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi"), "ephemeral-storage": resource.MustParse("20Gi"), "nvidia.com/gpu": resource.MustParse("1"),
	}
	for k := range 40 {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", k), Value: strings.Repeat("v", 60)})
	}
	for k := range 8 {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("volume-%d", k)})
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "a", Image: c.Image, ImageID: strings.Repeat("d", 100)}}}
	return pod
}

func TestPodsOfOneTemplateShareWhatTheyTake(t *testing.T) {
	p := newNodePods(nil, slog.New(slog.DiscardHandler), func() {})
	kept := func(name, cpu string) *decode.BoundPod {
		pod := realisticPod(0)
		pod.Name = name
		pod.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse(cpu)
		seen, err := p.seen(pod)
		must(t, err)
		return seen.(*seenPod).bound
	}
	first, second, larger, back := kept("gpu-abcde", "4"), kept("gpu-fghij", "4"), kept("gpu-klmno", "5"), kept("gpu-pqrst", "5")
	if first.Neighbors != second.Neighbors || second.Neighbors != larger.Neighbors {
		t.Error("pods with equal labels have neighbors of their own")
	}
	second.Takes["probe"], larger.Takes["probe"] = 1, 2
	if first.Takes["probe"] != 1 || back.Takes["probe"] != 2 {
		t.Errorf("pods that take %v and %v do not share it with equal ones", first.Takes, back.Takes)
	}
	if first.Takes["cpu"] == larger.Takes["cpu"] {
		t.Error("pods with different requests share what they take")
	}
}
