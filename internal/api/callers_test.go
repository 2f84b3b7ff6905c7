package api

import (
	"errors"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/access"
)

func TestConcurrentCallsAreLimitedPerCaller(t *testing.T) {
	p := newCallerLimits(0)
	var leave []func()
	for i := range maxCalls {
		done, err := p.Enter("alice", time.Time{})
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		leave = append(leave, done)
	}
	var slower *access.ThrottledError
	if _, err := p.Enter("alice", time.Time{}); !errors.As(err, &slower) {
		t.Errorf("one too many: %v", err)
	}
	if done, err := p.Enter("bob", time.Time{}); err != nil {
		t.Errorf("another caller: %v", err)
	} else {
		done()
	}
	if used := p.Used(); used != 1 {
		t.Errorf("%v of the calls of one caller are in use, want all", used)
	}
	for _, done := range leave {
		done()
	}
	if _, err := p.Enter("alice", time.Time{}); err != nil || len(p.running) != 1 {
		t.Errorf("after all are answered: %v, %v", err, p.running)
	}
}
