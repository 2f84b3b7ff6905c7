package decision

import (
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller/mode"
	"heliostat.dev/heliostat/internal/controller/observe"
)

// shadowGrace is how long demand must have waited before an Event reports it. Another autoscaler has acted by then:
// Ray's own polls every 5 s.
const shadowGrace = 10 * time.Second

// WaitingEvent returns one Event while demand waits that Heliostat could serve if it managed the RayCluster. If another
// Heliostat manages it, or this one is read-only, there is nothing to opt in to.
func WaitingEvent(v observe.View, optIn *OptIn, known *Conditions) (e Event, begins bool) {
	if optIn == nil || optIn.Waiting == "" ||
		slices.Contains([]string{mode.ReadOnly, mode.Parked, mode.SidecarManages}, v.Why.Code) {
		return Event{}, false
	}
	if !known.Lasted(v.Now, ReasonWaitingInShadow, shadowGrace) ||
		!known.begins(v.Now, ReasonWaitingInShadow, Event{}) {
		return Event{}, false
	}
	return Event{Reason: ReasonWaitingInShadow, Message: optIn.Waiting + "; " + optIn.Allow}, true
}
