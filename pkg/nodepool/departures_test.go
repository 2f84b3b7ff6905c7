package nodepool

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool/departure"
)

func TestAReplicaGoesWithItsFirstHost(t *testing.T) {
	going, warning := departure.Of(departure.KarpenterDisrupted, "taint"), departure.Of(departure.Cordoned, "cordoned")
	cluster := Cluster{Workers: []Worker{
		{Pod: "a0", Group: "tpu", Replica: "a", Going: going}, {Pod: "a1", Group: "tpu", Replica: "a"},
		{Pod: "b0", Group: "tpu", Replica: "b", Going: warning}, {Pod: "b1", Group: "tpu", Replica: "b"},
		{Pod: "c0", Group: "tpu", Replica: "c", Going: going, Terminating: true}, {Pod: "c1", Group: "tpu", Replica: "c"},
		{Pod: "d0", Group: "cpu", Replica: "a"}, {Pod: "e0", Group: "tpu"},
	}}
	cluster.SpreadGoing()
	got := map[string]departure.Sign{}
	for _, w := range cluster.Workers {
		if w.Going != nil {
			got[w.Pod] = w.Going.Sign
		}
	}
	want := map[string]departure.Sign{"a0": going.Sign, "a1": going.Sign, "b0": warning.Sign, "c0": going.Sign}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("going (-want +got):\n%s", diff)
	}
}
