package ownerstatus

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAPodIsExpectedWhenOthersOfItsGroupJoined(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var s StartTimes
	joins := func(uid string, took time.Duration) {
		m := membership.Member{Worker: nodepool.Worker{Pod: uid, UID: uid, Group: "gpu", CreatedAt: now}}
		s.Observe(now, []membership.Member{m})
		m.Node = &raydemand.Node{Status: raydemand.Idle}
		s.Observe(now.Add(took), []membership.Member{m})
	}
	for i, seconds := range []int{10, 20, 60} {
		joins(string(rune('a'+i)), time.Duration(seconds)*time.Second)
	}
	plan := &planner.RequestPlan{State: raydemand.RequestWaiting, Groups: []planner.RequestGroup{{Name: "gpu", Waiting: 1, Since: now}}}
	for after, want := range map[time.Duration]time.Duration{0: 20 * time.Second, 30 * time.Second: time.Minute} {
		if got := s.expected(plan, now.Add(after)); !got.Equal(now.Add(want)) {
			t.Errorf("after %v it is expected at %v, want %v", after, got.Sub(now), want)
		}
	}
	if got := s.expected(plan, now.Add(2*time.Minute)); !got.IsZero() {
		t.Errorf("what took longer than any before is expected at %v", got)
	}
	plan.Groups[0].Name = "cpu"
	if got := s.expected(plan, now); !got.IsZero() {
		t.Errorf("a group of which nothing is known is expected at %v", got)
	}
}
