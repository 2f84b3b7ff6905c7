package nodes

import (
	"context"
	"errors"
	"io"
	"log/slog"
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// fakeNodes is an API server's nodes: a list, and a stream of what changes. It does not stream lists.
type fakeNodes struct {
	forbidden atomic.Bool
	failing   atomic.Bool
	calls     atomic.Int32
	list      []corev1.Node
	stream    *watch.FakeWatcher
}

var errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no"))

func (f *fakeNodes) List(context.Context, metav1.ListOptions) (*corev1.NodeList, error) {
	f.calls.Add(1)
	if f.forbidden.Load() {
		return nil, errForbidden
	}
	if f.failing.Load() {
		return nil, apierrors.NewServiceUnavailable("overloaded")
	}
	return &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: f.list}, nil
}

func (f *fakeNodes) Watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	f.calls.Add(1)
	switch {
	case f.forbidden.Load():
		return nil, errForbidden
	case f.failing.Load():
		return nil, apierrors.NewServiceUnavailable("overloaded")
	case options.SendInitialEvents != nil:
		return nil, errNoStreams
	}
	return f.stream, nil
}

func kubeNode(name, gpus string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"},
		Status: corev1.NodeStatus{
			Allocatable: amountsOf(gpus), Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
		},
	}
}

// client-go's handlers of errors remember the time of the last one in the whole process and sleep until a millisecond
// after it: in synctest's time, which starts anew with each test, that may be for ever.
func init() { utilruntime.ErrorHandlers = nil }

