package observe

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/planner"
)

func TestTheScoreOfAGroupThatFailedFollowsRaysCurve(t *testing.T) {
	var c struct {
		Curve []struct {
			SecondsSinceTimeout float64
			Score               *float64
			ScoreBetween        []float64
		}
	}
	raw, err := os.ReadFile("testdata/priority-recovery-score-curve.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Curve) == 0 {
		t.Fatal("the case has no points")
	}
	for _, p := range c.Curve {
		got := recoverableScore(time.Duration(p.SecondsSinceTimeout * float64(time.Second)))
		if p.Score != nil && got != *p.Score || p.ScoreBetween != nil && (got <= p.ScoreBetween[0] || got >= p.ScoreBetween[1]) {
			t.Errorf("after %v s the score is %v, want %+v", p.SecondsSinceTimeout, got, p)
		}
	}
}

func TestOfGroupsThatFailedTheOneThatFailedLongerAgoIsBetterStocked(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	b := Breakers{"old": {failedAt: now.Add(-time.Hour)}, "new": {failedAt: now.Add(-20 * time.Minute)}, "well": {}}
	older, newer, well := planner.Group{Name: "old"}, planner.Group{Name: "new"}, planner.Group{Name: "well"}
	for _, g := range []*planner.Group{&older, &newer, &well} {
		b.Rank(g, now)
	}
	if well.CloudAvailability != nil || *newer.CloudAvailability != 0 || *older.CloudAvailability <= 0 || *older.CloudAvailability >= 1 {
		t.Errorf("availability is %v, %v and %v; want more than 0, 0 and none", *older.CloudAvailability, *newer.CloudAvailability, well.CloudAvailability)
	}
	if score := newer.RecoverableScore; score != nil {
		t.Errorf("score = %v twenty minutes after the failure, want none", *score)
	}
}

func TestEachPauseOfABreakerIsTwiceTheLastAndQuietTimeIsForgiving(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	b := &Breaker{}
	refused := podCounts{waiting: 1, proof: "no node is available"}
	for i, c := range []struct {
		quiet time.Duration // after the last pause ended
		want  time.Duration
	}{
		{0, 5 * time.Minute}, {0, 10 * time.Minute}, {time.Minute, 20 * time.Minute}, {0, 40 * time.Minute}, {0, time.Hour}, {0, time.Hour},
		{5 * time.Minute, time.Hour}, {10 * time.Minute, 30 * time.Minute}, {30 * time.Minute, 5 * time.Minute},
	} {
		now = now.Add(c.quiet)
		b.observe(now, refused, 5*time.Minute, 5*time.Minute)
		if got := b.OpenUntil.Sub(now); got != c.want {
			t.Errorf("pause %d is %v, want %v", i+1, got, c.want)
		}
		now = b.OpenUntil
	}
}

func TestAPodThatJoinsClosesABreakerOnlyWhileNothingProvesAShortage(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	b := &Breaker{}
	b.observe(now, podCounts{waiting: 2, proof: "no node is available"}, 5*time.Minute, 5*time.Minute)
	b.observe(now.Add(time.Second), podCounts{joined: []string{"a"}, there: []string{"a", "b"}, waiting: 1, proof: "no node is available"}, 5*time.Minute, 5*time.Minute)
	if !b.Open(now.Add(time.Second)) || b.Cooldown != 5*time.Minute {
		t.Errorf("open until %v, pause %v: a pod that had a node already says nothing of the others", b.OpenUntil, b.Cooldown)
	}
	b.observe(now.Add(2*time.Second), podCounts{joined: []string{"a", "b"}, there: []string{"a", "b"}}, 5*time.Minute, 5*time.Minute)
	if b.Open(now.Add(2*time.Second)) || !b.failedAt.IsZero() {
		t.Errorf("open until %v after all have joined", b.OpenUntil)
	}
}

func TestAWorkerWhoseRayNodeDiesAndComesBackDoesNotCloseABreaker(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	b := &Breaker{}
	b.observe(now, podCounts{joined: []string{"a"}, there: []string{"a", "b"}, waiting: 1}, 5*time.Minute, 5*time.Minute)
	for at := range 6 * 60 {
		s := podCounts{joined: []string{"a"}, there: []string{"a", "b"}, waiting: 1}
		if at%2 == 0 {
			s.joined = nil
		}
		b.observe(now.Add(time.Duration(at)*time.Second), s, 5*time.Minute, 5*time.Minute)
	}
	if !b.Open(now.Add(6 * time.Minute)) {
		t.Error("b has not joined within the allocation timeout, and a that comes and goes hides it")
	}
	b.observe(now.Add(7*time.Minute), podCounts{joined: []string{"a", "c"}, there: []string{"a", "b", "c"}, waiting: 1}, 5*time.Minute, 5*time.Minute)
	if b.Open(now.Add(7 * time.Minute)) {
		t.Error("another pod has joined, and the group is still broken off")
	}
}
