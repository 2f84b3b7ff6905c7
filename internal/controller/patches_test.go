package controller

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestGrowthIsWantedSinceItIsFirstPlanned(t *testing.T) {
	var p patches
	grows := []nodepool.Target{{Group: "gpu", From: 1, Replicas: 2}}
	if got := p.WantGrowth(start, grows); got != start {
		t.Errorf("wanted since %v, want %v", got, start)
	}
	p.Failed(start, errors.New("refused"))
	if got := p.WantGrowth(start.Add(time.Second), grows); got != start {
		t.Errorf("a second later, wanted since %v, want %v", got, start)
	}
	if got := p.Wrote(2, grows, nil); got != start || !p.growthSince.IsZero() {
		t.Errorf("written, it was wanted since %v, and is since %v", got, p.growthSince)
	}
	p.WantGrowth(start, grows)
	if got := p.WantGrowth(start, []nodepool.Target{{Group: "gpu", From: 2, Replicas: 1}}); !got.IsZero() {
		t.Errorf("growth is wanted since %v by a patch that only lowers a goal", got)
	}
}

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
		if !p.Rest(start.Add(longest-1)) || p.Rest(start.Add(longest)) || !errors.Is(p.unwritten, err) {
			t.Errorf("%v: the pause is not %v, or another error is reported: %v", err, longest, p.unwritten)
		}
	}
}
