package controller

import (
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
)

// shadowGrace is how long demand must have waited before an Event reports it. Another autoscaler has acted by then:
// Ray's own polls every 5 s.
const shadowGrace = 10 * time.Second

// waitingEvent returns one Event while demand waits that Heliostat could serve if it managed the RayCluster. If another
// Heliostat manages it, or this one is read-only, there is nothing to opt in to.
func waitingEvent(v observe.View, optIn *addon.OptIn, known *conditions) (e addon.Event, begins bool) {
	if optIn == nil || optIn.Waiting == "" ||
		slices.Contains([]string{addon.ReadOnly, addon.Parked, addon.SidecarManages}, v.Why.Code) {
		return addon.Event{}, false
	}
	if !known.Lasted(v.Now, addon.ReasonWaitingInShadow, shadowGrace) ||
		!known.begins(v.Now, addon.ReasonWaitingInShadow, addon.Event{}) {
		return addon.Event{}, false
	}
	return addon.Event{Reason: addon.ReasonWaitingInShadow, Message: optIn.Waiting + "; " + optIn.Allow}, true
}
