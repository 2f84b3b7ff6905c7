package landing

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestContainersAndInstancesMayShareACard(t *testing.T) {
	asks := func(cards, memory, cores int) Quantities {
		return Quantities{gpuinfo.NvidiaGPU: raydemand.Whole(int64(cards)), gpuinfo.HAMiMemory: raydemand.Whole(int64(memory)),
			gpuinfo.HAMiCores: raydemand.Whole(int64(cores))}
	}
	l4 := Card{Total: 24576, Memory: new(int64(24576)), Cores: new(int64(100)), Slots: new(int64(10))}
	a100 := Card{Total: 81920, Memory: new(int64(81920)), Cores: new(int64(100)), Slots: new(int64(7)),
		Parts: []Part{{Memory: 9728, Cores: 14}, {Memory: 40192, Cores: 42}}}
	for name, test := range map[string]struct {
		card   Card
		cards  int64
		shape  PodShape
		fit    int64
		memory int64
	}{
		"two containers share a card":                          {l4, 1, PodShape{Parts: []Quantities{asks(1, 8000, 0), asks(1, 8000, 0)}}, 1, 8000},
		"two containers of half a card are a pod for each":     {l4, 2, PodShape{Parts: []Quantities{asks(1, 12000, 0), asks(1, 12000, 0)}}, 2, 12000},
		"two parts of one container are on different cards":    {l4, 1, PodShape{Requests: asks(2, 8000, 0)}, 0, 8000},
		"two instances for one container are on one card":      {a100, 1, PodShape{Requests: asks(2, 24000, 0)}, 1, 24000},
		"three instances for one container are on one card":    {a100, 1, PodShape{Requests: asks(3, 8000, 0)}, 2, 8000},
		"an instance takes its own cores, and 30 must be left": {a100, 1, PodShape{Requests: asks(1, 8000, 30)}, 6, 8000},
		"an instance takes its own cores, and 40 must be left": {a100, 1, PodShape{Requests: asks(1, 8000, 40)}, 5, 8000},
	} {
		test.card.Count = test.cards
		part := (&Nodes{}).KindOf("", &test.shape).Cards
		runs := runsOf(&Place{Cards: []Card{test.card}, CardOrder: sharing.EmptiestCard})
		n := part.room(runs, sharing.EmptiestCard, 100)
		if n != test.fit || part.Memory != test.memory {
			t.Errorf("%s: %d pods with parts of %d MiB, want %d of %d", name, n, part.Memory, test.fit, test.memory)
		}
		if left := part.room(part.take(runs, sharing.EmptiestCard, n), sharing.EmptiestCard, 100); left != 0 {
			t.Errorf("%s: there is room for %d more pods after %d", name, left, n)
		}
	}
}

// TestLessThanAWholeUnitOfACardIsNoPart checks amounts that the CRD of RayCluster accepts and no scheduler takes.
func TestLessThanAWholeUnitOfACardIsNoPart(t *testing.T) {
	half := Quantities{gpuinfo.HAMiMemory: raydemand.One / 2}
	full := Quantities{gpuinfo.NvidiaGPU: raydemand.One, gpuinfo.HAMiMemory: raydemand.Whole(8000)}
	for name, test := range map[string]struct {
		parts []Quantities
		want  *CardRequest
	}{
		"of two containers": {[]Quantities{half, half}, nil},
		"of one of two":     {[]Quantities{half, full}, &CardRequest{Cards: 1, Memory: 8000, Stacked: true}},
	} {
		shape := PodShape{Parts: test.parts}
		if diff := cmp.Diff(test.want, (&Nodes{}).KindOf("", &shape).Cards, cmpopts.IgnoreUnexported(CardRequest{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
