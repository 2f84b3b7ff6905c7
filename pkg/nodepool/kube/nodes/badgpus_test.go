package nodes

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const badCard = "GPU-3f1a0000-0000-0000-0000-000000000001"

// withCondition returns a node of 4 GPUs with a condition that is true.
func withCondition(name, kind string) *corev1.Node {
	node := kubeNode(name, "4", corev1.ConditionTrue)
	if kind != "" {
		node.Status.Conditions = append(node.Status.Conditions,
			corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: corev1.ConditionTrue, Message: "XID 79 on GPU 3"})
	}
	return node
}

// withBadCard returns a node of 4 GPUs whose agent reports one of two cards as bad.
func withBadCard(name string) *corev1.Node {
	node := kubeNode(name, "4", corev1.ConditionTrue)
	card := func(index int, uuid, health string) string {
		return fmt.Sprintf(`{"index": %d, "uuid": "%s", "product": "NVIDIA H100 80GB HBM3", "memoryMiB": 81559, %s}`, index, uuid, health)
	}
	cards := []string{card(3, badCard, `"healthy": false, "problem": "XID 79: the card has fallen off the bus"`)}
	for i := range 3 {
		cards = append(cards, card(i, fmt.Sprintf("GPU-%d", i), `"healthy": true, "problem": ""`))
	}
	node.Annotations = map[string]string{sharing.AgentAnnotation: `{"at": "` + time.Now().UTC().Format(time.RFC3339) +
		`", "cards": [` + strings.Join(cards, ", ") + `]}`}
	return node
}

// badGPUOf returns what a worker on node a that requests so many GPUs shows.
func badGPUOf(n *nodes, gpus int64, w nodepool.Worker) *departure.Notice {
	o := &Watch{nodes: n, claims: newClaimWatch(nil, nil, slog.New(slog.DiscardHandler))}
	w.Pod, w.Group, w.Node, w.Running = "w", "g", "a", true
	group := nodepool.WorkerGroup{Name: "g", Pod: landing.PodShape{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(gpus)}}}
	cluster := nodepool.Cluster{Key: llm, UID: "u", Groups: []nodepool.WorkerGroup{group}, Workers: []nodepool.Worker{w}}
	n.addTo(&cluster)
	o.markGoing(&cluster)
	return cluster.Workers[0].Going
}

func TestASignOfABadGPUMustLast(t *testing.T) {
	client := &fakeNodes{list: []corev1.Node{*withCondition("a", "")}}
	besideNodes(t, client, func(t *testing.T, n *nodes, _ *atomic.Int32) {
		show := func(node *corev1.Node) {
			client.stream.Modify(node)
			elapse(2 * nodesPause)
		}
		for range 5 { // it comes and goes
			show(withCondition("a", "XIDErrors"))
			time.Sleep(departure.BadGPULasts - 5*time.Second)
			got := badGPUOf(n, 1, nodepool.Worker{})
			if got == nil || got.Sign != departure.BadGPU || got.Certain || got.Ends() || got.Stays == "" {
				t.Fatalf("a sign that has not lasted: %+v", got)
			}
			show(withCondition("a", ""))
			if got := badGPUOf(n, 1, nodepool.Worker{}); got != nil {
				t.Fatalf("the sign is gone: %+v", got)
			}
		}
		show(withCondition("a", "XIDErrors"))
		since := time.Now()
		if node := n.view.Load().stock.Node("a"); node.Usable("nvidia.com/gpu") != 0 {
			t.Error("plans place pods on a node with a bad sign")
		}
		changed := withCondition("a", "XIDErrors") // the sign counts from when it was first seen
		changed.Status.Conditions[1].Message = "XID 48 on GPU 3, and XID 79"
		show(changed)
		time.Sleep(departure.BadGPULasts)
		got := badGPUOf(n, 1, nodepool.Worker{ScheduledAt: since.Add(-time.Hour)})
		want := "condition XIDErrors is True, on node a: XID 48 on GPU 3, and XID 79"
		if got == nil || !got.Certain || got.Message != want || got.Text("a") != "bad GPU: "+want {
			t.Errorf("a sign that lasts: %+v", got)
		}
		if got := badGPUOf(n, 1, nodepool.Worker{ScheduledAt: since.Add(time.Minute)}); got.Certain || !strings.Contains(got.Why(), "came later") {
			t.Errorf("a worker that came later: %+v", got)
		}
		if got := badGPUOf(n, 0, nodepool.Worker{}); got != nil {
			t.Errorf("a worker without GPUs: %+v", got)
		}
		show(withCondition("a", ""))
		if node := n.view.Load().stock.Node("a"); node.Usable("nvidia.com/gpu") != raydemand.Whole(4) {
			t.Error("a GPU that is well again is not used")
		}
		show(withCondition("a", "GPUDeviceLost"))
		if got := badGPUOf(n, 1, nodepool.Worker{}); got == nil || !got.Certain {
			t.Errorf("a GPU that is lost: %+v; want a drain at once", got)
		}
		show(withCondition("a", "GPUClockThrottling"))
		if got := badGPUOf(n, 1, nodepool.Worker{}); got != nil || n.view.Load().stock.Node("a").Usable("nvidia.com/gpu") == 0 {
			t.Errorf("a sign that is only watched: %+v", got)
		}
	})
}

