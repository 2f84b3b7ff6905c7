package why

import (
	"testing"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/place"
	"heliostat.dev/heliostat/internal/planner/plannertest"
)

// A plan may be made in time, while its explanation takes longer than the caller waits.
func TestTheSentencesOfAnAnswerStopWithItsCaller(t *testing.T) {
	s := plannertest.Read(t, `{"groups": [{"name": "gpu", "resources": {"CPU": 8, "GPU": 1}, "maxReplicas": 4}], "pendingRequests": [{"resources": {"GPU": 1}, "count": 3}, {"resources": {"GPU": 9}, "count": 1}]}`)
	p, given, out := place.Decide(nil, &s, model.Policy{})
	d := newDecision(p, given, out)
	stop := make(chan struct{})
	close(stop)
	p.Stop = stop
	for name, words := range map[string]func(){
		"what a group does":  func() { d.groupVerdict(0, p.Requests[0]) },
		"what is not served": func() { newDecision(p, given, out) },
	} {
		if place.UnlessBrokenOff(words) {
			t.Errorf("%s: answered completely", name)
		}
	}
}
