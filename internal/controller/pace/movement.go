package pace

import (
	"reflect"
	"time"

	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// settleTime is how long a cluster counts as moving after its last change, so that an unschedulable pod or demand that
// no group can serve does not keep the loop fast for ever.
const settleTime = 30 * time.Second

// Movement remembers when the demand or the pods of one RayCluster last changed.
type Movement struct {
	demand  raydemand.Demand
	pods    map[string]string // status by pod
	movedAt time.Time
}

// Observe notes the demand and the pods of a reading.
func (m *Movement) Observe(now time.Time, demand raydemand.Demand, members []membership.Member) {
	pods := make(map[string]string, len(members))
	for _, member := range members {
		pods[member.Pod] = status(member)
	}
	if m.pods == nil || !reflect.DeepEqual(pods, m.pods) || !reflect.DeepEqual(demand, m.demand) {
		m.demand, m.pods, m.movedAt = demand, pods, now
	}
}

func status(member membership.Member) string {
	text := "unjoined"
	if member.Node != nil {
		text = string(member.Node.Status)
	}
	switch {
	case member.Terminating:
		return "terminating"
	case member.Goes():
		return text + ", going"
	}
	return text
}

// Settled reports whether nothing has changed for so long that the cluster counts as resting, whatever is still open.
func (m *Movement) Settled(now time.Time) bool { return now.Sub(m.movedAt) > settleTime }
