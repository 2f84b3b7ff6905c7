package access

import (
	"context"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"
)

func TestTheCacheHoldsNoMoreThanItsLimitAndKeepsWhatIsUsed(t *testing.T) {
	c := newCache[int](100, func() time.Time { return noon })
	asked := 0
	get := func(name string) {
		_, err := c.get(t.Context(), sha256.Sum256([]byte(name)), func(context.Context) (int, time.Duration, error) {
			asked++
			return 1, time.Minute, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	get("used")
	for i := range 10_000 {
		get(fmt.Sprint(i))
		get("used")
		if size := c.kept.Len(); size > 100 {
			t.Fatalf("%d answers are kept", size)
		}
	}
	if asked != 10_001 {
		t.Errorf("asked %d times for 10,001 things", asked)
	}
}

func TestALimiterHoldsNoMoreKeysThanItsLimit(t *testing.T) {
	l := NewLimiter(1, 1, 100)
	for i := range 10_000 {
		l.Take(fmt.Sprint(i), noon)
	}
	if size := l.buckets.Len(); size > 100 {
		t.Errorf("%d keys are kept", size)
	}
}

func TestALimiterGivesABurstAndThenItsRate(t *testing.T) {
	l, now := NewLimiter(10, 20, 10), noon
	for i := range 20 {
		if wait := l.Take("a", now); wait != 0 {
			t.Fatalf("token %d has to wait %v", i, wait)
		}
	}
	if wait := l.Take("a", now); wait != 100*time.Millisecond {
		t.Errorf("the next is there in %v, want 100ms", wait)
	}
	if wait := l.Take("b", now); wait != 0 {
		t.Errorf("another key waits %v", wait)
	}
	if wait := l.Take("b", now.Add(-time.Hour)); wait != 0 {
		t.Errorf("a clock that was set back takes tokens away: %v", wait)
	}
	given := 0
	for range 1000 { // a second, by milliseconds
		now = now.Add(time.Millisecond)
		if l.Take("a", now) == 0 {
			given++
		}
	}
	if given < 9 || given > 10 {
		t.Errorf("%d tokens in a second, want 10", given)
	}
	l.Return("a", now)
	if wait := l.Take("a", now); wait != 0 {
		t.Errorf("a token that was put back is there in %v", wait)
	}
}
