package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAClusterKnowsWhatItsPoolsMayStillAdd(t *testing.T) {
	inPool := func(name string, cordoned bool) *corev1.Node {
		node := kubeNode(name, "4", corev1.ConditionTrue)
		node.Labels, node.Spec.Unschedulable = map[string]string{"agentpool": "gpu"}, cordoned
		return node
	}
	client := &fakeNodes{list: []corev1.Node{*inPool("a", false), *inPool("b", true)}}
	besideNodes(t, client, func(t *testing.T, n *nodes, _ *atomic.Int32) {
		read := func() (nodepool.Cluster, landing.PoolPods) {
			cluster := nodepool.Cluster{Key: llm, UID: "u", Groups: []nodepool.WorkerGroup{{Name: "gpu", Max: 9, Pod: landing.PodShape{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(2)}}}}, Workers: []nodepool.Worker{
				{Pod: "here", Group: "gpu", Node: "a"}, {Pod: "cordoned", Group: "gpu", Node: "b"}, {Pod: "leaves", Group: "gpu", Node: "a", Terminating: true},
				{Pod: "failed", Group: "gpu", Node: "a", Failed: true}, {Pod: "waits", Group: "gpu"}, {Pod: "nobody's", Group: "gone", Node: "a"},
			}}
			n.addTo(&cluster)
			if len(cluster.Groups[0].PoolPods) != 1 {
				t.Fatalf("pools %+v", cluster.Groups[0].PoolPods)
			}
			return cluster, cluster.Groups[0].PoolPods[0]
		}
		if _, got := read(); got.MayAddNodes != nil {
			t.Errorf("before ceilings are read: %+v", got)
		}
		ceiling := int64(3)
		n.setCeilings([]landing.Ceiling{{Group: "aks-gpu-1-vmss", MaxNodes: &ceiling, Source: landing.FromClusterAutoscaler}}, false)
		time.Sleep(2 * nodesPause)
		for range 2 { // what one cycle counts must not stay for the next
			cluster, got := read()
			// Two on node a were it empty, the one on the cordoned node, and two on a third node.
			want := landing.PoolPods{Pool: "gpu", PerNode: 2, Holds: 3, Bound: 2, MayAddNodes: new(int64(1)), MayAddPods: new(int64(2))}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("room (-want +got):\n%s", diff)
			}
			rooms := []landing.Room{{Pool: "gpu", Source: landing.FromClusterAutoscaler, Nodes: 2, MaxNodes: new(int64(3)), MayAddNodes: new(int64(1))}}
			if diff := cmp.Diff(rooms, cluster.Pools); diff != "" {
				t.Errorf("pools (-want +got):\n%s", diff)
			}
			if most, bounded := got.Most(); most != 5 || !bounded {
				t.Errorf("at most %d pods, bounded %t; want 5", most, bounded)
			}
		}
	})
}

var errNotThere = apierrors.NewNotFound(schema.GroupResource{Resource: "nodepools"}, "")

// turn is held by a test while it looks at what the reader of ceilings shares with it, and given up while time passes.
var turn sync.Mutex

// pass lets so much of synctest's time pass.
func pass(d time.Duration) {
	turn.Unlock()
	defer turn.Lock()
	elapse(d)
}

// fakeStatus is a Cluster Autoscaler that lets it run with a maximum of one node group. It writes whenever it is asked,
// unless it stopped.
type fakeStatus struct {
	corev1client.ConfigMapInterface
	most    int
	stopped time.Time
	err     error
	calls   int
}

func (f *fakeStatus) Get(context.Context, string, metav1.GetOptions) (*corev1.ConfigMap, error) {
	turn.Lock()
	defer turn.Unlock()
	f.calls++
	if f.err != nil {
		return nil, f.err
	}
	at := time.Now()
	if !f.stopped.IsZero() {
		at = f.stopped
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: decode.StatusConfigMap, Annotations: map[string]string{decode.StatusUpdated: at.UTC().String()}},
		Data:       map[string]string{"status": fmt.Sprintf("nodeGroups: [{name: aks-gpu-1-vmss, health: {minSize: 0, maxSize: %d}}]", f.most)},
	}, nil
}

