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
	for name, c := range map[string]struct {
		queue Queue
		says  []string
	}{
		"a RayCluster": {own, []string{"queue research", own.Mark,
			"Kueue restarts the whole RayCluster, head included", "create the RayCluster again without the label",
			ElasticAnnotation + `: "true"`, "ElasticJobsViaWorkloadSlices"}},
		"a RayJob": {child, []string{"queue research", child.Mark, "Kueue queues its RayJob",
			"outside the quota", "create the RayJob again without the label",
			ElasticAnnotation + `: "true"`, "enableInTreeAutoscaling: true", "Ray's own autoscaler"}},
		"an elastic RayCluster": {elastic(own), []string{"queue research", own.Mark,
			"Heliostat does not scale those yet",
			"create the RayCluster again without the label"}},
		"an elastic RayJob": {elastic(child), []string{child.Mark, "behind Kueue's gate",
			"create the RayJob again without the label"}},
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
	if free := (&Cluster{Queue: Queue{Elastic: true}}).Writable(); free != nil {
		t.Errorf("a RayCluster with gates and without a queue: %v", free)
	}
}
