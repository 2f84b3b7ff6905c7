package controller

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAPodIsExpectedWhenOthersOfItsGroupJoined(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var s arrival.History
	joins := func(uid string, took time.Duration) {
		pod := arrival.Pod{UID: uid, CreatedAt: now}
		s.Observe(now, []arrival.Group{{Name: "gpu", Pods: []arrival.Pod{pod}}}, nil)
		pod.Joined = true
		s.Observe(now.Add(took), []arrival.Group{{Name: "gpu", Pods: []arrival.Pod{pod}}}, nil)
	}
	for i, seconds := range []int{10, 20, 60} {
		joins(string(rune('a'+i)), time.Duration(seconds)*time.Second)
	}
	plan := &planner.RequestPlan{State: raydemand.RequestWaiting, Groups: []planner.RequestGroup{{Name: "gpu", Waiting: 1, Since: now}}}
	for after, want := range map[time.Duration]time.Duration{0: 20 * time.Second, 30 * time.Second: time.Minute} {
		if got := expectedAt(plan, &s, now.Add(after)); !got.Equal(now.Add(want)) {
			t.Errorf("after %v it is expected at %v, want %v", after, got.Sub(now), want)
		}
	}
	if got := expectedAt(plan, &s, now.Add(2*time.Minute)); !got.IsZero() {
		t.Errorf("what took longer than any before is expected at %v", got)
	}
	plan.Groups[0].Name = "cpu"
	if got := expectedAt(plan, &s, now); !got.IsZero() {
		t.Errorf("a group of which nothing is known is expected at %v", got)
	}
}
