package controller

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func withShapes(n int) planner.Snapshot {
	var owned raydemand.Owned
	for i := range n {
		owned.Requests = append(owned.Requests, raydemand.Request{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.Whole(int64(1 + i))}, Count: 1})
	}
	owned.ID = fmt.Sprint(n)
	return planner.Snapshot{OwnedRequests: []raydemand.Owned{owned}}
}

func TestAHeavyPlanWaitsForItsTurnAndALightOneDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := &heavyPlans{}
		turns.mu.Lock() // a heavy plan is being made
		made := make(chan int, 2)
		for _, n := range []int{heavyShapes, heavyShapes - 1} {
			go func() {
				turns.compute(withShapes(n), planner.Policy{})
				made <- n
			}()
		}
		if first := <-made; first != heavyShapes-1 {
			t.Errorf("the plan of %d shapes is made first", first)
		}
		begun := time.Now()
		turns.rests = begun.Add(time.Minute)
		turns.mu.Unlock()
		<-made
		if waited := time.Since(begun); waited != time.Minute {
			t.Errorf("the heavy plan is made %s after the one before it, want the pause of a minute", waited)
		}
	})
}
