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

func TestTheCureForAHeldGangIsThatOfItsScheduler(t *testing.T) {
	for says, want := range map[string]string{
		"volcano: pod group is not ready":                           "enableInTreeAutoscaling: true",
		"scheduler-plugins-scheduler: resource gap: 2":              "kubectl patch podgroups.scheduling.x-k8s.io -n ml llm ",
		"kai-scheduler: Unable to schedule pod":                     "minReplicas of at least 1",
		"default-scheduler: at plugin GangScheduling: volcano: 2":   "it smaller: lower the minimum of its PodGroup",
		"my-scheduler: at plugin Coscheduling, kubectl patch it: 2": "it smaller: lower the minimum of its PodGroup",
	} {
		v := View{Cluster: nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}},
			Members: []Member{{Worker: &nodepool.Worker{Group: "gpu", GangHeld: says}}}}
		got := gatedFindings(v)[0]
		if !strings.Contains(got.Why, says) || !strings.Contains(got.Fix, want) || strings.Contains(got.Fix, "patch") != strings.Contains(want, "patch") {
			t.Errorf("%s: why %s, fix %s; want %s", says, got.Why, got.Fix, want)
		}
	}
}
