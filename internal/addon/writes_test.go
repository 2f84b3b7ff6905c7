package addon

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// round is a loop that lets all writes of a round through.
type round struct {
	Loop
	now time.Time
}

func (r *round) Now() time.Time { return r.now }

func (r *round) WriteRound(_ context.Context, _ *Cycle, count int, write func(int) bool) {
	for at := 0; at < count && write(at); at++ {
	}
}

func TestAWriteThatFailsDelaysTheNextRoundAndNoOtherWrite(t *testing.T) {
	loop, w := &round{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}, Writes{}
	var failing [2]error
	// after returns the results of a round after some time.
	after := func(d time.Duration) (results string) {
		loop.now = loop.now.Add(d)
		o := &Cycle{}
		o.View.Now = loop.now
		w.Round(t.Context(), loop, o, len(failing), func(at int) (Action, error) { return Action{}, failing[at] })
		for _, a := range o.Actions {
			results += a.Result + " "
		}
		return results
	}
	refused := errors.New("forbidden")
	failing = [2]error{refused, refused}
	rounds := 0
	for range 60 {
		if after(time.Second) != "" {
			rounds++
		}
		if !errors.Is(w.Err, refused) {
			t.Fatalf("the error is %v", w.Err)
		}
	}
	if rounds < 2 || rounds > 8 {
		t.Errorf("%d rounds in a minute, want a few", rounds)
	}
	failing[1] = nil
	if got := after(LongestPause); got != "error ok " {
		t.Errorf("one is refused: %s", got)
	}
	if got := after(retryWithin); got != "error ok " {
		t.Errorf("%v later: %s, want that it is tried again soon", retryWithin, got)
	}
	for _, again := range []error{nodepool.ErrConflict, nodepool.ErrGone} {
		failing[0] = fmt.Errorf("writing: %w", again)
		if got := after(retryWithin); got != "conflict ok " || w.Err != nil {
			t.Errorf("%v: %s, %v", again, got, w.Err)
		}
	}
	for _, another := range []error{nodepool.ErrNotLeading, nodepool.ErrReadOnly} {
		failing[0] = another
		if got := after(0); got != "" || w.Err != nil {
			t.Errorf("%v: %s, %v, want that nothing more is tried", another, got, w.Err)
		}
	}
	failing[0] = refused
	after(time.Second)
	o := &Cycle{}
	if w.Round(t.Context(), loop, o, 0, nil); w.Err != nil {
		t.Errorf("nothing is to be written any more: %v", w.Err)
	}
}