// The worker that came while the sign was gone stays, or each time one would be drained.
func TestASignThatComesAndGoesSlowlyDrainsOnce(t *testing.T) {
	client := &fakeNodes{list: []corev1.Node{*withCondition("a", "XIDErrors")}}
	besideNodes(t, client, func(t *testing.T, n *nodes, _ *atomic.Int32) {
		show := func(kind string, during time.Duration) {
			client.stream.Modify(withCondition("a", kind))
			elapse(during)
		}
		show("XIDErrors", 5*time.Minute)
		show("", time.Minute)
		w := nodepool.Worker{ScheduledAt: time.Now()}
		for range 10 {
			show("XIDErrors", 5*time.Minute)
			if got := badGPUOf(n, 1, w); got == nil || !strings.Contains(got.Stays, "came later") {
				t.Fatalf("a sign that returns: %+v", got)
			}
			show("", time.Minute)
		}
		show("", signReturns)
		show("XIDErrors", 5*time.Minute)
		if got := badGPUOf(n, 1, w); got == nil || !got.Certain {
			t.Errorf("a sign that is new: %+v", got)
		}
	})
}

func TestAWorkerOnTheHealthyCardsOfANodeStays(t *testing.T) {
	const lost = "XID 79: the card has fallen off the bus, on GPU-3 of node a"
	for name, c := range map[string]struct {
		requests int64
		gpus     map[string]bool
		stays    string // of a notice; "-" is no notice
		label    string // of NVSentinel on the node
	}{
		"it has all cards":                            {requests: 4},
		"it has as many as are healthy":               {requests: 3, stays: "nothing shows which GPUs"},
		"the kubelet names the bad one":               {requests: 1, gpus: map[string]bool{badCard: true}},
		"the kubelet names another":                   {requests: 1, gpus: map[string]bool{"GPU-0": true}, stays: "-"},
		"the node is quarantined":                     {requests: 1, gpus: map[string]bool{"GPU-0": true}, stays: "-", label: "quarantined"},
		"it has a share of the bad one":               {requests: 1, gpus: map[string]bool{badCard + "::1": true}},
		"it has an instance of nobody knows what one": {requests: 1, gpus: map[string]bool{"MIG-1": true}, stays: "nothing shows which GPUs"},
	} {
		t.Run(name, func(t *testing.T) {
			client := &fakeNodes{}
			besideNodes(t, client, func(t *testing.T, n *nodes, _ *atomic.Int32) {
				node := withBadCard("a")
				node.Labels = map[string]string{"dgxc.nvidia.com/nvsentinel-state": c.label}
				client.stream.Add(node)
				elapse(2 * nodesPause)
				got := badGPUOf(n, c.requests, nodepool.Worker{GPUs: c.gpus})
				switch {
				case c.stays == "-":
					if got != nil {
						t.Errorf("%+v", got)
					}
				case got == nil || got.Message != lost || got.Certain != (c.stays == "") || !strings.HasPrefix(got.Stays, c.stays):
					t.Errorf("%+v, want that it stays: %q", got, c.stays)
				}
			})
		})
	}
}

