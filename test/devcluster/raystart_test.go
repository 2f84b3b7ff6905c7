package devcluster

import (
	"context"
	"os"
	"testing"
	"time"
)

func TestAfterASlowStartRayNodesStartOneByOneForAWhile(t *testing.T) {
	starts := rayStarts(t.TempDir())
	enter := func() func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		done, err := starts.enter(ctx)
		must(t, err)
		return done
	}
	first, second := enter(), enter() // at once
	second()
	starts.took(slowRayStart)
	blocked, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := starts.enter(blocked); err == nil {
		t.Error("a Ray node starts beside another one after a slow start")
	}
	first()
	enter()()
	past := time.Now().Add(-slowFor)
	must(t, os.Chtimes(starts.slowFile(), past, past))
	first, second = enter(), enter()
	first()
	second()
}
