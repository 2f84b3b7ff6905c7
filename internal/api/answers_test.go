package api

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
)

func TestAnAnswerWithoutAnEncodingIsAnInternalError(t *testing.T) {
	var log bytes.Buffer
	w := newFixture(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	view := busy()
	view.At = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	w.fleet[llm] = view
	got := w.call(http.MethodGet, llmPath, "")
	if problem := readAnswer[apiv1.Problem](t, got); got.Code != http.StatusInternalServerError || problem.Type != problemBase+"internal" {
		t.Errorf("answer %d %s", got.Code, got.Body)
	}
	if !strings.Contains(log.String(), "year outside of range") {
		t.Errorf("the log says %q", log.String())
	}
}

// slowReader is a caller that reads only when the test says so.
type slowReader struct {
	*httptest.ResponseRecorder
	begun, read chan struct{}
}

func (r slowReader) Write(text []byte) (int, error) {
	close(r.begun)
	<-r.read
	return r.ResponseRecorder.Write(text)
}

func TestALargeAnswerIsRefusedWhileItsCallerHasUnreadOnes(t *testing.T) {
	w := newFixture(t)
	view := busy()
	view.Err = strings.Repeat("x", 16<<20)
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
