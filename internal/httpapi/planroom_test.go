package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/snapshotfile"
)

// plain makes a plan that takes no heed of its end.
func plain(plan func() int) func(<-chan struct{}) (int, bool) {
	return func(<-chan struct{}) (int, bool) { return plan(), true }
}

func TestPlansForCallersWaitForTheirTurnAndAPanicIsAnError(t *testing.T) {
	room := newPlanRoom(1)
	leave, err := room.enter(t.Context(), "bob")
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = inTime(over, room, "ada", plain(func() int { return 1 }))
	var p *problem
	if !errors.As(err, &p) || p.kind != unavailable {
		t.Errorf("without a free place: %v", err)
	}
	leave()
	if _, err := inTime(t.Context(), room, "ada", plain(func() int { panic("odd") })); err == nil || !strings.Contains(err.Error(), "odd") {
		t.Errorf("a panic is %v", err)
	}
	if got, err := inTime(t.Context(), room, "ada", plain(func() int { return 7 })); got != 7 || err != nil {
		t.Errorf("after a panic: %d, %v", got, err)
	}
	if len(room.turns) != 0 {
		t.Errorf("%d callers are remembered", len(room.turns))
	}
}

func TestAPlanThatNobodyWaitsForIsToldSoAndKeepsItsPlaceUntilItEnds(t *testing.T) {
	room := newPlanRoom(1)
	ctx, cancel := context.WithCancel(t.Context())
	told, ended := make(chan struct{}), make(chan struct{})
	_, err := inTime(ctx, room, "ada", func(stop <-chan struct{}) (int, bool) {
		cancel()
		<-stop
		close(told)
		<-ended
		return 1, true
	})
	var p *problem
	if !errors.As(err, &p) || p.kind != timedOut {
		t.Errorf("a plan that takes too long: %v", err)
	}
	<-told
	if len(room.places) != 1 {
		t.Error("a plan that still runs has lost its place")
	}
	close(ended)
	if got, err := inTime(t.Context(), room, "ada", plain(func() int { return 7 })); got != 7 || err != nil {
		t.Errorf("after its end: %d, %v", got, err)
	}
}

// The end of the time to wait and that of a plan that broke off for it come at once: the answer must not depend on which is seen.
func TestAPlanThatBrokeOffIsNoAnswer(t *testing.T) {
	_, err := inTime(t.Context(), newPlanRoom(1), "ada", func(<-chan struct{}) (int, bool) { return 0, false })
	var p *problem
	if !errors.As(err, &p) || p.kind != timedOut {
		t.Errorf("a plan that nobody made: %v", err)
	}
}

func TestOneCallerHasOnePlanMadeAtATimeAndLeavesRoomForOthers(t *testing.T) {
	room := newPlanRoom(2)
	leave, err := room.enter(t.Context(), "greedy")
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	var slower *access.ThrottledError
	if _, err := room.enter(over, "greedy"); !errors.As(err, &slower) || !strings.Contains(err.Error(), "one at a time") {
		t.Errorf("the second plan of one caller: %v", err)
	}
	if got, err := inTime(t.Context(), room, "ada", plain(func() int { return 7 })); got != 7 || err != nil {
		t.Errorf("another caller: %d, %v", got, err)
	}
	for range plansInLine {
		room.join("greedy")
	}
	if _, err := room.enter(over, "greedy"); !errors.As(err, &slower) || !strings.Contains(err.Error(), "wait to be made") {
		t.Errorf("one more than may stand in line: %v", err)
	}
}

func TestACallThatFindsNoPlaceLeavesTheTurnToTheCallersNextOne(t *testing.T) {
	room := newPlanRoom(1)
	leave, err := room.enter(t.Context(), "bob")
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	next := room.join("ada")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	var p *problem
	if _, err := room.enter(over, "ada"); !errors.As(err, &p) || p.kind != unavailable {
		t.Errorf("without a free place: %v", err)
	}
	if len(next.busy) != 0 {
		t.Error("her next call waits for one that is over")
	}
}

func TestASuppositionIsBounded(t *testing.T) {
	w := plannedWorld(t)
	for field, entry := range map[string]string{
		"groups": `{"name": "gpu"}`, "pendingRequests": `{"resources": {"CPU": 1}, "count": 1}`, "requestResources": `{"resources": {"CPU": 1}, "count": 1}`,
		"pendingGangRequests": `{"strategy": "PACK", "bundles": [{"CPU": 1}]}`,
	} {
		answer := w.call(http.MethodPost, llmPath+"/plan", `{"`+field+`": [`+strings.Repeat(entry+",", 500)+entry+`]}`)
		var problem apiv1.Problem
		if err := json.Unmarshal(answer.Body.Bytes(), &problem); err != nil || answer.Code != http.StatusBadRequest {
			t.Fatalf("%s: %d %v", field, answer.Code, err)
		}
		if len(problem.Errors) != 1 || problem.Errors[0].Field != field || !strings.Contains(problem.Errors[0].Expected, "there are 501") {
			t.Errorf("%s: %+v", field, problem.Errors)
		}
	}
}

func TestASupposedBundleHasAsManyNamesAsTheContractAllows(t *testing.T) {
	w := plannedWorld(t)
	names := make([]string, snapshotfile.MostSupposedNames+1)
	for i := range names {
		names[i] = fmt.Sprintf(`"r%d": 1`, i)
	}
	for n, want := range map[int]int{maxResources: http.StatusOK, maxResources + 1: http.StatusBadRequest} {
		body := `{"pendingGangRequests": [{"strategy": "PACK", "bundles": [{` + strings.Join(names[:n], ", ") + `}]}]}`
		answer := w.call(http.MethodPost, llmPath+"/plan", body)
		if answer.Code != want || want == http.StatusBadRequest && !strings.Contains(answer.Body.String(), "at most 100 names, there are 101") {
			t.Errorf("%d names: %d, %.300s", n, answer.Code, answer.Body)
		}
	}
}
