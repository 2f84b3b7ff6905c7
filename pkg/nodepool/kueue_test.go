package nodepool

import (
	"errors"
	"strings"
	"testing"
)

func TestARefusalNamesTheQueueItsPlaceAndTheWaysOut(t *testing.T) {
	own := Queue{Name: "research", Mark: "label " + QueueLabel + " on RayCluster llm"}
	child := Queue{Name: "research", Mark: "label " + QueueLabel + " on RayJob train",
		Parent: Owner{Kind: "RayJob", Name: "train"}}
	elastic := func(q Queue) Queue { q.Elastic = true; return q }
	known := func(q Queue, quota Quota) Queue { q.Elastic, q.Quota = true, &quota; return q }
	for name, c := range map[string]struct {
		queue Queue
		says  []string
	}{
		"a RayCluster": {own, []string{"queue research", own.Mark,
			"Kueue restarts the whole RayCluster, head included", "create the RayCluster again without the label",
			ElasticAnnotation + `: "true"`, "ElasticJobsViaWorkloadSlices"}},
		"a RayJob": {child, []string{"queue research", child.Mark, "Kueue queues its RayJob",
			"outside the quota", "create the RayJob again without the label",
			ElasticAnnotation + `: "true"`, "enableInTreeAutoscaling: true", "Heliostat can scale it within its quota"}},
		"an elastic RayCluster": {elastic(own), []string{"queue research", own.Mark,
			"this process does not read Workloads", "`autoscaler serve`"}},
		"a copy of MultiKueue": {remote(known(own, Quota{Elastic: true, Admitted: true})), []string{own.Mark,
			"MultiKueue sets replicas back", "change them there"}},
		"unknown Workloads":               {known(own, Quota{Unread: "forbidden"}), []string{"Workloads are unknown: forbidden", "grant list and watch"}},
		"a Workload that is not elastic":  {known(own, Quota{Admitted: true}), []string{"its Workload is not", "restart the whole RayCluster"}},
		"no Workload":                     {known(own, Quota{}), []string{"no unfinished Workload"}},
		"the gate in some templates only": {Queue{Name: "q", Mark: own.Mark, Quota: &Quota{Elastic: true}}, []string{"it is not elastic"}},
		"an elastic RayJob":               {elastic(child), []string{child.Mark, "behind Kueue's gate", "not been read yet"}},
		"an elastic RayJob that is not followed": {unfollowed(elastic(child), "it has no flag"), []string{
			"behind Kueue's gate", "it has no flag"}},
		"a followed RayJob whose Workloads are unknown": {followed(elastic(child)), []string{
			"this process does not read Workloads"}},
		"a queue without a name": {Queue{Mark: "label kueue.x-k8s.io/podset in its pod templates"},
			[]string{"queue of unknown name", "podset in its pod templates"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := Cluster{Key: ClusterKey{Namespace: "ml", Name: "llm"}, Queue: c.queue}
			err := cluster.Writable()
			if !errors.Is(err, ErrReadOnly) {
				t.Fatalf("Writable: %v, want ErrReadOnly", err)
			}
			for _, want := range c.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
	if err := (&Cluster{Queue: known(own, Quota{Elastic: true, Admitted: true})}).Writable(); err != nil {
		t.Errorf("an elastic RayCluster with an elastic Workload: %v", err)
	}
	if err := (&Cluster{Queue: known(followed(child), Quota{Elastic: true, Admitted: true})}).Writable(); err != nil {
		t.Errorf("a followed RayJob with an elastic Workload: %v", err)
	}
	if free := (&Cluster{Queue: Queue{Elastic: true}}).Writable(); free != nil {
		t.Errorf("a RayCluster with gates and without a queue: %v", free)
	}
}

func remote(q Queue) Queue { q.Remote = true; return q }

func followed(q Queue) Queue { q.Followed = true; return q }

func unfollowed(q Queue, why string) Queue { q.Unfollowed = why; return q }