// beside runs test while all of start run, in a bubble of synctest, and ends them.
func beside(t *testing.T, test func(), start ...func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, len(start))
	for _, each := range start {
		go func() { ended <- each(ctx) }()
	}
	synctest.Wait()
	test()
	cancel()
	for range start {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// elapse lets so much of synctest's time pass, and waits until what happens then is done.
func elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// besideNodes runs test beside the reading of nodes, in synctest's time. changes counts the calls of changed.
func besideNodes(t *testing.T, client *fakeNodes, test func(t *testing.T, n *nodes, changes *atomic.Int32)) {
	synctest.Test(t, func(t *testing.T) {
		client.stream = watch.NewFakeWithChanSize(100, false)
		var changes atomic.Int32
		n := newNodes(client, slog.New(slog.NewTextHandler(io.Discard, nil)), func() { changes.Add(1) })
		beside(t, func() { test(t, n, &changes) }, n.Start)
	})
}

func TestNodesThatChangeOftenCauseCyclesOnceASecond(t *testing.T) {
	client := &fakeNodes{list: []corev1.Node{*kubeNode("a", "1", corev1.ConditionTrue)}}
	besideNodes(t, client, func(t *testing.T, n *nodes, changes *atomic.Int32) {
		if got := changes.Load(); got != 1 {
			t.Fatalf("%d changes after the first list, want 1", got)
		}
		time.Sleep(time.Minute)
		for i := range 30 {
			client.stream.Modify(kubeNode("a", string(rune('1'+i%2)), corev1.ConditionTrue))
			client.stream.Modify(kubeNode("a", string(rune('2'+i%2)), corev1.ConditionTrue))
			synctest.Wait()
			if i == 0 && changes.Load() != 2 {
				t.Errorf("%d changes right after the first, want 2: it must not wait", changes.Load())
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		// Three seconds of changes: at 0, 1 and 2 s, and the last at 3 s.
		if got := changes.Load(); got != 5 {
			t.Errorf("%d changes, want 5", got)
		}
		if node := n.view.Load().stock.Node("a"); node == nil || node.Allocatable["nvidia.com/gpu"] != raydemand.Whole(3) {
			t.Errorf("the view holds %+v, want the newest", node)
		}
	})
}

func TestAHeartbeatCausesNoCycle(t *testing.T) {
	client := &fakeNodes{list: []corev1.Node{*kubeNode("a", "1", corev1.ConditionTrue)}}
	besideNodes(t, client, func(t *testing.T, n *nodes, changes *atomic.Int32) {
		before := n.view.Load()
		for range 20 {
			node := kubeNode("a", "1", corev1.ConditionTrue)
			node.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
			node.Status.Images = []corev1.ContainerImage{{SizeBytes: 1}}
			client.stream.Modify(node)
			time.Sleep(5 * time.Second)
		}
		if changes.Load() != 1 || n.view.Load() != before {
			t.Errorf("%d changes, want the first alone", changes.Load())
		}
		client.stream.Delete(kubeNode("a", "1", corev1.ConditionTrue))
		time.Sleep(nodesPause)
		if n.view.Load().stock.Node("a") != nil || changes.Load() != 2 {
			t.Errorf("a deleted node is found, or there are %d changes, want 2", changes.Load())
		}
	})
}

func TestForbiddenNodesAreLoggedAndTriedAgain(t *testing.T) {
	client := &fakeNodes{list: []corev1.Node{*kubeNode("a", "1", corev1.ConditionTrue)}}
	client.forbidden.Store(true)
	besideNodes(t, client, func(t *testing.T, n *nodes, changes *atomic.Int32) {
		cluster := nodepool.Cluster{Key: llm, Groups: []nodepool.WorkerGroup{{Name: "gpu", Max: 1}}}
		n.addTo(&cluster)
		if len(cluster.Findings) != 1 || cluster.Findings[0].Code != NodesForbidden || cluster.Findings[0].Severity != raydemand.Info || cluster.Groups[0].Landing != nil {
			t.Errorf("findings %+v, fit %v; want one %s and no fit", cluster.Findings, cluster.Groups[0].Landing, NodesForbidden)
		}
		time.Sleep(10 * time.Minute)
		if calls := client.calls.Load(); calls > 40 || changes.Load() != 1 {
			t.Errorf("%d calls and %d changes within ten minutes", calls, changes.Load())
		}
		client.forbidden.Store(false)
		time.Sleep(2 * reflector.ForbiddenPause)
		if view := n.view.Load(); !view.known || view.forbidden || len(view.nodes) != 1 {
			t.Errorf("the view is %+v although nodes may be read", view)
		}
	})
}

func TestFindingsExplainWhatTheNodesMean(t *testing.T) {
	n := newNodes(&fakeNodes{}, slog.New(slog.DiscardHandler), func() {})
	shape := func(gpus int64) landing.PodShape {
		return landing.PodShape{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(gpus)}}
	}
	cluster := nodepool.Cluster{
		Key: llm, UID: "u", Generation: 1,
		Groups: []nodepool.WorkerGroup{
			{Index: 0, Name: "one", Max: 1, Pod: shape(1)}, {Index: 1, Name: "eight", Max: 1, Pod: shape(8)},
			{Index: 2, Name: "closed", Max: 0, Pod: shape(8)}, {Index: 3, Name: "suspended", Max: 1, Suspended: true, Pod: shape(8)},
		},
		Workers: []nodepool.Worker{
			{Pod: "w-well", Group: "one", Node: "a"}, {Pod: "w-gone", Group: "one", Node: "z"}, {Pod: "w-dark", Group: "one", Node: "b"},
			{Pod: "w-failed", Group: "one", Node: "z", Failed: true}, {Pod: "w-waits", Group: "eight"},
		},
	}
	untouched := cluster
	n.addTo(&untouched)
	if len(untouched.Findings) > 0 {
		t.Errorf("findings %v before nodes are known", untouched.Findings)
	}
	n.view.Store(viewOf([]landing.Node{
		decode.ForPodFit(sharing.Reader{}, kubeNode("a", "4", corev1.ConditionTrue)), decode.ForPodFit(sharing.Reader{}, kubeNode("b", "4", corev1.ConditionUnknown)),
	}))
	n.addTo(&cluster)
	if got := cluster.Groups[0].Landing; got.Nodes != 1 || got.Why != "" {
		t.Errorf("group one: %+v, want one node", got)
	}
	var reported []string
	for _, f := range cluster.Findings {
		reported = append(reported, f.Code+" "+string(f.Severity)+" "+f.Object+" "+f.Field+": "+f.Seen)
	}
	want := []string{
		"group-no-node warning RayCluster ml/llm spec.workerGroupSpecs[1].template.spec: the nearest of 2 nodes: node a has nvidia.com/gpu 4 where 8 is needed",
		"worker-node-lost warning Pod ml/w-gone spec.nodeName: z",
		"worker-node-lost warning Pod ml/w-dark spec.nodeName: b",
	}
	if !slices.Equal(reported, want) {
		t.Errorf("reported\n%q\nwant\n%q", reported, want)
	}
}

// The cache must not outlive the spec or the nodes that it was made from.
func TestPodFitsFollowTheSpecAndTheNodes(t *testing.T) {
	n := newNodes(&fakeNodes{}, slog.New(slog.DiscardHandler), func() {})
	read := func(generation, gpus int64) int {
		cluster := nodepool.Cluster{Key: llm, UID: "u", Generation: generation, Groups: []nodepool.WorkerGroup{{
			Pod: landing.PodShape{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(gpus)}},
		}}}
		n.addTo(&cluster)
		return cluster.Groups[0].Landing.Nodes
	}
	n.view.Store(viewOf([]landing.Node{decode.ForPodFit(sharing.Reader{}, kubeNode("a", "4", corev1.ConditionTrue))}))
	if read(1, 8) != 0 {
		t.Error("8 GPUs land on a node of 4")
	}
	if read(2, 4) != 1 {
		t.Error("a new spec is judged by the old one")
	}
	n.view.Store(viewOf(nil))
	if read(2, 4) != 0 {
		t.Error("a node that is gone still counts")
	}
}

// testViews counts the views that tests make.
var testViews atomic.Int64

// viewOf is a view of these nodes, in the order of their names, and of declared shapes.
func viewOf(nodes []landing.Node, declared ...landing.Node) *nodeView {
	var config landing.Config
	for _, shape := range declared {
		config.Pools = append(config.Pools, landing.Spec{Name: shape.Name})
	}
	stock := landing.NodesOf(nodes, landing.Pools{Rooms: landing.Rooms(nodes, config, nil), Shapes: declared})
	return &nodeView{known: true, facts: testViews.Add(1), nodes: nodes, stock: stock}
}

func amountsOf(gpus string) corev1.ResourceList {
	return corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)}
}

