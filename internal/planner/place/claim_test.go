package place

import (
	"fmt"
	"testing"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestEvaluatingIsCutShort: after all trials, the last requests are not evaluated, even if there is room. What is
// admitted until then fits together.
func TestEvaluatingIsCutShort(t *testing.T) {
	group := func(name, resource string, most int) model.Group {
		return model.Group{Name: name, Resources: raydemand.Bundle{resource: raydemand.One}, Max: most, NumOfHosts: 1}
	}
	ask := func(id, resource string, count int64) raydemand.Owned {
		return raydemand.Owned{ID: id, Requests: []raydemand.Request{{Bundle: raydemand.Bundle{resource: raydemand.One}, Count: count}}}
	}
	s := model.Snapshot{Groups: []model.Group{group("gpu", "GPU", 4), group("cpu", "CPU", 9)},
		OwnedRequests: []raydemand.Owned{ask("a", "GPU", 3), ask("b", "GPU", 2), ask("c", "CPU", 2)}}
	for tries := range 10 {
		p := newSearch(NewFleet(&s), &s, model.Policy{})
		a := p.newAdmitting(make([]int64, len(p.Groups)))
		a.tries = tries
		a.admitAll()
		if a.tries = 1; !a.fits() {
			t.Errorf("what %d tries admit does not fit", tries)
		}
		want, tested := map[int]string{0: "[0] [0] [0] true", 2: "[3] [0] [0] true", 9: "[3] [1] [2] false"}[tries]
		r := p.RestRequests
		if got := fmt.Sprint(r[0].Admitted, r[1].Admitted, r[2].Admitted, r[1].Unevaluated); tested && got != want {
			t.Errorf("%d tries admit %s, want %s", tries, got, want)
		}
	}
}
