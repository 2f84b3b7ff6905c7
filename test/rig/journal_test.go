package rig

import (
	"slices"
	"testing"
	"time"
)

// A pod counts as stopped too early if Ray never drained it, or had not when it was asked after the stop, unless it failed
// before it joined.
func TestAPodThatIsStoppedTooEarlyIsFound(t *testing.T) {
	at := func(ms int) time.Time { return time.Time{}.Add(time.Duration(ms) * time.Millisecond) }
	facts := []Fact{
		{Stage: PodCreated, Group: "g", Pod: "gave-up"}, {Stage: PodFailed, Pod: "gave-up"}, {Stage: PodStopping, Pod: "gave-up", At: at(1000)},
		{Stage: PodCreated, Group: "g", Pod: "failed-later"}, {Stage: NodeAlive, Pod: "failed-later", Node: "ab"},
		{Stage: PodFailed, Pod: "failed-later"}, {Stage: PodStopping, Pod: "failed-later", At: at(1000)},
		{Stage: PodCreated, Group: "g", Pod: "good"}, {Stage: PodCreated, Group: "g", Pod: "never"},
		{Stage: PodCreated, Group: "g", Pod: "late"}, {Stage: PodCreated, Group: "g", Pod: "stays"},
		{Stage: PodCreated, Group: "g", Pod: "late-answer"}, {Stage: PodCreated, Group: "other", Pod: "of-another-group"},
		{Stage: Drained, Pod: "good", At: at(900), NotBefore: at(850)}, {Stage: PodStopping, Pod: "good", At: at(1000)},
		{Stage: PodStopping, Pod: "never", At: at(1000)}, {Stage: PodStopping, Pod: "of-another-group", At: at(1000)},
		{Stage: PodStopping, Pod: "late", At: at(1000)}, {Stage: Drained, Pod: "late", At: at(1100), NotBefore: at(1050)},
		{Stage: PodStopping, Pod: "late-answer", At: at(1000)}, {Stage: Drained, Pod: "late-answer", At: at(3000), NotBefore: at(990)},
	}
	if got := StoppedUndrained(facts, "g"); !slices.Equal(got, []string{"failed-later", "never", "late"}) {
		t.Errorf("%v", got)
	}
}
