package observe

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestAGateThatNothingRemovesIsNoWaitForQuota(t *testing.T) {
	for queue, want := range map[nodepool.Queue]string{
		{Name: "research", Mark: "label", Elastic: true}: "until quota is available",
		{Elastic: true}: "no label " + nodepool.QueueLabel,
	} {
		v := View{Cluster: nodepool.Cluster{Queue: queue}, Members: []Member{{Worker: &nodepool.Worker{Pod: "w", Group: "gpu", Gated: true}}}}
		if got := gatedFindings(v); len(got) != 1 || !strings.Contains(got[0].Why, want) {
			t.Errorf("%+v: %+v, want %q", queue, got, want)
		}
	}
}
