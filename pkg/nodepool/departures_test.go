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

// The warning of one host is not that of another, and no bad GPU hides it.
func TestABadGPUOfAReplicaHidesNoDeparture(t *testing.T) {
	bad, cordoned, spot := departure.Of(departure.BadGPU, "XID 79"), departure.Of(departure.Cordoned, "cordoned"), departure.Of(departure.AWSSpot, "spot")
	cluster := Cluster{Workers: []Worker{
		{Pod: "a0", Group: "tpu", Replica: "a", Going: departure.Earlier(cordoned, bad)}, {Pod: "a1", Group: "tpu", Replica: "a"},
		{Pod: "b0", Group: "tpu", Replica: "b", Going: bad}, {Pod: "b1", Group: "tpu", Replica: "b", Going: cordoned},
		{Pod: "c0", Group: "tpu", Replica: "c", Going: bad}, {Pod: "c1", Group: "tpu", Replica: "c", Going: spot},
	}}
	cluster.SpreadGoing()
	for i, want := range []departure.Sign{"cordoned", "bad-gpu", "bad-gpu", "cordoned", "aws-spot", "aws-spot"} {
		w := &cluster.Workers[i]
		if w.Going.Sign == departure.BadGPU {
			w.Going.Stay("--drain-bad-gpus is off")
		}
		if w.Going.Sign != want {
			t.Errorf("%s: %+v, want %s", w.Pod, w.Going, want)
		}
	}
}
