package neighbours

import (
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
)

// launchedAlone checks that all starting workers show that their machines are launched, and that nothing is expected of
// nodes that nobody has seen start.
func (r *rayTeam) launchedAlone(workers int) {
	r.Helper()
	r.until("all starting workers show their launched machines", func(c apiv1.Cluster) bool {
		launched := 0
		for _, a := range c.Arrivals {
			if a.ExpectedAt != nil {
				r.Fatalf("%s is expected at %v, though no worker has joined", a.Pod, a.ExpectedAt)
			}
			if a.Stage == string(arrival.NodeLaunched) && a.Since != nil {
				launched++
			}
		}
		return launched == workers
	}, nil)
}

// expectedAsOthers checks that one more worker is expected after the time that its machine takes at least, and not
// after much longer: twice that, or what the others took on a busy machine.
func (r *rayTeam) expectedAsOthers(takes, took time.Duration) {
	r.Helper()
	asked := time.Now().Truncate(time.Second) // as the times of NodeClaims are
	r.want(1)
	var next apiv1.Arrival
	r.until("one more worker is expected", func(c apiv1.Cluster) bool {
		for _, a := range c.Arrivals {
			if next = a; a.Stage == string(arrival.NodeLaunched) && !a.Since.Before(asked) && a.ExpectedAt != nil && a.LateAt != nil {
				return true
			}
		}
		return false
	}, nil)
	if after := next.ExpectedAt.Sub(*next.Since); after < takes-5*time.Second || after > max(2*takes, took) || next.LateAt.Before(*next.ExpectedAt) {
		r.Errorf("%s is expected %v after its machine was launched, and late at %v; machines take %v, and the others took %v", next.Pod, after, next.LateAt, takes, took)
	}
	r.note("%s expected at %v, late at %v, launched at %v", next.Pod, next.ExpectedAt, next.LateAt, next.Since)
}
