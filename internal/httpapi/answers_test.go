package httpapi

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/httpapi/apiv1"
)

func TestAnswersThatAreNotReadYetTakeRoomOfTheirCallerAndOfAll(t *testing.T) {
	a := newAnswers()
	var slower *access.ThrottledError
	var full *problem
	hold := func(caller string, size int) func() {
		t.Helper()
		release, err := a.hold(caller, size)
		if err != nil {
			t.Fatalf("%d bytes of %s: %v", size, caller, err)
		}
		return release
	}
	first := hold("alice", 10<<20)
	if _, err := a.hold("alice", 10<<20); !errors.As(err, &slower) || slower.After <= 0 {
		t.Errorf("20 MiB of one caller: %v", err)
	}
	hold("alice", smallAnswer)
	releases := []func(){first}
	for _, caller := range []string{"b", "c", "d", "e", "f"} {
		releases = append(releases, hold(caller, 10<<20))
	}
	if _, err := a.hold("g", 10<<20); !errors.As(err, &full) || full.kind != unavailable {
		t.Errorf("70 MiB of all callers: %v", err)
	}
	for _, release := range releases {
		release()
	}
	hold("g", 2*answersOfAll)() // nothing else is held
	if a.held != 0 || len(a.byCaller) != 0 {
		t.Errorf("when all are read %d bytes of %v are held", a.held, a.byCaller)
	}
}

func TestAnAnswerGivesItsTurnToBeEncodedBack(t *testing.T) {
	a := newAnswers()
	for i, body := range []any{1, func() {}} {
		if _, err := a.encode(body); (err == nil) != (i == 0) || len(a.encoding) != 0 {
			t.Errorf("%T: %v, and %d are being encoded", body, err, len(a.encoding))
		}
	}
}

func TestAnAnswerThatCannotBeEncodedIsALoggedProblem(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	view := busyView()
	view.CycleAt = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	w.fleet[llm] = view
	got := w.call(http.MethodGet, llmPath, "")
	if problem := readAnswer[apiv1.Problem](t, got); got.Code != http.StatusInternalServerError || problem.Type != problemBase+"internal" {
		t.Errorf("answer %d %s", got.Code, got.Body)
	}
	if !strings.Contains(log.String(), "year outside of range") {
		t.Errorf("the log says %q", log.String())
	}
}

// slowReader is a caller who has not read yet what is written to him.
type slowReader struct {
	*httptest.ResponseRecorder
	begun, read chan struct{}
}

func (r slowReader) Write(text []byte) (int, error) {
	close(r.begun)
	<-r.read
	return r.ResponseRecorder.Write(text)
}

func TestALargeAnswerIsRefusedWhileOthersOfItsCallerAreNotRead(t *testing.T) {
	w := newWorld(t)
	view := busyView()
	view.Error = strings.Repeat("x", answersOfOne)
	w.fleet[llm] = view
	slow := slowReader{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	request := httptest.NewRequest(http.MethodGet, llmPath, nil)
	request.Host = "127.0.0.1:8090"
	done := make(chan struct{})
	go func() {
		w.handler.ServeHTTP(slow, request)
		close(done)
	}()
	<-slow.begun
	if got := w.call(http.MethodGet, llmPath, ""); got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") == "" {
		t.Errorf("while the first is not read: %d", got.Code)
	}
	if got := w.call(http.MethodGet, llmPath+"/request_resources", ""); got.Code != http.StatusOK {
		t.Errorf("a small answer: %d %s", got.Code, got.Body)
	}
	close(slow.read)
	<-done
	if got := w.call(http.MethodGet, llmPath, ""); got.Code != http.StatusOK || slow.Code != http.StatusOK {
		t.Errorf("when it is read: %d, and the first %d", got.Code, slow.Code)
	}
}
