package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestAHeadThatDoesNotAnswerKeepsOthersWaitingForAMomentOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEntries()
		begun := time.Now()
		var leaves []func()
		for range entering {
			leaves = append(leaves, e.Enter(t.Context()))
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("%d waited for %v, want at once", entering, took)
		}
		leave := e.Enter(t.Context()) // the first ones have neither connected nor failed
		if took := time.Since(begun); took != longestEntry {
			t.Errorf("one more waited for %v, want %v", took, longestEntry)
		}
		leave()
		for _, late := range leaves {
			late() // their places are free already
		}
		if len(e.places) != 0 {
			t.Errorf("%d places are taken", len(e.places))
		}
	})
}

func TestAPlaceThatIsLeftIsFreeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEntries()
		begun := time.Now()
		for range 10 * entering {
			e.Enter(t.Context())()
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("waited for %v", took)
		}
	})
}

func TestNobodyWaitsWhenTheProcessEnds(t *testing.T) {
	e := newEntries()
	for range entering {
		e.places <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e.Enter(ctx)()
	if len(e.places) != entering {
		t.Errorf("%d places are taken, want %d", len(e.places), entering)
	}
}
