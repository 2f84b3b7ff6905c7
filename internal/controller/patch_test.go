package controller

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestAWebhookWithoutAnswerIsAskedAgainSoon(t *testing.T) {
	for err, longest := range map[error]time.Duration{
		errors.New("refused"): 30 * time.Second,
		fmt.Errorf("calling a webhook: %w", nodepool.ErrWebhook): time.Second,
	} {
		var p patches
		for failures := range 10 {
			if first := p.Failed(start, err); first != (failures == 0) {
				t.Errorf("%v: failure %d counts as first: %t", err, failures, first)
			}
		}
		if !p.rest.Resting(start.Add(longest-1)) || p.rest.Resting(start.Add(longest)) || !errors.Is(p.unwritten, err) {
			t.Errorf("%v: the pause is not %v, or another error is reported: %v", err, longest, p.unwritten)
		}
	}
}

func TestThePatchOfAGroupHasOneEvent(t *testing.T) {
	const leaving = "w-1, w-2 (idle for 1m0s)"
	const stays = "named workers in which Ray has started again stay"
	for name, test := range map[string]struct {
		from, to int
		pods     []string
		want     addon.Event
		back     int
	}{
		"growth":                    {1, 3, nil, addon.Event{Reason: addon.ReasonScaledUp, Message: "group gpu: replicas 1 → 3: 2 tasks wait"}, 0},
		"a reduction":               {3, 1, []string{"w-1", "w-2"}, addon.Event{Reason: addon.ReasonScaledDown, Message: "group gpu: replicas 3 → 1: without " + leaving}, 0},
		"a replacement":             {2, 2, []string{"w-1", "w-2"}, addon.Event{Reason: addon.ReasonReplaced, Message: "group gpu: replicas 2 → 2: without " + leaving}, 0},
		"fewer pods than replicas":  {3, 2, nil, addon.Event{Reason: addon.ReasonScaledDown, Message: "group gpu: replicas 3 → 2: 2 tasks wait"}, 0},
		"names that are cleared":    {2, 2, nil, addon.Event{Message: "group gpu: the named workers are gone"}, 0},
		"names taken back":          {1, 3, nil, addon.Event{Reason: addon.ReasonScaledUp, Message: "group gpu: replicas 1 → 3: " + stays + " (2)"}, 2},
		"and growth":                {1, 3, nil, addon.Event{Reason: addon.ReasonScaledUp, Message: "group gpu: replicas 1 → 3: " + stays + " (1); 2 tasks wait"}, 1},
		"taken back at the maximum": {2, 2, nil, addon.Event{Message: "group gpu: replicas 2 → 2: " + stays + " (1)"}, 1},
	} {
		target := nodepool.Target{Group: "gpu", From: test.from, Replicas: test.to, TakenBack: test.back}
		got := patchEvent(target, "2 tasks wait", test.pods, leaving)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestALastingConditionHasOneEventWhenItBegins(t *testing.T) {
	known := conditions{}
	start := time.Date(2026, 8, 20, 12, 0, 0, 0, time.UTC)
	cycle := func(after time.Duration, events ...addon.Event) (begun int) {
		known.Start()
		defer known.End()
		for _, e := range events {
			if known.Begins(start.Add(after), e) {
				begun++
			}
		}
		return begun
	}
	gpu, cpu := addon.Event{Reason: addon.ReasonGroupFailing, Message: "group gpu: no pod joins"}, addon.Event{Reason: addon.ReasonGroupFailing, Message: "group cpu: no pod joins"}
	changed, goes := gpu, addon.Event{Reason: addon.ReasonWorkerGoing, Message: "w-1: its node goes"}
	changed.Message = "group gpu: 2 pods do not join"
	for _, step := range []struct {
		name   string
		after  time.Duration
		events []addon.Event
		want   int
	}{
		{"two groups begin to fail", 0, []addon.Event{gpu, cpu}, 2},
		{"both continue", time.Second, []addon.Event{gpu, cpu}, 0},
		{"another message within a minute", 2 * time.Second, []addon.Event{changed, cpu}, 0},
		{"after a minute", 61 * time.Second, []addon.Event{changed, cpu}, 1},
		{"nothing holds", 62 * time.Second, nil, 0},
		{"one comes back", 63 * time.Second, []addon.Event{cpu, goes}, 2},
	} {
		if got := cycle(step.after, step.events...); got != step.want {
			t.Errorf("%s: %d Events, want %d", step.name, got, step.want)
		}
	}
}
