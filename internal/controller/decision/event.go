package decision

import (
	"fmt"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Event is one Event on a RayCluster.
type Event struct {
	// Warning selects the type Warning; the other type is Normal.
	Warning         bool
	Reason, Message string
	// Until is the deadline that the message names; zero if it names none.
	Until time.Time
}

// key identifies a lasting condition: the reason with the subject of the message, so that two groups do not hide each
// other.
func (e Event) key() string {
	subject, _, _ := strings.Cut(e.Message, ":")
	return e.Reason + "/" + subject
}

// PatchEvent returns the Event of a written target. reason is the planner's for the group. pods are those that leave
// the group, and leaving their names with the reasons. The Event has a message and no reason if it is not worth
// writing.
func PatchEvent(t nodepool.Target, reason string, pods []string, leaving string) Event {
	change := fmt.Sprintf("group %s: replicas %d → %d: ", t.Group, t.From, t.Replicas)
	if t.TakenBack > 0 {
		stays := fmt.Sprintf("named workers in which Ray has started again stay (%d)", t.TakenBack)
		if t.Replicas-t.From > t.TakenBack {
			stays += "; " + reason
		}
		reason = stays
	}
	switch {
	case len(pods) > 0 && t.Replicas >= t.From:
		return Event{Reason: ReasonReplaced, Message: change + "without " + leaving}
	case len(pods) > 0:
		return Event{Reason: ReasonScaledDown, Message: change + "without " + leaving}
	case t.Replicas < t.From:
		return Event{Reason: ReasonScaledDown, Message: change + reason}
	case t.Replicas == t.From && t.TakenBack > 0:
		return Event{Message: change + reason}
	case t.Replicas == t.From:
		return Event{Message: fmt.Sprintf("group %s: the named workers are gone", t.Group)}
	}
	return Event{Reason: ReasonScaledUp, Message: change + reason}
}

// DrainEvent returns the Event of a drain that was asked of a node, with its answer.
func DrainEvent(w scaledown.DrainRequest, answer Action) Event {
	e := Event{Reason: ReasonDraining}
	switch answer.Result {
	case ResultRefused:
		e.Reason = ReasonDrainRefused
	case ResultError:
		e.Reason, e.Warning = ReasonDrainFailed, true
	}
	kind := "idle"
	if w.Reason == raydemand.DrainPreemption {
		kind = "until " + clock(w.Deadline)
	}
	e.Message = fmt.Sprintf("group %s: %s (%s): %s", w.Group, w.Pod, kind, answer.Message)
	return e
}

// clock writes a time of day with its zone, because readers are in others.
func clock(t time.Time) string { return t.UTC().Format("15:04:05 MST") }