// The device plugin withdrew a card, and does not say which one.
func TestTheKubeletSaysWhoHasAWithdrawnCard(t *testing.T) {
	node := kubeNode("a", "3", corev1.ConditionTrue)
	node.Status.Capacity = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")}
	besideNodes(t, &fakeNodes{list: []corev1.Node{*node}}, func(t *testing.T, n *nodes, _ *atomic.Int32) {
		time.Sleep(2 * departure.BadGPULasts)
		certain := func(gpus map[string]bool) bool {
			got := badGPUOf(n, 1, nodepool.Worker{GPUs: gpus})
			return got != nil && got.Certain
		}
		if !certain(map[string]bool{"GPU-0": true, "GPU-1": false}) {
			t.Error("a worker with a device that the kubelet calls unhealthy stays")
		}
		if certain(map[string]bool{"GPU-0": true}) || certain(nil) {
			t.Error("a worker that may be on healthy cards is drained")
		}
	})
}

func TestASignOnTooManyNodesIsNotBelieved(t *testing.T) {
	list := func(bad, all int) (nodes []corev1.Node) {
		for i := range all {
			kind := ""
			if i < bad {
				kind = "GPUDeviceLost"
			}
			nodes = append(nodes, *withCondition(string(rune('a'+i)), kind))
		}
		return nodes
	}
	unwatched := list(0, 10)
	for i := range 3 { // DCGM does not answer
		unwatched[i] = *withCondition(unwatched[i].Name, "DCGMError")
	}
	besideNodes(t, &fakeNodes{list: unwatched}, func(t *testing.T, n *nodes, _ *atomic.Int32) {
		if n.view.Load().stock.Node("a").Usable("nvidia.com/gpu") == 0 {
			t.Error("a sign that keeps plans off 3 of 10 nodes is believed")
		}
	})
	for name, c := range map[string]struct {
		bad, all int
		believed bool
	}{"one of one": {1, 1, true}, "all of a few": {5, 5, true}, "a fifth": {2, 10, true}, "more": {3, 10, false}} {
		besideNodes(t, &fakeNodes{list: list(c.bad, c.all)}, func(t *testing.T, n *nodes, _ *atomic.Int32) {
			got := badGPUOf(n, 1, nodepool.Worker{})
			used := n.view.Load().stock.Node("a").Usable("nvidia.com/gpu") > 0
			if got == nil || got.Certain != c.believed || used == c.believed || !c.believed && !strings.Contains(got.Why(), "3 of 10 nodes") {
				t.Errorf("%s: %+v, used: %t", name, got, used)
			}
		})
	}
}

// reported is a node whose agent reported so long ago that its only card is broken.
func reported(ago time.Duration, boot string) *corev1.Node {
	node := kubeNode("a", "1", corev1.ConditionTrue)
	node.Status.NodeInfo.BootID = "b1"
	node.Annotations = map[string]string{sharing.AgentAnnotation: fmt.Sprintf(
		`{"at":%q,"bootID":%q,"cards":[{"index":0,"memoryMiB":15360,"problem":"XID 79"}]}`, time.Now().Add(-ago).Format(time.RFC3339), boot)}
	return node
}

func TestAnAgentsReportEndsWithTheAgent(t *testing.T) {
	client := &fakeNodes{}
	besideNodes(t, client, func(t *testing.T, n *nodes, changes *atomic.Int32) {
		ill := func() bool {
			node := n.view.Load().stock.Node("a")
			return node != nil && node.GPUs != nil && len(node.GPUs.HealthyUnits) == 1
		}
		last := reported(0, "b1")
		beats := func(d time.Duration) { // the kubelet's heartbeats
			for ; d > 0; d -= 2 * time.Minute {
				time.Sleep(2 * time.Minute)
				client.stream.Modify(last.DeepCopy())
			}
			time.Sleep(time.Second)
		}
		client.stream.Add(last)
		beats(44 * time.Minute)
		if !ill() {
			t.Fatal("a card counts although an agent reports that it is broken")
		}
		last = reported(0, "b1")
		client.stream.Modify(last)
		beats(44 * time.Minute)
		if before := changes.Load(); !ill() || before != 2 {
			t.Fatalf("a report that is written again is not counted as new: ill %t, %d views", ill(), before)
		}
		beats(10 * time.Minute)
		if ill() || changes.Load() != 3 {
			t.Errorf("the agent is silent for 54 minutes: ill %t, %d views", ill(), changes.Load())
		}
	})
}
