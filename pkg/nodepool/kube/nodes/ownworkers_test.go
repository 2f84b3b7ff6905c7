package nodes

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

func TestWhereWorkersAreIsBuiltAgainOnlyWhenItChanges(t *testing.T) {
	workers := []nodepool.Worker{{Node: "a", Group: "g"}, {Group: "g"}, {Node: "a", Group: "h"}, {Node: "b", Group: "g", Failed: true}, {Node: "b", Group: "g"}}
	first, same := ownWorkers{}.now(workers)
	want := landing.OnNodes{"a": {"g": 1, "h": 1}, "b": {"g": 1}}
	if diff := cmp.Diff(want, first.byNode); diff != "" || same {
		t.Errorf("same %t (-want +got):\n%s", same, diff)
	}
	if allocations := testing.AllocsPerRun(10, func() { _, same = first.now(workers) }); allocations > 0 || !same {
		t.Errorf("%v allocations, same %t", allocations, same)
	}
	for name, changed := range map[string][]nodepool.Worker{
		"fewer": workers[:4], "none": nil, "another node": {{Node: "c", Group: "g"}, workers[2], workers[4]}, "one more": append(workers[:5:5], nodepool.Worker{Node: "c", Group: "g"}),
	} {
		now, same := first.now(changed)
		if diff := cmp.Diff(ownWorkersOf(changed).byNode, now.byNode); diff != "" || same {
			t.Errorf("%s: same %t (-want +got):\n%s", name, same, diff)
		}
	}
	if _, same := (ownWorkers{}).now(nil); same {
		t.Error("nothing is known at first")
	}
}
