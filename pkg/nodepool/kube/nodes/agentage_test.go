package nodes

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// reported is a node whose agent reported so long ago that its only card is broken.
func reported(ago time.Duration, boot string) *corev1.Node {
	node := kubeNode("a", "1", corev1.ConditionTrue)
	node.Status.NodeInfo.BootID = "b1"
	node.Annotations = map[string]string{sharing.AgentAnnotation: fmt.Sprintf(
		`{"at":%q,"bootID":%q,"cards":[{"index":0,"memoryMiB":15360,"problem":"XID 79"}]}`, time.Now().Add(-ago).Format(time.RFC3339), boot)}
	return node
}

func TestAnAgentsReportEndsWithTheAgentWithoutAnEvent(t *testing.T) {
	client := &fakeNodes{}
	besideNodes(t, client, func(t *testing.T, n *nodes, changes *atomic.Int32) {
		ill := func() bool {
			node := n.view.Load().stock.Node("a")
			return node != nil && node.GPUs != nil && len(node.GPUs.HealthyUnits) == 1
		}
		client.stream.Add(reported(0, "b1"))
		time.Sleep(44 * time.Minute)
		if !ill() {
			t.Fatal("a card counts although an agent reports that it is broken")
		}
		client.stream.Modify(reported(0, "b1"))
		time.Sleep(44 * time.Minute)
		if before := changes.Load(); !ill() || before != 2 {
			t.Fatalf("a report that is written again is not counted as new: ill %t, %d views", ill(), before)
		}
		time.Sleep(10 * time.Minute)
		if ill() || changes.Load() != 3 {
			t.Errorf("the agent is silent for 54 minutes: ill %t, %d views", ill(), changes.Load())
		}
	})
}

func TestAnAgentsReportFromBeforeARebootIsVoid(t *testing.T) {
	client := &fakeNodes{list: []corev1.Node{*reported(0, "b0")}}
	besideNodes(t, client, func(t *testing.T, n *nodes, _ *atomic.Int32) {
		if node := n.view.Load().stock.Node("a"); node.GPUs == nil || len(node.GPUs.HealthyUnits) > 0 || node.GPUs.Problems[0].Code != sharing.AgentOutdated {
			t.Errorf("read %+v", node.GPUs)
		}
	})
}
