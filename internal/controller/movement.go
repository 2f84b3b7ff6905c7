package controller

import (
	"reflect"
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// settleTime is how long a cluster counts as moving after its last change, so that an unschedulable pod or demand that
// no group can serve does not keep the loop fast for ever. If nothing is open, it counts as settling for so long.
const settleTime = 30 * time.Second

// movement remembers when the demand or the pods of one RayCluster last changed.
type movement struct {
	demand  raydemand.Demand
	pods    []podStatus
	movedAt time.Time
	// changed: movedAt is the time of a change, and not of the first reading.
	changed bool
}

// podStatus is where a pod stands.
type podStatus struct{ pod, status string }

// Observe notes the demand and the pods of a reading. The pods are in the same order each time.
func (m *movement) Observe(now time.Time, demand raydemand.Demand, members []observe.Member) {
	moved := m.movedAt.IsZero() || len(members) != len(m.pods) || !reflect.DeepEqual(demand, m.demand)
	for i := range members {
		moved = moved || m.pods[i] != podStatusOf(members[i])
	}
	if !moved {
		return
	}
	m.changed = !m.movedAt.IsZero()
	m.demand, m.movedAt, m.pods = demand, now, make([]podStatus, len(members))
	for i := range members {
		m.pods[i] = podStatusOf(members[i])
	}
}

func podStatusOf(member observe.Member) podStatus { return podStatus{member.Pod, status(member)} }

func status(member observe.Member) string {
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

// SettlesAt returns until when the cluster counts as settling after its last change; zero if no change was seen.
func (m *movement) SettlesAt() time.Time {
	if !m.changed {
		return time.Time{}
	}
	return m.movedAt.Add(settleTime)
}

// Settled reports whether nothing has changed for so long that the cluster counts as resting, whatever is still open.
func (m *movement) Settled(now time.Time) bool { return now.Sub(m.movedAt) > settleTime }