type fakeNodePools struct {
	dynamic.ResourceInterface
	text string
	err  error
}

func (f *fakeNodePools) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	turn.Lock()
	defer turn.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	list := &unstructured.UnstructuredList{}
	if f.text == "" {
		return list, nil
	}
	return list, list.UnmarshalJSON([]byte(`{"apiVersion":"karpenter.sh/v1","kind":"NodePoolList","items":[` + f.text + `]}`))
}

// besideCeilings runs test beside the reading of ceilings, in synctest's time. reported is what each change reported.
func besideCeilings(t *testing.T, status *fakeStatus, nodePools *fakeNodePools, test func(t *testing.T, c *ceilingWatch, reported *[]string)) {
	synctest.Test(t, func(t *testing.T) {
		var reported []string
		last := ""
		c := newCeilingWatch(status, nodePools, slog.New(slog.DiscardHandler), func(all []landing.Ceiling, _ bool) {
			turn.Lock()
			defer turn.Unlock()
			if now := bounds(all); now != last {
				reported, last = append(reported, now), now
			}
		})
		beside(t, func() {
			turn.Lock()
			defer turn.Unlock()
			test(t, c, &reported)
		}, c.Start)
	})
}

// unknownOf is what a cluster shows as unknown.
func unknownOf(c *ceilingWatch) string {
	cluster := nodepool.Cluster{Key: llm, Pools: []landing.Room{}}
	c.AddTo(&cluster)
	var seen []string
	for _, f := range cluster.Findings {
		seen = append(seen, f.Code+": "+f.Seen)
	}
	return strings.Join(seen, "\n")
}

func TestAnAutoscalerThatStoppedBoundsNothing(t *testing.T) {
	status := &fakeStatus{most: 4}
	besideCeilings(t, status, &fakeNodePools{err: errNotThere}, func(t *testing.T, c *ceilingWatch, reported *[]string) {
		status.stopped = time.Now()
		pass(ceilingsLast - time.Second)
		if len(*reported) != 1 || unknownOf(c) != "" {
			t.Errorf("reported %q, unknown %q before five minutes are over", *reported, unknownOf(c))
		}
		pass(2 * ceilingPause)
		want := "ceilings-unknown: the Cluster Autoscaler's status cannot be used: its content has not been written since 2000-01-01T00:00:00Z"
		if diff := cmp.Diff(want, unknownOf(c)); diff != "" || len(*reported) != 2 || (*reported)[1] != "" {
			t.Errorf("reported %q; finding (-want +got):\n%s", *reported, diff)
		}
		status.stopped = time.Time{}
		pass(2 * ceilingPause)
		if len(*reported) != 3 || unknownOf(c) != "" {
			t.Errorf("reported %q, unknown %q although it runs again", *reported, unknownOf(c))
		}
	})
}

func TestWhatMayNotBeReadIsOneFindingAndBoundsNothing(t *testing.T) {
	status, pools := &fakeStatus{err: errForbidden}, &fakeNodePools{err: errForbidden}
	besideCeilings(t, status, pools, func(t *testing.T, c *ceilingWatch, reported *[]string) {
		want := "ceilings-unknown: the Cluster Autoscaler's status may not be read; Karpenter's NodePools may not be read"
		if diff := cmp.Diff(want, unknownOf(c)); diff != "" || len(*reported) != 0 {
			t.Errorf("reported %q; finding (-want +got):\n%s", *reported, diff)
		}
		var noNodes nodepool.Cluster
		if c.AddTo(&noNodes); len(noNodes.Findings) != 0 {
			t.Errorf("findings %v where nodes are not known either", noNodes.Findings)
		}
		status.err, pools.err, status.most = nil, nil, 2
		pass(2 * ceilingPause)
		if got := unknownOf(c); got != "" || len(*reported) != 1 {
			t.Errorf("reported %q, unknown %q although the right was granted", *reported, got)
		}
	})
}