// What the agent measures from minute to minute must not make every RayCluster look at its nodes again; a card that
// fell ill must.
func TestANodeIsTheSameWhileOnlyItsProcessesChange(t *testing.T) {
	report := func(free, healthy string) landing.Node {
		node := kubeNode("a", "1", corev1.ConditionTrue)
		node.Annotations = map[string]string{sharing.AgentAnnotation: `{"cards":[{"index":0,"memoryMiB":15360,"freeMiB":` + free + `,"healthy":` + healthy + `}]}`}
		stripped, err := decode.Strip(node)
		must(t, err)
		return decode.ForPodFit(sharing.Reader{}, stripped.(*corev1.Node))
	}
	if before := report("15000", "true"); !before.Equal(report("20", "true")) || before.Equal(report("15000", "false")) || before.GPUs == nil || len(before.GPUs.PerCard) != 1 {
		t.Errorf("node %+v", before.GPUs)
	}
}

// TestNodesWhoseCardsAreNotKnownAreReported checks that a RayCluster has a finding about nodes that its pods would use,
// and none about others.
func TestNodesWhoseCardsAreNotKnownAreReported(t *testing.T) {
	const twoCards = `GPU-a,4,15360,100,T4,0,true:GPU-b,4,15360,100,T4,0,true:`
	node := func(register, instanceType string) func(*corev1.Node) {
		return func(node *corev1.Node) {
			node.Labels, node.Annotations = map[string]string{"node.kubernetes.io/instance-type": instanceType}, nil
			if register != "" {
				node.Annotations = map[string]string{"hami.io/node-nvidia-register": register}
			}
		}
	}
	bare := kubePod("p", "a", "1")
	for name, test := range map[string]struct {
		change   func(*corev1.Node)
		pods     []corev1.Pod
		resource string
		want     string
	}{
		"more units than cards":       {node("", "g4dn.xlarge"), nil, "nvidia.com/gpu", "sharing-unlabelled Node a"},
		"other resources":             {node("", "g4dn.xlarge"), nil, "cpu", ""},
		"a register that is not read": {node("GPU-a,ten", ""), nil, "nvidia.com/gpu", "register-unreadable Node a"},
		"the same, other resources":   {node("GPU-a,ten", ""), nil, "cpu", ""},
		"a pod without a record":      {node(twoCards, ""), []corev1.Pod{*bare}, "nvidia.com/gpu", "card-unrecorded Node a"},
		"the same, other resources ":  {node(twoCards, ""), []corev1.Pod{*bare}, "cpu", ""},
		"a readable register":         {node(twoCards, ""), nil, "nvidia.com/gpu", ""},
		"units of another plugin":     {node(strings.ReplaceAll(twoCards, ",4,", ",10,"), ""), nil, "nvidia.com/gpu", "register-contradicted Node a"},
		"the same, other resources  ": {node(strings.ReplaceAll(twoCards, ",4,", ",10,"), ""), nil, "cpu", ""},
	} {
		t.Run(name, func(t *testing.T) {
			besidePods(t, &fakePods{list: test.pods}, func(t *testing.T, n *nodes, _ *atomic.Int32) {
				changed := cardNode("a", "8")
				test.change(changed)
				n.update(changed)
				elapse(nodesPause)
				group := func(name string) nodepool.WorkerGroup {
					return nodepool.WorkerGroup{Name: name, Max: 1, Pod: landing.PodShape{Requests: landing.Quantities{test.resource: raydemand.One}}}
				}
				cluster := nodepool.Cluster{Key: llm, UID: "u", Groups: []nodepool.WorkerGroup{group("one"), group("two")}}
				n.addTo(&cluster)
				var got []string
				for _, f := range cluster.Findings {
					if strings.HasPrefix(f.Object, "Node ") {
						got = append(got, f.Code+" "+f.Object)
					}
				}
				if strings.Join(got, ", ") != test.want {
					t.Errorf("findings %q, want %q", got, test.want)
				}
			})
		})
	}
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