func TestWhatWasReadHoldsWhileTheAPIServerDoesNotAnswer(t *testing.T) {
	status := &fakeStatus{most: 4}
	besideCeilings(t, status, &fakeNodePools{err: errNotThere}, func(t *testing.T, c *ceilingWatch, reported *[]string) {
		status.err = errors.New("connection refused")
		pass(ceilingsLast - time.Second)
		if len(*reported) != 1 || unknownOf(c) != "" {
			t.Errorf("reported %q, unknown %q before five minutes are over", *reported, unknownOf(c))
		}
		pass(2 * ceilingPause)
		if len(*reported) != 2 || !strings.Contains(unknownOf(c), "connection refused") {
			t.Errorf("reported %q, unknown %q", *reported, unknownOf(c))
		}
	})
}

func TestWhatMayNotBeReadAnyMoreDoesNotHoldOnWhenTheAPIServerStopsAnswering(t *testing.T) {
	status := &fakeStatus{most: 4}
	besideCeilings(t, status, &fakeNodePools{err: errNotThere}, func(t *testing.T, c *ceilingWatch, reported *[]string) {
		for _, err := range []error{errForbidden, errors.New("connection refused")} {
			status.err = err
			pass(2 * ceilingPause)
			if bound := (*reported)[len(*reported)-1]; bound != "" || unknownOf(c) == "" {
				t.Errorf("after %v: bounds %q, unknown %q; what was read before the right was withdrawn is not what holds", err, bound, unknownOf(c))
			}
		}
	})
}

func TestNodePoolsShowLimitsAndTheShapeOfTheirNodes(t *testing.T) {
	const gpu = `{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"gpu"},"spec":{"limits":{"nvidia.com/gpu":16},"template":{
		"metadata":{"labels":{"team":"blue"}},
		"spec":{"requirements":[{"key":"karpenter.sh/capacity-type","operator":"In","values":["spot"]}],
			"taints":[{"key":"sku","value":"gpu","effect":"NoSchedule"},{"key":"soft","effect":"PreferNoSchedule"}]}}}}`
	const open = `{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"open"},"spec":{}}`
	found, err := readNodePools(t.Context(), &fakeNodePools{text: gpu + "," + open})
	if got, want := bounds(found), `gpu ?-? {"nvidia.com/gpu":16}, open ?-?`; got != want || err != nil {
		t.Errorf("ceilings %s, %v; want %s", got, err, want)
	}
	want := &landing.NodeTemplate{
		Labels:       map[string]string{"team": "blue"},
		Requirements: []landing.Requirement{{Key: "karpenter.sh/capacity-type", Operator: "In", Values: []string{"spot"}}},
		Taints:       []sharing.Taint{{Key: "sku", Value: "gpu", Effect: "NoSchedule"}},
	}
	if diff := cmp.Diff(want, found[0].Template); diff != "" {
		t.Errorf("template (-want +got):\n%s", diff)
	}
	bad := strings.NewReplacer("16", `"many"`, `"gpu"}`, `"bad"}`).Replace(gpu)
	_, err = readNodePools(t.Context(), &fakeNodePools{text: open + "," + strings.Replace(gpu, "16", `"many"`, 1)})
	if !errors.Is(err, errContent) || !strings.Contains(err.Error(), "NodePool gpu: spec.limits.nvidia.com/gpu many") {
		t.Errorf("a limit that is no quantity: %v", err)
	}
	source := &ceilingSource{read: func(ctx context.Context) ([]landing.Ceiling, error) {
		return readNodePools(ctx, &fakeNodePools{text: bad + "," + gpu})
	}}
	found, err = source.newest(t.Context())
	if got, want := bounds(found), `bad ?-?, gpu ?-? {"nvidia.com/gpu":16}`; got != want || !errors.Is(err, errContent) {
		t.Errorf("one bad limit beside a good one: ceilings %s, %v; want %s", got, err, want)
	}
}

func bounds(ceilings []landing.Ceiling) string {
	number := func(n *int64) string {
		if n == nil {
			return "?"
		}
		return fmt.Sprint(*n)
	}
	var texts []string
	for _, c := range ceilings {
		text := c.Group + " " + number(c.MinNodes) + "-" + number(c.MaxNodes)
		if len(c.Limits) > 0 {
			limits, _ := json.Marshal(c.Limits)
			text += " " + string(limits)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}
